"""The commands that serve, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import errno
import faulthandler
import gc
import logging
import os
import sys
import threading
from contextlib import nullcontext

import click
from flask import Flask, current_app

from blueprints.api import envelope
from blueprints.console import uploads
from cli.output import ends_in_one_line
from models import schema
from models.db import writer
from models.db.base import database
from models.tables.merchant import Merchant
from runtime import settings
from runtime.state import current
from services.backups import after_restore
from services.errors import OperatorError
from services.jobs import job_table
from services.platform import cpu_affinity, instance_lock, proxies, systemd
from services.platform.counted_metrics import counters
from services.sandbox import address, demo, removal, seeding
from serving.application import BODY_LIMIT, refusals
from serving.http_server import Server, until_asked

log = logging.getLogger(__name__)


def _print(text: str, chosen: settings.Settings) -> None:
    """Print a line for the operator on standard error, or log it if the log is JSON."""
    if chosen.log_format == "json":
        log.info(text)
    else:
        click.echo(text, err=True)


def _serve_until_asked(app: Flask, chosen: settings.Settings, asked: threading.Event) -> None:
    """Serve until `asked` is set, then finish the requests in progress.

    Raises:
        OperatorError: the address is not available.
    """
    envelope.draining().clear()

    def started() -> None:
        if chosen.demo and chosen.log_format == "text":
            click.echo(demo.banner(chosen.public_url, chosen.api_prefix))
        if chosen.demo and (warning := demo.exposed(chosen.host)):
            log.warning(warning)
        _print(f"serving on {chosen.local_url}" + (f", as {chosen.site_url}" if chosen.site_url else ""), chosen)
        watchdog.start()

    def drain() -> None:
        envelope.draining().set()
        watchdog.stop()
        stop_jobs()

    try:
        server = Server(
            app,
            chosen.host,
            chosen.port,
            threads=chosen.threads,
            waiting=chosen.waiting,
            body_limit=BODY_LIMIT,
            upload_limit=uploads.LIMIT,
            is_upload=uploads.is_upload,
            uploader=current().bound(app.extensions["console"].session_of),
            plain=refusals(app, chosen.access_log),
            started=started,
            drain=current().bound(drain),
        )
    except OSError as error:
        text = f"cannot listen on {chosen.host}:{chosen.port}: {error.strerror or error}"
        remedy = ". Stop the other program, or choose another port: ORDERS_PORT=8001, or port in config.toml"
        raise OperatorError(text + (remedy if error.errno == errno.EADDRINUSE else "")) from None
    counters().load = server.load
    faulthandler.enable()  # systemd ends a hung process by SIGABRT: the log then has the stack of each thread
    watchdog = systemd.Watchdog((server.check, writer.check, systemd.frequent_jobs))
    stop_jobs = job_table.start(chosen)
    if chosen.demo:
        address.keep(chosen)
    # The objects created so far are permanent. Searching them for garbage would delay all requests by about 50 ms each
    # time.
    gc.collect()
    gc.freeze()
    if server.run(asked):  # otherwise the callers of waiting writes have ended
        writer.stop()
    _print("stopped", chosen)


def _seed_or_refuse(chosen: settings.Settings) -> None:
    """Seed the demo's content in demo mode; otherwise refuse a database with some of it. Raises OperatorError."""
    if chosen.demo:
        seeding.seed_base()
        seeding.seed_operators()
    elif Merchant.any_demo():
        raise OperatorError("the database has the demo merchants: choose another ORDERS_INSTANCE, or set ORDERS_DEMO=1")
    else:
        removal.refuse_leftovers()
        removal.disable()


@click.command("serve")
def serve() -> None:
    """Run the service until Ctrl-C or SIGTERM."""
    asked = until_asked()  # before anything is begun that would have to be ended
    chosen = current().settings
    # Postgres supports several services.
    alone = nullcontext() if database.is_shared else instance_lock.locked(chosen.database.resolve().parent)
    with ends_in_one_line(), alone:
        schema.check()
        after_restore.warn()
        if warning := proxies.warning():
            log.warning("%s", warning)
        _seed_or_refuse(chosen)
        if chosen.one_core:
            writer.stop()  # it starts again on the same core as the rest
            cpu_affinity.stay_on_one(chosen.port)
        _serve_until_asked(current_app._get_current_object(), chosen, asked)  # type: ignore[attr-defined]
    # End the process without shutting down the interpreter. Threads may still run: for a client that does not read or a
    # callback that hangs, and granian's own, which panic when Python ends them.
    sys.stdout.flush()
    logging.shutdown()
    os._exit(0)


@click.command("demo")
@click.pass_context
def serve_demo(context: click.Context) -> None:
    """Serve the demo, in which no real money moves, until Ctrl-C. For another port, set ORDERS_PORT=8001."""
    context.invoke(serve)
