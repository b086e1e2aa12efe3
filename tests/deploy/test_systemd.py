"""The unit for systemd: it is valid, gives the service what it needs, and allows little more."""

import configparser
import shutil
import subprocess

import pytest

from runtime.settings import Settings
from services.platform import systemd
from tests.support import ROOT

UNIT = ROOT / "deploy" / "systemd" / "tillbook.service"
INSTALL = (ROOT / "docs" / "guides" / "install.md").read_text("utf-8")
MONITORING = (ROOT / "docs" / "guides" / "monitoring.md").read_text("utf-8")

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


@pytest.fixture
def unit():
    """Its section on the service."""
    parser = configparser.ConfigParser(interpolation=None, delimiters="=")
    parser.optionxform = str
    parser.read(UNIT, "utf-8")
    return parser["Service"]


@needs_systemd
@pytest.mark.usefixtures("slow")
def test_systemd_understands_every_line(tmp_path):
    here = tmp_path / "tillbook.service"
    here.write_text(
        UNIT.read_text("utf-8").replace("/opt/tillbook/.venv/bin/tillbook", str(ROOT / "cli" / "tillbook.sh"))
    )
    done = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True)
    assert "tillbook.service" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


@needs_systemd
@pytest.mark.usefixtures("slow")
def test_systemd_finds_few_unneeded_rights():
    judged = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", UNIT]  # 2.0 of 10
    done = subprocess.run(judged, capture_output=True, text=True)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd judges no files")
    assert done.returncode == 0, done.stdout


def test_it_runs_as_an_ordinary_user_in_the_folder_of_the_documentation(unit):
    assert unit["User"] == "tillbook"
    assert (unit["WorkingDirectory"], unit["ExecStart"]) == ("/opt/tillbook", "/opt/tillbook/.venv/bin/tillbook serve")
    assert "\n| `/opt/tillbook` | the program" in INSTALL


def test_it_may_write_its_data_and_the_folder_of_backups_only(unit):
    assert unit["ProtectSystem"] == "strict"
    assert unit["Environment"] == "ORDERS_INSTANCE=/var/lib/tillbook"
    assert unit["ReadWritePaths"].split() == ["/var/lib/tillbook", "-/var/backups/tillbook"]
    for folder in ("/var/lib/tillbook", "/var/backups/tillbook"):
        assert f"\n| `{folder}` |" in INSTALL


def test_it_is_restarted_if_it_no_longer_says_that_it_works(unit):
    assert (unit["Type"], unit["NotifyAccess"], unit["Restart"]) == ("notify", "main", "always")
    assert unit["WatchdogSec"] == "3min"
    assert f"{3 * 60 // systemd.PER_PERIOD} seconds" in MONITORING
    assert "three minutes (`WatchdogSec`)" in MONITORING


def test_an_end_by_the_watchdog_writes_no_secrets_to_the_disk(unit):
    assert unit["LimitCORE"] == "0"


def test_it_has_room_for_every_thread_and_time_to_finish(unit):
    threads = Settings.threads + Settings.callback_workers + Settings.channel_workers + 32  # and its own
    assert int(unit["TasksMax"]) >= threads * 3 // 2
    assert int(unit["TimeoutStopSec"]) > 35
