"""The key that decrypts the database: from its file or the environment, changed, wrong, or lost."""

import os

import pytest
from cryptography.fernet import Fernet

from tests.support import DemoService, Service

pytestmark = pytest.mark.usefixtures("any_database")


def _new_key():
    return Fernet.generate_key().decode()


def _secret(instance, **environ):
    """The output and the status of a command that decrypts a value."""
    done = Service(instance, **environ).flask("merchant", "show", "demo", check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_key_from_the_environment_creates_no_file(tmp_path):
    service = DemoService(tmp_path, ORDERS_VAULT_KEY=_new_key())
    service.flask("seed")
    assert "whsec_" in service.flask("merchant", "show", "demo").stdout
    assert not (tmp_path / "vault.key").exists()


def test_a_new_key_before_the_old_one_decrypts_both(instance):
    file, new = instance / "vault.key", _new_key()
    old = file.read_text().strip()
    both = Service(instance, ORDERS_VAULT_KEY=f"{new},{old}")
    for key in ("demo", "other"):
        both.flask("merchant", "rotate", key, "--keep-hours", "0")
    both.flask("merchant", "rotate", "other", "--callback")
    assert _secret(instance, ORDERS_VAULT_KEY=f"{new},{old}")[0] == 0
    # Encrypted with it.
    assert Service(instance, ORDERS_VAULT_KEY=new).flask("merchant", "show", "other").returncode == 0
    file.write_text(f"{new}\n{old}")
    assert _secret(instance)[0] == 0, "the file may contain several keys"


def test_a_command_with_a_wrong_key_reports_it_in_one_line(instance):
    status, said = _secret(instance, ORDERS_VAULT_KEY=_new_key())
    assert (status, len(said.splitlines())) == (2, 1)
    assert "encrypted with another key" in said


@pytest.mark.usefixtures("slow")
def test_the_service_does_not_start_with_a_wrong_or_lost_key(instance):
    """It would respond to every signed request with an error, and encrypt new data with a key of its own."""
    file = instance / "vault.key"
    assert "key" in Service(instance, ORDERS_VAULT_KEY=_new_key()).refused()
    file.unlink()
    assert "vault.key: No such file or directory. Restore the key file" in Service(instance).refused()
    assert not file.exists()
    file.mkdir()
    assert "vault.key" in Service(instance).refused()
    assert file.is_dir()


@pytest.mark.usefixtures("slow")
def test_a_damaged_key_file_is_refused_and_unchanged(instance):
    file = instance / "vault.key"
    whole = file.read_bytes()
    without_a_key = [text.encode() for text in ("", "\n", "not a key\n", "ключ\n")]
    for damaged in (*without_a_key, whole[:20], whole[:-3], b"x" + whole, bytes(range(256))):
        file.write_bytes(damaged)
        said = Service(instance).refused()
        assert ("vault.key has no valid key" if damaged in without_a_key else "vault.key") in said, damaged
        assert file.read_bytes() == damaged
    file.write_bytes(whole)
    assert _secret(instance)[0] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
@pytest.mark.usefixtures("slow")
def test_a_key_file_that_can_not_be_read_is_refused(instance):
    (instance / "vault.key").chmod(0)
    assert "vault.key" in Service(instance).refused()


def test_a_lost_key_file_is_not_replaced_if_only_a_channel_was_encrypted(tmp_path):
    service = Service(tmp_path / "instance")
    service.flask("channel", "add", "--category", "gateway_c", "--driver", "manual", "--name", "Shop")
    (service.instance / "vault.key").unlink()
    assert service.flask("channel", "list", check=False).returncode == 2
    assert not (service.instance / "vault.key").exists()
