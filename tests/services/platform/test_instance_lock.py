"""One service per instance: a second process is refused at the start, and a killed one leaves no lock."""

import os
import stat
import subprocess
import sys

import pytest

from services.errors import OperatorError
from services.platform import instance_lock
from tests.support import Service

pytestmark = pytest.mark.sqlite

HOLD = """
import sys, pathlib
from services.platform import instance_lock
with instance_lock.locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process with the lock of `tmp_path`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_service_on_the_same_database_is_refused_at_the_start(service):
    second = Service(service.instance)
    said = second.refused()
    assert f"a service (process {service.process.pid}) is already running on this instance" in said
    assert service.api.buy().code == 1


def test_a_second_service_that_reaches_the_database_by_another_path_is_refused_too(service, tmp_path):
    linked, other = tmp_path / "linked", tmp_path / "other"
    linked.symlink_to(service.instance)
    other.mkdir()
    (other / "orders.sqlite").symlink_to(service.instance / "orders.sqlite")
    (other / "vault.key").write_bytes((service.instance / "vault.key").read_bytes())
    for folder in (linked, other):
        assert "a service (process" in Service(folder).refused()


def test_after_kill_9_the_next_one_starts_immediately(service):
    service.kill()
    assert service.start().api.buy().code == 1


@pytest.mark.usefixtures("slow")
def test_the_owner_is_named_and_after_its_end_the_next_gets_the_lock(tmp_path, holder):
    with pytest.raises(OperatorError, match=f"process {holder.pid}"), instance_lock.locked(tmp_path):
        pass
    holder.kill()
    holder.wait()
    with instance_lock.locked(tmp_path):
        assert (tmp_path / instance_lock.NAME).read_text() == f"{os.getpid()}\n"


def test_it_is_released_at_the_end_and_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), instance_lock.locked(tmp_path):
        raise ZeroDivisionError
    with instance_lock.locked(tmp_path):
        pass


def test_only_the_owner_of_the_folder_can_open_the_file(tmp_path):
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12345)
    with instance_lock.locked(tmp_path):
        found = (tmp_path / instance_lock.NAME).stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, tmp_path.stat().st_uid)


def test_commands_need_no_lock(service):
    assert "demo" in service.flask("merchant", "list").stdout
