"""One service per instance: a second process is refused at the start, and a killed one leaves no lock."""

import os
import stat

import pytest

from services.platform import instance_lock
from tests.support import Service

pytestmark = pytest.mark.sqlite


def test_a_second_service_on_the_same_database_is_refused_until_the_first_is_killed(service, tmp_path):
    linked, other = tmp_path / "linked", tmp_path / "other"
    linked.symlink_to(service.instance)
    other.mkdir()
    (other / "orders.sqlite").symlink_to(service.instance / "orders.sqlite")
    (other / "vault.key").write_bytes((service.instance / "vault.key").read_bytes())
    running = f"a service (process {service.process.pid}) is already running on this instance"
    for folder in (service.instance, linked, other):
        assert running in Service(folder).refused(), folder
    assert service.api.buy().code == 1
    assert "demo" in service.flask("merchant", "list").stdout, "commands need no lock"
    service.kill()
    assert service.start().api.buy().code == 1


def test_it_names_its_owner_and_is_released_at_the_end_and_after_an_error(tmp_path):
    with instance_lock.locked(tmp_path):
        assert (tmp_path / instance_lock.NAME).read_text() == f"{os.getpid()}\n"
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
