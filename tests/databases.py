"""Which database a test's instance folder has: its own SQLite file, or one of Postgres (`TEST_DATABASE=postgres`)."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

from models import writer
from models.base import database
from settings import Settings
from tests import postgres

CONFIG = "config.toml"


def _url(folder: Path) -> str:
    config = folder / CONFIG
    return tomllib.loads(config.read_text()).get("database_url", "") if config.exists() else ""


def _place(folder: Path, template: str) -> str:
    """Give a folder a new database of Postgres, a copy of another; its address."""
    url = postgres.cluster().url(postgres.cluster().create(template))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(f'database_url = "{url}"\n')
    return url


def _name(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def url_of(folder: Path) -> str:
    """The address of the folder's database, made empty where there is none; empty where the tests run on SQLite."""
    if not postgres.IN_USE:
        return ""
    return _url(folder) or _place(folder, "template0")


def settings_of(folder: Path, **more: Any) -> Settings:
    """The settings of a service in a folder."""
    return Settings(**{"instance": folder, "database_url": url_of(folder)} | more)


def copied(seeded: Path, folder: Path) -> Path:
    """A copy of an instance that nobody uses, in a new folder."""
    shutil.copytree(seeded, folder)
    if postgres.IN_USE:
        _place(folder, _name(_url(seeded)))
    return folder


def remove(folder: Path) -> None:
    """The folder's database goes, if Postgres has it."""
    if postgres.IN_USE and _url(folder):
        postgres.cluster().drop(_name(_url(folder)))


def close() -> None:
    """Have no connection to the database that this process uses."""
    writer.stop()
    if database.is_shared:
        database.close_all()
        return
    database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
