"""`deploy/install.sh` on a private copy of this machine: install, repeat, upgrade, fail, return and uninstall."""

import json
import re
import shutil

import pytest

from runtime.settings import VERSION
from tests.deploy.private_machine import Machine, missing
from tests.support import ROOT, finished, https_certificate

SCRIPT = ROOT / "deploy" / "install.sh"
INSTALL = "deploy/install.sh pay.example.com --yes"
OWN = f"{INSTALL} --certificate /root/certificate.pem --certificate-key /root/certificate.pem"
FIRST_ORDER = """
tillbook merchant add shop --name Shop --buy-rate 0.6 --sell-rate 0.3 > /root/merchant
tillbook channel add --category gateway_c --driver manual --name Bank --pay-method bank \\
  --config payee=Me --config account=6222000011112222
tillbook channel link 1 shop
export MERCHANT_URL=https://pay.example.com MERCHANT_KEY=shop SSL_CERT_FILE=/root/certificate.pem
export MERCHANT_SECRET=$(sed -nE 's/^api_secret +//p' /root/merchant) PYTHONPATH=/opt/tillbook/docs/clients
/opt/tillbook/.venv/bin/python -B -c "
from merchant import call
order = {'order_type': 1, 'cny_amount': '1.00', 'paychannel_id': 1, 'paychannel_paymethod': 'bank'}
print(call('createOrder', {**order, 'merchant_order_no': 'FIRST-1'}, idempotency_key='FIRST-1')['code'])"
"""

pytestmark = pytest.mark.usefixtures("slow")
private = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture
def machine(tmp_path):
    """A private machine with a certificate for its domain, whose name leads to itself."""
    made = Machine(tmp_path / "machine")
    certificate = https_certificate(tmp_path, "pay.example.com").read_text()
    made.run('echo "$CERTIFICATE" > /root/certificate.pem', CERTIFICATE=certificate)
    made.run("echo 127.0.0.1 pay.example.com >> /etc/hosts")
    yield made
    made.end()


def release(machine, version):
    """Make the checkout that of another version."""
    machine.run(f"sed -i 's/^VERSION = .*/VERSION = \"{version}\"/' runtime/settings.py")


def orders(machine):
    """The merchant order numbers and states, as `tillbook order list` has them."""
    return [(row["merchant_order_no"], row["status"]) for row in json.loads(machine.run("tillbook order list --json"))]


