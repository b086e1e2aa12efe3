"""`tillbook vault rotate`: a new key for all encrypted values, while the service runs, and after any interruption."""

import errno
import json
import shutil
import sqlite3
import threading
from contextlib import closing
from itertools import chain
from pathlib import Path

import pyotp
import pytest
from cryptography.fernet import Fernet, InvalidToken

from app import create_app
from models.db.base import database
from services.notifications import destinations
from services.platform import files
from services.sandbox import seeding
from services.security import key_rotation, operators, second_factor, vault
from tests import databases, postgres
from tests.services.notifications.receiving import FACTS
from tests.support import CARD, PERSON, ROOT, Service, until

ROTATE = ("vault", "rotate", *(["--only-host"] if postgres.IN_USE else []))

GATEWAY_A = {"channel": 1, "gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}


@pytest.fixture
def sealed_rows(api, flask):
    """An encrypted value in every column; returns the decrypted values, by column and row."""
    flask("merchant", "rotate", "other")
    flask("merchant", "rotate", "other", "--callback")
    flask("epay", "enable", "demo", "--host", "shop.example")
    flask("epay", "rotate", "demo")
    flask("epay", "rotate", "demo", "--rsa")
    seeding.seed_operators()
    secret = second_factor.new_secret()
    second_factor.set_up(operators.find("demo"), secret, pyotp.TOTP(secret).now(), session_id=0)
    destinations.add("wecom", {"url": "https://hooks.example.com/?key=secret"}, name="Operations", **FACTS)
    for number in range(3):
        assert api.buy(customer_name=f"客户{number}").code == 1
        assert api.sell("1.00", **GATEWAY_A).code == 1
    return _opened(vault.key_ring())


def _opened(ring):
    """All encrypted values, decrypted by a ring: `{(column, row): text}`."""
    return {
        (key_rotation.name_of(column), row): ring.open(token)
        for column in key_rotation.COLUMNS
        for step in key_rotation.batches(column)
        for row, token in step
    }


@pytest.fixture
def key_file(instance):
    """The key file of the instance."""
    return instance / "vault.key"


def _keys(file):
    return file.read_text().split()


def _old_keys(instance):
    return [_keys(path) for path in sorted(instance.glob("vault.key.before-*"))]


def test_every_encrypted_column_is_known(sealed_rows):
    """All values that begin like Fernet's tokens are encrypted."""
    found = set()
    for table in database.get_tables():
        for column in database.get_columns(table):
            query = f'SELECT 1 FROM "{table}" WHERE substr(CAST("{column.name}" AS TEXT), 1, 6) = \'gAAAAA\''
            if table != "order_search" and database.execute_sql(query).fetchone():
                found.add(f"{table}.{column.name}")
    assert found == {key_rotation.name_of(column) for column in key_rotation.COLUMNS}
    assert found == {column for column, _ in sealed_rows}


def test_everything_is_encrypted_with_the_new_key_and_the_old_one_is_kept(
    flask, sealed_rows, instance, key_file, tmp_path
):
    def moments():
        return [
            Fernet(vault.key_ring().keys[0]).extract_timestamp(token)
            for column in key_rotation.COLUMNS
            for step in key_rotation.batches(column)
            for _, token in step
        ]

    (old,) = _keys(key_file)
    encrypted_at = moments()
    said = flask(*ROTATE, "--wait", 0).output
    (new,) = _keys(key_file)
    assert new != old
    assert _old_keys(instance) == [[old]]
    assert ("vault.key.before-" in said, new in said) == (True, False)
    assert _opened(vault.Ring(new)) == sealed_rows
    with pytest.raises(InvalidToken):
        _opened(vault.Ring(old))
    assert {path.stat().st_mode & 0o777 for path in instance.glob("vault.key*")} == {0o600}
    assert moments() == encrypted_at, "the time of encryption is kept"

    elsewhere = key_file.rename(tmp_path / "elsewhere.key")
    key_file.symlink_to(elsewhere)
    flask(*ROTATE, "--wait", 0)
    assert key_file.is_symlink()
    assert _opened(vault.Ring.read(elsewhere)) == sealed_rows


def test_a_key_file_that_can_not_be_replaced_ends_it_with_one_line(refuses, sealed_rows, key_file, monkeypatch):
    (old,) = _keys(key_file)

    def busy(path, target):
        raise OSError(errno.EBUSY, "Device or resource busy", str(target))  # a file that is mounted into a container

    monkeypatch.setattr(Path, "replace", busy)
    assert refuses(*ROTATE, "--wait", "0").splitlines() == [
        f"Error: {key_file}: Device or resource busy. Fix this and repeat the command"
    ]
    assert _keys(key_file) == [old]


def test_the_old_key_can_be_kept_and_a_later_rotation_still_makes_a_new_one(flask, sealed_rows, key_file):
    keys = [_keys(key_file)]
    for _ in range(2):
        flask(*ROTATE, "--wait", 0, "--keep-old")
        keys.append(_keys(key_file))
    assert keys[2][1:] == keys[1]
    assert keys[1][1:] == keys[0]
    assert _opened(vault.Ring(keys[2][0])) == sealed_rows


class Killed(BaseException):
    """An exception that no code catches."""


class _Interruption:
    """Lets this number of steps succeed, and ends the rotation at the next; the steps are all disk operations."""

    def __init__(self, monkeypatch, passing):
        self.left, self.ended = passing, False
        for module, name in ((files, "fsync"), (key_rotation, "_store"), (key_rotation.time, "sleep")):
            monkeypatch.setattr(module, name, self._counted(getattr(module, name)))
        monkeypatch.setattr(key_rotation, "STEP", 2)

    def _counted(self, function):
        def run(*arguments):
            if not self.left:
                self.ended = True
                raise Killed
            self.left -= 1
            return function(*arguments)

        return run


def test_it_may_be_killed_at_each_step_and_continues_when_it_is_repeated(sealed_rows, instance, tmp_path, monkeypatch):
    databases.close()
    passing, ends = 0, set()
    while True:
        folder = databases.copied(instance, tmp_path / f"killed-{passing}")
        create_app(databases.settings_of(folder))
        running = vault.key_ring()  # of a service that encrypted nothing since
        with monkeypatch.context() as patch:
            interruption = _Interruption(patch, passing)
            try:
                for _ in key_rotation.rotate(folder, wait=0.001, only_host=True):
                    pass
            except Killed:
                pass
        assert _opened(vault.key_ring()) == sealed_rows  # after a restart, or in a service that reads the file again
        ends.add(len(_keys(folder / "vault.key")))
        list(key_rotation.rotate(folder, wait=0, only_host=True))
        assert _opened(vault.Ring(_keys(folder / "vault.key")[0])) == sealed_rows
        assert len(_keys(folder / "vault.key")) == 1
        assert running.keys[0] in chain(*_old_keys(folder))
        databases.close()
        databases.remove(folder)
        shutil.rmtree(folder)
        if not interruption.ended:
            break
        passing += 1
    assert passing > 12
    assert ends == {1, 2}
    create_app(databases.settings_of(instance))


def test_a_value_changed_meanwhile_is_not_overwritten(flask, sealed_rows, monkeypatch, key_file):
    """A merchant's secret is changed between the rotation's read and its write."""
    store, new = key_rotation._store, []

    def change_first(column, changes):
        if not new:
            rotated = flask("merchant", "rotate", "demo", "--keep-hours", "0", "--json").stdout
            new.append(json.loads(rotated)["api_secret"])
        store(column, changes)

    monkeypatch.setattr(key_rotation, "_store", change_first)
    flask(*ROTATE, "--wait", 0)
    assert _opened(vault.Ring(_keys(key_file)[0]))["merchant.secret", 1] == new[0]


def test_a_value_that_no_key_decrypts_ends_it_and_no_key_is_removed(refuses, sealed_rows, instance, key_file):
    old = _keys(key_file)
    stranger = Fernet(Fernet.generate_key()).encrypt(b"lost").decode()
    with databases.raw(instance) as other:
        other.execute("UPDATE channel SET config = ? WHERE id = 4", (stranger,))
    assert "channel.config of row 4" in refuses(*ROTATE, "--wait", "0")
    assert _keys(key_file)[1:] == old
    with databases.raw(instance) as other:
        secrets = other.execute("SELECT secret FROM merchant").fetchall()
    assert all(vault.Ring(key_file.read_text()).open(token) for (token,) in secrets)


def test_a_second_simultaneous_rotation_is_refused(refuses, instance):
    with key_rotation._alone(instance):
        assert "is running" in refuses(*ROTATE)


@pytest.mark.usefixtures("slow")
def test_a_key_from_a_setting_is_used_and_the_others_can_be_removed(instance):
    (old,) = _keys(instance / "vault.key")
    (instance / "vault.key").unlink()
    new = Fernet.generate_key().decode()
    said = Service(instance, ORDERS_VAULT_KEY=f"{new},{old}").flask("vault", "rotate").stdout
    assert "remove the other 1" in said
    assert new not in said
    alone = Service(instance, ORDERS_VAULT_KEY=new)
    assert "put a new one before it" in alone.flask("vault", "rotate").stdout
    alone.start()
    assert alone.api.buy(customer_name="张三").code == 1
    assert alone.stop() == 0
    assert not list(instance.glob("vault.key*"))


def test_the_service_continues_during_a_rotation(service):
    """Signed requests succeed, and names are encrypted, before, during and after; no order's name is lost."""
    stop, codes, placed = threading.Event(), [], []

    def place():
        while not stop.wait(0.02):
            answer = service.api.buy(channel=3, customer_name="张三")
            codes.append(answer.code)
            placed.extend([answer.data["order_no"]] if answer.code == 1 else [])

    def some_more():
        enough = len(placed) + 10
        until(lambda: len(placed) > enough)

    client = threading.Thread(target=place)
    client.start()
    try:
        for _ in range(2):
            some_more()
            service.flask(*ROTATE, "--wait", "2")
        some_more()
    finally:
        stop.set()
        client.join()
    assert set(codes) == {1}
    assert len(_keys(service.instance / "vault.key")) == 1
    create_app(databases.settings_of(service.instance))
    opened = _opened(vault.key_ring())
    assert sum(column == "order.customer_name" for column, _ in opened) == len(placed)
    database.close()
    assert service.stop() == 0
    assert "Traceback" not in service.log.read_text()


def test_a_broken_key_file_does_not_stop_the_running_service(service):
    """The keys in its memory decrypt everything."""
    text = (service.instance / "vault.key").read_text()
    (service.instance / "vault.key").write_text("broken")
    assert service.api.buy(customer_name="张三").code == 1
    assert service.api.buy(customer_name="张三").code == 1
    assert service.log.read_text().count("vault.key cannot be used") == 1
    (service.instance / "vault.key").write_text(text)
    assert service.api.buy(customer_name="张三").code == 1
    assert service.flask(*ROTATE, "--wait", "0").returncode == 0


@pytest.mark.sqlite
@pytest.mark.parametrize("release", sorted(path.stem for path in (ROOT / "tests" / "data").glob("*.sql")))
def test_the_key_of_an_upgraded_database_rotates(tmp_path, release):
    data, folder = ROOT / "tests" / "data", tmp_path / "instance"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "orders.sqlite")) as old:
        old.executescript((data / f"{release}.sql").read_text("utf-8"))
    shutil.copy(data / f"{release}.key", folder / "vault.key")
    service = Service(folder)
    service.flask("db", "migrate")
    service.flask(*ROTATE, "--wait", "0")
    service.flask("merchant", "show", "demo")
