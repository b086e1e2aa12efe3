"""Keys, settings and data that other users could read: restricted at start, with a warning, or refused."""

import errno
import os
import stat

import pytest

import app
from models.db.base import database
from tests.databases import settings_of

FILES = ("vault.key", "vault.key.before-20260101T000000.000000Z", "config.toml", "orders.sqlite")

pytestmark = pytest.mark.sqlite


@pytest.fixture
def wide(instance):
    """An instance folder that other users may read, with a config.toml and the keys from before a rotation."""
    for name in FILES[1:3]:
        (instance / name).write_text("", "utf-8")
    for path in (instance, *(instance / name for name in FILES)):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return instance


def modes(folder):
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *(folder / name for name in FILES))}


def start(folder):
    app.begin(settings_of(folder))
    database.close()


def warnings(caplog):
    return [record.message for record in caplog.records if "Other users" in record.message]


def test_readable_files_are_restricted_with_a_warning(wide, caplog):
    (wide / "backups").mkdir(mode=0o755, exist_ok=True)
    start(wide)
    assert modes(wide) == {wide.name: "0o700"} | dict.fromkeys(FILES, "0o600")
    assert stat.S_IMODE((wide / "backups").stat().st_mode) == 0o700
    (line,) = warnings(caplog)
    assert all(name in line for name in FILES)
    assert "tillbook vault rotate" in line
    caplog.clear()
    start(wide)
    assert warnings(caplog) == []


def test_in_a_private_folder_a_file_is_restricted_without_a_warning(wide, caplog):
    wide.chmod(0o700)
    start(wide)
    assert modes(wide) == {wide.name: "0o700"} | dict.fromkeys(FILES, "0o600")
    assert warnings(caplog) == []


def test_a_group_may_read_a_mounted_key(wide):
    wide.chmod(0o750)
    (wide / "vault.key").chmod(0o640)
    start(wide)
    assert modes(wide)["vault.key"] == "0o640"


@pytest.mark.parametrize("error", [errno.EPERM, errno.EROFS])
@pytest.mark.parametrize("name", FILES[:3])
def test_a_readable_file_that_cannot_be_restricted_is_refused_in_one_line(wide, name, error, monkeypatch, capsys):
    """Simulates another user's file or a read-only disk, since these tests may run as root."""
    chmod = os.chmod

    def refuse(path, mode, **how):
        if os.fspath(path).endswith(name):
            raise OSError(error, os.strerror(error))
        chmod(path, mode, **how)

    monkeypatch.setattr(os, "chmod", refuse)
    with pytest.raises(SystemExit) as end:
        app.begin(settings_of(wide))
    assert end.value.code == 2
    assert (
        f"other users can read or write {wide / name}, and its permissions cannot be changed" in capsys.readouterr().err
    )
