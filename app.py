"""The application: settings, database, blueprints, scheduler. `python app.py` is `flask serve`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime

import click
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from flask import Flask, current_app
from flask.cli import FlaskGroup
from flask_babel import Babel
from peewee import DatabaseError
from werkzeug.middleware.proxy_fix import ProxyFix

import cli
import settings
from blueprints import auth, envelope, gate
from blueprints.cashier import pages
from blueprints.health import health
from blueprints.merchant import merchant_api
from blueprints.notices import notices
from blueprints.regions import regions
from blueprints.sandbox import forget as forget_inbox
from blueprints.sandbox import sandbox
from models import schema, search, writer
from models.base import open_database
from models.channel import Channel
from models.merchant import Merchant
from server import Server, core_of_its_own, staying_on, until_asked
from services import callbacks, demo, directory, reconciliation, replay, seeding, vault
from services.errors import NotPossible
from services.fairpool import FairPool

BODY_LIMIT = 64 * 1024
SWEEP_SECONDS = 0.5
SEARCH_SECONDS = 1
PURGE_SECONDS = 5


def _open(chosen: settings.Settings) -> None:
    """Bring the process's database and vault up. Raises WrongSchema, VaultLocked or OSError."""
    settings.use(chosen)
    chosen.instance.mkdir(mode=0o700, parents=True, exist_ok=True)
    chosen.database.touch(mode=0o600)
    writer.stop()
    directory.forget()
    open_database(chosen.database)
    schema.create()
    sealed = Merchant.select(Merchant.secret).limit(1).scalar() or Channel.select(Channel.config).limit(1).scalar()
    vault.open_vault(chosen.vault_key, chosen.instance / "vault.key", create=sealed is None)
    if sealed is not None:
        vault.unseal(sealed)  # the right key?


def create_app(chosen: settings.Settings | None = None) -> Flask:
    """The WSGI application; starts nothing.

    A setting, key or database that can't be used ends the process with one line and status 2.
    """
    try:
        chosen = chosen or settings.load()
        _open(chosen)
    except (settings.WrongSetting, vault.VaultLocked, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except DatabaseError as error:
        click.echo(f"error: {settings.active().database}: {error}", err=True)
        sys.exit(2)
    logging.basicConfig(level=chosen.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    logging.getLogger("_granian").setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.INFO)  # at DEBUG it tells addresses with what is in their query
    app = Flask(
        __name__, instance_path=str(chosen.instance), template_folder="blueprints/templates", static_folder=None
    )
    app.url_map.merge_slashes = False  # an address that is nearly right is unknown, not a redirect
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    app.config["BABEL_TRANSLATION_DIRECTORIES"] = str(settings.ROOT / "blueprints" / "translations")
    Babel(app, default_locale=chosen.language, locale_selector=envelope.language)
    if chosen.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=chosen.trusted_proxies, x_proto=chosen.trusted_proxies)  # type: ignore[method-assign]
    auth.init()
    replay.memory.forget()
    forget_inbox()
    envelope.init(app)
    gate.init(app)
    app.register_blueprint(merchant_api, url_prefix=chosen.api_prefix + str(merchant_api.url_prefix))
    for blueprint in (regions, pages, notices, sandbox, health):
        app.register_blueprint(blueprint)
    cli.register(app)
    app.cli.add_command(serve)
    return app


def start_scheduler(chosen: settings.Settings) -> Callable[[], None]:
    """Start the jobs that the service does by itself; the returned call ends them and waits for what is under way."""
    senders = FairPool(chosen.callback_workers, "callback")
    askers = FairPool(chosen.channel_workers, "channel")
    jobs = ThreadPoolExecutor()
    scheduler = BackgroundScheduler(
        timezone=UTC,
        executors={"default": jobs},
        job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
    )
    scheduler.add_job(callbacks.sweep, "interval", [senders], seconds=SWEEP_SECONDS, id="callbacks")
    scheduler.add_job(reconciliation.sweep, "interval", [askers], seconds=SWEEP_SECONDS, id="orders")
    scheduler.add_job(replay.purge, "interval", seconds=PURGE_SECONDS, id="purge")
    scheduler.add_job(search.catch_up, "interval", seconds=SEARCH_SECONDS, id="search")
    scheduler.start()

    def wake() -> None:
        with suppress(JobLookupError):  # it was stopped just now
            scheduler.modify_job("callbacks", next_run_time=datetime.now(UTC))

    callbacks.when_enqueued(wake)

    def stop() -> None:
        callbacks.when_enqueued(None)
        # While it waits for jobs it holds a lock that `wake` needs; they may wait for the writer, which calls `wake`.
        scheduler.shutdown(wait=False)
        jobs.shutdown()
        senders.stop()
        askers.stop()

    return stop


def _serve_until_asked(app: Flask, chosen: settings.Settings, core: int | None, asked: Callable[[], object]) -> bool:
    """Answer requests until `asked` returns, then finish what is in flight.

    Returns:
        Whether all of it was finished.

    Raises:
        NotPossible: the address can't be listened on.
    """
    envelope.draining.clear()
    stopped: list[Callable[[], None]] = []

    def drain() -> None:
        envelope.draining.set()
        for stop in stopped:
            stop()

    try:
        server = Server(
            app,
            chosen.host,
            chosen.port,
            threads=chosen.threads,
            waiting=chosen.waiting,
            body_limit=BODY_LIMIT,
            core=core,
            plain=envelope.prepared(app),
            drain=drain,
        )
    except OSError as error:
        raise NotPossible(f"can't listen on {chosen.host}:{chosen.port}: {error}") from None
    with staying_on(core):
        writer.stop()  # it starts again with the first that needs it, beside that one
        stopped.append(start_scheduler(chosen))
    if chosen.demo:
        click.echo(demo.banner(chosen.public_url, chosen.api_prefix))
    click.echo(f"serving on {chosen.public_url}", err=True)
    finished = server.run(asked)
    writer.stop()
    click.echo("stopped", err=True)
    return finished


@click.command("serve")
def serve() -> None:
    """Serve until asked to stop; in demo mode, with the seeded demo."""
    asked = until_asked()  # before anything is begun that would have to be ended
    chosen = settings.active()
    try:
        schema.check()
        if chosen.demo:
            seeding.seed_base()
        elif seeding.is_demo():
            raise NotPossible(
                "the database holds the demo merchants: choose another ORDERS_INSTANCE, or set ORDERS_DEMO=1"
            )
        with core_of_its_own() if chosen.one_core else nullcontext() as core:
            finished = _serve_until_asked(current_app._get_current_object(), chosen, core, asked)  # type: ignore[attr-defined]
    except (schema.WrongSchema, NotPossible, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    if not finished:  # a client does not read its answer, or a callback hangs: neither may keep the process
        sys.stdout.flush()
        logging.shutdown()
        os._exit(0)


if __name__ == "__main__":
    FlaskGroup(create_app=create_app).main(args=["serve", *sys.argv[1:]])
