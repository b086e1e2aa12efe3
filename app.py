"""The application: settings, database and commands.

`python app.py COMMAND` is `tillbook COMMAND`; without a command it serves.
"""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the process without a traceback

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flask import Flask

import cli
from cli.command_line import Tillbook
from cli.help import choose
from cli.output import ends_in_one_line
from models import schema
from models.db import sqlite
from models.db.base import open_database, open_postgres
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from runtime import settings
from runtime.state import Runtime
from services.platform import files, logs
from services.sandbox import address, clock_offset
from services.security import vault


class Service(Flask):
    """A Flask application of synchronous functions."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function unchanged: Flask would check on each request whether it is asynchronous."""
        return func


def _open(runtime: Runtime) -> None:
    """Open the database and the vault. Raises VaultLocked, NoDriver, DatabaseError or OSError.

    A command works in demo mode if the database is the demo's, and only then, as it is served.
    """
    chosen = runtime.settings
    chosen.instance.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.secure(chosen)
    if chosen.database_url:
        open_postgres(chosen.database_url, chosen.database_connections)
    else:
        sqlite.make(chosen.database)
        open_database(chosen.database)
    schema.create()
    lacking = schema.missing()  # a database of a newer version is not queried further
    sealed = Merchant.select(Merchant.secret).limit(1).scalar() or Channel.select(Channel.config).limit(1).scalar()
    vault.open_vault(chosen.vault_key, chosen.instance / "vault.key", create=sealed is None)
    if sealed is not None:
        vault.decrypt(sealed)  # raises if the key is wrong
    clock_offset.recall(knows_demo=not lacking)
    if not lacking and sealed is not None and cli.needs_no_blueprints():
        demo = Merchant.any_demo()
        runtime.settings = replace(address.applied(chosen) if demo else chosen, demo=demo)


def _settings() -> settings.Settings:
    return settings.load({**os.environ, "ORDERS_DEMO": "1"} if cli.is_demo() else os.environ)


def begin(chosen: settings.Settings | None = None) -> Runtime:
    """Create and enter a runtime with these settings, or those of the environment, and open its database.

    An invalid setting, key or database ends the process with one line and status 2.
    """
    with ends_in_one_line():
        runtime = Runtime(chosen or _settings())
        runtime.enter()
        if not cli.needs_no_database():
            _open(runtime)
    logs.begin(runtime.settings)
    return runtime


def build(runtime: Runtime) -> Flask:
    """Create the WSGI application of a runtime; starts nothing. For a command, it serves nothing."""
    chosen = runtime.settings
    app = Service(
        __name__, instance_path=str(chosen.instance), template_folder="blueprints/templates", static_folder=None
    )
    app.extensions["runtime"] = runtime
    app.cli = cli.commands()
    if not cli.needs_no_blueprints():
        from serving import application

        application.init(app, chosen)
    return app


def create_app(chosen: settings.Settings | None = None) -> Flask:
    """Create the WSGI application with a runtime of its own."""
    return build(begin(chosen))


def main(arguments: list[str] | None = None) -> None:
    """Run the command `tillbook` with these arguments, or with those of the process."""
    if cli.SERVING.keys().isdisjoint(sys.argv[1:2] or ["serve"]):  # the service sets its own handler
        signal.signal(signal.SIGINT, signal.default_int_handler)  # other commands clean up
    chosen = None
    with suppress(settings.WrongSetting):  # the command reports it, and its help is in English
        chosen = _settings()
        choose(chosen.language)
    Tillbook(lambda: create_app(chosen)).main(args=arguments, prog_name="tillbook")


if __name__ == "__main__":
    main(sys.argv[1:] or ["serve"])
