"""The unit for systemd: it is valid, gives the service what it needs, and allows little more."""

import configparser
import shutil

import pytest

from runtime.settings import Settings
from services.platform import systemd
from tests.support import ROOT, finished

UNIT = ROOT / "deploy" / "systemd" / "tillbook.service"
INSTALL = (ROOT / "docs" / "guides" / "install.md").read_text("utf-8")
MONITORING = (ROOT / "docs" / "guides" / "monitoring.md").read_text("utf-8")

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


PARSER = configparser.ConfigParser(interpolation=None, delimiters="=")
PARSER.optionxform = str
PARSER.read(UNIT, "utf-8")
SERVICE = PARSER["Service"]


@needs_systemd
@pytest.mark.usefixtures("slow")
def test_systemd_understands_every_line(tmp_path):
    here = tmp_path / "tillbook.service"
    command = str(ROOT / "cli" / "tillbook.sh")
    here.write_text(UNIT.read_text("utf-8").replace("/opt/tillbook/.venv/bin/tillbook", command))
    done = finished(["systemd-analyze", "verify", here])
    assert "tillbook.service" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


@needs_systemd
@pytest.mark.usefixtures("slow")
def test_systemd_finds_few_unneeded_rights():
    done = finished(["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", UNIT])  # 2.0 of 10
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd judges no files")
    assert done.returncode == 0, done.stdout


def test_it_runs_as_an_ordinary_user_in_the_folders_of_the_documentation_and_writes_only_its_data_and_backups():
    folders = {"/opt/tillbook": "the program", "/var/lib/tillbook": "", "/var/backups/tillbook": ""}
    for folder, content in folders.items():
        assert f"\n| `{folder}` | {content}" in INSTALL
    assert SERVICE["User"] == "tillbook"
    assert SERVICE["WorkingDirectory"] == "/opt/tillbook"
    assert SERVICE["ExecStart"] == "/opt/tillbook/.venv/bin/tillbook serve"
    assert SERVICE["Environment"] == "ORDERS_INSTANCE=/var/lib/tillbook"
    assert SERVICE["ProtectSystem"] == "strict"
    assert SERVICE["ReadWritePaths"].split() == ["/var/lib/tillbook", "-/var/backups/tillbook"]
    assert SERVICE["LimitCORE"] == "0", "an end by the watchdog would write secrets to the disk"


def test_it_is_restarted_if_it_no_longer_says_that_it_works():
    assert (SERVICE["Type"], SERVICE["NotifyAccess"], SERVICE["Restart"]) == ("notify", "main", "always")
    assert SERVICE["WatchdogSec"] == "3min"
    assert f"{3 * 60 // systemd.PER_PERIOD} seconds" in MONITORING
    assert "three minutes (`WatchdogSec`)" in MONITORING


def test_it_has_room_for_every_thread_and_time_to_finish():
    threads = Settings.threads + Settings.callback_workers + Settings.channel_workers + 32  # and its own
    assert int(SERVICE["TasksMax"]) >= threads * 3 // 2
    assert int(SERVICE["TimeoutStopSec"]) > 35