def version(machine):
    """The version of the running service."""
    return json.loads(machine.run("curl -sf http://127.0.0.1:8000/healthz"))["data"]["version"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which domain?"),
        (["localhost"], "localhost is not a domain name"),
        (["192.0.2.1"], "192.0.2.1 is not a domain name"),
        (["pay.example.com;id"], "is not a domain name"),
        (["pay.example.com", "--quickly"], "unknown option --quickly"),
        (["pay.example.com", "--delete-data"], "--delete-data needs --uninstall"),
        (["pay.example.com", "--certificate", str(SCRIPT)], "need each other"),
        (["a.example.com", "b.example.com"], "more than one domain"),
    ],
)
def test_wrong_arguments_are_refused_with_the_usage(arguments, said):
    done = finished([SCRIPT, *arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "usage: sudo deploy/install.sh DOMAIN" in done.stderr


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing():
    assert finished(["shellcheck", SCRIPT, ROOT / "deploy" / "tillbook.sh"]).stdout == ""


@private
def test_an_installation_is_planned_serves_orders_and_is_repeated_upgraded_and_removed(machine):
    before = machine.written()
    plan = machine.run("deploy/install.sh pay.example.com --dry-run")
    assert f"Install Tillbook {VERSION} for pay.example.com:\n  1. " in plan
    refused = machine.tried("deploy/install.sh pay.example.com")
    assert refused.returncode == 1
    assert "add --yes to continue without a question" in refused.stderr
    assert machine.written() == before

    printed = machine.run(OWN)
    assert f"Tillbook {VERSION} is running." in printed
    assert "sudo tillbook operator add NAME" in printed
    assert machine.run("stat -c '%a %U' /var/lib/tillbook /var/backups/tillbook /var/lib/tillbook/*.* | sort -u") == (
        "600 tillbook\n700 tillbook\n"
    )
    assert machine.run("find /opt/tillbook -user tillbook -o -perm /o+w -not -type l") == ""
    assert machine.run(FIRST_ORDER).splitlines()[-1] == "1"

    refused = machine.tried("setpriv --reuid 65534 --clear-groups tillbook to-do")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "error: only root can act as the service. Run: sudo tillbook to-do\n"
    machine.run("(umask 077; echo nothing > /root/statement.csv)")
    assert "the statement has no line" in machine.tried("tillbook reconcile 1 /root/statement.csv").stderr
    assert machine.run("find /var/lib/tillbook -not -user tillbook") == ""

    state = "cd /var/lib/tillbook; stat -c '%n %i %Y' /opt/tillbook config.toml vault.key /run/tillbook.pid"
    before = machine.run(state)
    assert f"Tillbook {VERSION} is installed." in machine.run(OWN)
    assert machine.run(state) == before

    release(machine, "99.0.0")
    assert f"Upgrade Tillbook from {VERSION} to 99.0.0" in machine.run(INSTALL)
    assert version(machine) == "99.0.0"
    assert orders(machine) == [("FIRST-1", "pending")]
    backup = machine.run("ls /var/backups/tillbook/before-99.0.0-*.sqlite").strip()
    assert machine.run(f"head -c 13 {backup}") == "SQLite format"
    release(machine, VERSION)
    assert f"99.0.0 is installed, and this is {VERSION}" in machine.tried(INSTALL).stderr

    assert "Tillbook was removed." in machine.run("/opt/tillbook/deploy/install.sh --uninstall --yes")
    assert machine.run("ls -d /opt/tillbook* /usr/local/bin/tillbook /etc/nginx/conf.d/tillbook.conf || true") == ""
    machine.run("test -s /var/lib/tillbook/orders.sqlite && test -s /var/lib/tillbook/vault.key && id tillbook")
    machine.run("deploy/install.sh --uninstall --delete-data --yes")
    left = machine.run("ls -d /var/lib/tillbook /var/backups/tillbook 2>/dev/null; id tillbook 2>/dev/null || true")
    assert left == ""


@private
def test_without_a_certificate_only_port_80_is_published_and_the_same_command_continues(machine):
    machine.run("mv /root/certificate.pem /root/later.pem")
    first = machine.tried(INSTALL)
    assert first.returncode == 1
    assert "One thing is missing: the certificate for pay.example.com." in first.stdout
    assert version(machine) == VERSION
    assert "listen 443" not in machine.run("cat /etc/nginx/conf.d/tillbook.conf")
    machine.run("mv /root/later.pem /root/certificate.pem")
    machine.run(INSTALL)
    reached = machine.run("curl -s --cacert /root/certificate.pem https://pay.example.com/openapi.json")
    assert json.loads(reached)["openapi"].startswith("3.1")
    moved = machine.tried("deploy/install.sh other.example.com --yes")
    assert "One thing is missing: the certificate for other.example.com." in moved.stdout
    machine.run("curl -sf --cacert /root/certificate.pem https://pay.example.com/openapi.json")
    machine.run("echo '# mine' >> /etc/nginx/conf.d/tillbook.conf")
    assert "was changed on this machine, so it stays as it is" in machine.run(INSTALL)
    assert machine.run("tail -n 1 /etc/nginx/conf.d/tillbook.conf") == "# mine\n"


@private
def test_a_failed_download_changes_nothing_and_a_failed_migration_shows_the_way_back(machine):
    machine.run(OWN)
    machine.run(FIRST_ORDER)
    release(machine, "99.0.0")
    machine.run("touch /network-is-down")
    failed = machine.tried(INSTALL)
    assert failed.returncode == 1
    assert f"Version {VERSION} keeps running." in failed.stderr
    assert version(machine) == VERSION
    assert machine.run("ls -d /opt/tillbook*") == "/opt/tillbook\n"

    machine.run("rm /network-is-down; echo 'def up(migrator, database): 1 / 0' > models/migrations/9999_broken.py")
    for _ in range(2):
        failed = machine.tried(INSTALL)
        assert failed.returncode == 1
        assert "this step failed or was interrupted: Migrate the database" in failed.stderr
    way_back = re.search(r"run as root:\n\n(.*?)\n\n", failed.stderr, re.DOTALL)[1]
    machine.run(f"set -e\n{way_back}\nuntil curl -sf http://127.0.0.1:8000/healthz; do sleep 0.1; done")
    assert version(machine) == VERSION
    assert orders(machine) == [("FIRST-1", "pending")]
    assert machine.run("tillbook to-do") == "nothing needs attention\n"


@private
def test_a_version_that_does_not_start_shows_its_log_and_a_repaired_one_replaces_it(machine):
    machine.run(OWN)
    release(machine, "99.0.0")
    application = "serving/application.py"
    machine.run(
        f"cp {application} application.works; "
        f'echo \'import sys; assert "serve" not in sys.argv, "cannot serve"\' >> {application}'
    )
    failed = machine.tried(INSTALL)
    assert "AssertionError: cannot serve" in failed.stderr
    assert "Version 99.0.0 is in /opt/tillbook, and the service may not be running." in failed.stderr
    machine.run("echo 'def up(migrator, database): 1 / 0' > models/migrations/9999_broken.py")
    again = machine.tried(INSTALL)
    assert "this step failed or was interrupted: Migrate the database" in again.stderr
    for each in failed, again:
        assert "A restore loses orders that the new version may have recorded" in each.stderr
        assert "tillbook db resume" not in each.stderr
    machine.run("mv application.works serving/application.py; rm models/migrations/9999_broken.py")
    machine.run("touch /run/tillbook.starting; sleep 999 >/dev/null 2>&1 & echo $! > /run/tillbook.pid")
    assert "==> Stop the service\n==> Back up the database" in machine.run(INSTALL)
    assert version(machine) == "99.0.0"


@private
def test_without_systemd_everything_else_is_done_and_a_service_started_manually_is_not_replaced(machine):
    machine.run("rm -r /run/systemd /stand_ins/systemctl")
    said = machine.run(OWN)
    assert "systemd is not running here" in said
    assert "Now start nginx, and the service: sudo tillbook serve" in said
    machine.run(
        "nginx; setsid tillbook serve >/dev/null 2>&1 &"
        " until curl -sf http://127.0.0.1:8000/healthz; do sleep 0.1; done"
    )
    machine.run("curl -sf --cacert /root/certificate.pem https://pay.example.com/openapi.json")
    machine.run(OWN)
    release(machine, "9.9.9")
    refused = machine.tried(OWN)
    assert refused.returncode == 1
    assert re.search(r"error: the service is running as process \d+: stop it first", refused.stderr)
    assert version(machine) == VERSION
    machine.run(
        "kill $(cat /var/lib/tillbook/service.lock); while tillbook db migrate 2>&1 | grep running; do sleep 0.1; done"
    )
    machine.run(OWN)
    assert "9.9.9" in machine.run("tillbook --version")


@private
def test_what_is_in_the_way_is_named_before_anything_is_changed(machine):
    for there, gone, said in (
        (
            "python3 -m http.server 8000 >/dev/null 2>&1 & echo $! > /root/other; sleep 1",
            "kill $(cat /root/other)",
            "another program uses port 8000 of 127.0.0.1",
        ),
        ("mkdir -p /srv/orders/service", "rm -r /srv/orders", "docs/guides/upgrade.md"),
        ("echo other > /usr/local/bin/tillbook", ":", "/usr/local/bin/tillbook is another program's command"),
    ):
        done = machine.tried(f"{there}; {OWN}")
        assert done.returncode == 1
        assert said in done.stderr
        assert machine.run("ls -d /opt/tillbook* || id tillbook || true") == ""
        machine.run(gone)
