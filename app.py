"""The application: settings, database and commands. `python app.py` is `flask serve`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask import Flask
from flask.cli import FlaskGroup

import cli
import settings
from cli.output import ends_in_one_line
from models import schema
from models.db import sqlite, writer
from models.db.base import open_database, open_postgres
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from services.console import statistics
from services.ledger import scheduled_checks
from services.merchants import cache
from services.platform import files, logs, storage_health
from services.sandbox import clock_offset
from services.security import vault


class Service(Flask):
    """A Flask application of synchronous functions."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function as it is: Flask would look into several for each request, whether they are asynchronous."""
        return func


def _open(chosen: settings.Settings) -> settings.Settings:
    """Bring the process's database and vault up. Raises VaultLocked, NoDriver, DatabaseError or OSError.

    Returns: the settings; a command works in demo mode if the database is the demo's, and only then, as it is served.
    """
    settings.use(chosen)
    chosen.instance.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.secure(chosen)
    writer.stop()
    cache.forget()
    storage_health.trial.forget()
    statistics.kept.forget()
    scheduled_checks.allow()
    if chosen.database_url:
        open_postgres(chosen.database_url, chosen.database_connections)
    else:
        sqlite.make(chosen.database)
        open_database(chosen.database)
    schema.create()
    lacking = schema.missing()  # nothing more is asked of a database that a newer version wrote
    sealed = Merchant.select(Merchant.secret).limit(1).scalar() or Channel.select(Channel.config).limit(1).scalar()
    vault.open_vault(chosen.vault_key, chosen.instance / "vault.key", create=sealed is None)
    if sealed is not None:
        vault.unseal(sealed)  # the right key?
    clock_offset.recall(knows_demo=not lacking)
    if not lacking and sealed is not None and cli.is_all_that_runs(sys.argv):
        chosen = replace(chosen, demo=Merchant.any_demo())
        settings.use(chosen)
    return chosen


def begin(chosen: settings.Settings | None = None) -> settings.Settings:
    """Have this process work with these settings, or those of its environment, and their database.

    A setting, key or database that can't be used ends the process with one line and status 2.
    """
    with ends_in_one_line():
        chosen = chosen or settings.load()
        if cli.needs_no_database(sys.argv):
            settings.use(chosen)
        else:
            chosen = _open(chosen)
    logs.begin(chosen)
    return chosen


def create_app(chosen: settings.Settings | None = None) -> Flask:
    """The WSGI application; starts nothing. For a command it is one that serves nothing, which starts sooner."""
    chosen = begin(chosen)
    app = Service(
        __name__, instance_path=str(chosen.instance), template_folder="blueprints/templates", static_folder=None
    )
    app.cli = cli.commands(serve="web:serve")
    if not cli.is_all_that_runs(sys.argv):
        import web

        web.begin()
        web.init(app, chosen)
    return app


if __name__ == "__main__":
    FlaskGroup(create_app=create_app).main(args=["serve", *sys.argv[1:]])
