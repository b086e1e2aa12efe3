"""Fixtures: a seeded service in this process, one in a process of its own, and its commands."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app import create_app
from models.base import database
from services import callbacks, ledger, reconciliation, seeding
from settings import Settings
from tests.support import Api, InlinePool, Service, through_flask


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An instance folder with the demo content, to be copied."""
    folder = tmp_path_factory.mktemp("seeded")
    create_app(Settings(instance=folder, demo=True))
    seeding.seed_base()
    database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return folder


@pytest.fixture
def instance(seeded: Path, tmp_path: Path) -> Path:
    """This test's own copy of the demo content."""
    return Path(shutil.copytree(seeded, tmp_path / "instance"))


@pytest.fixture
def settings_of_app() -> dict[str, Any]:
    """Override to change settings of `app`."""
    return {}


@pytest.fixture
def app(instance: Path, settings_of_app: dict[str, Any]) -> Iterator[Any]:
    """The application on the demo content; its jobs run only where a test asks for it (`due`)."""
    yield create_app(dataclasses.replace(Settings(instance=instance, demo=True), **settings_of_app))
    database.close()


@pytest.fixture
def http(app: Any) -> Any:
    """`http(method, path, body, headers)` to the application."""
    return through_flask(app.test_client())


@pytest.fixture
def api(http: Any) -> Api:
    """The merchant `demo`."""
    return Api(http)


@pytest.fixture
def other(http: Any) -> Api:
    """The merchant `other`."""
    return Api(http, "other")


@pytest.fixture
def due(app: Any) -> Any:
    """Call it to do all that is due now: orders (`due.orders()`), callbacks (`due.callbacks()`), or both."""

    class Due:
        def orders(self) -> int:
            return reconciliation.sweep(InlinePool())  # type: ignore[arg-type]

        def callbacks(self) -> int:
            return callbacks.sweep(InlinePool())  # type: ignore[arg-type]

        def __call__(self) -> int:
            return self.orders() + self.callbacks()

    return Due()


@pytest.fixture
def ahead(time_machine: Any) -> Any:
    """`ahead(60)` sets the clock a minute ahead; it goes on ticking."""
    time_machine.move_to(datetime.now(UTC))
    return time_machine.shift


@pytest.fixture
def flask(app: Any) -> Any:
    """`flask("order", "list")` runs a command: its result has `output` and `exit_code`."""
    runner = app.test_cli_runner()

    def run(*arguments: str, fails: bool = False) -> Any:
        result = runner.invoke(args=[str(argument) for argument in arguments])
        assert (result.exit_code != 0) is fails, f"{result.output}\n{result.exception!r}"
        return result

    return run


@pytest.fixture
def flask_json(flask: Any) -> Any:
    """The parsed JSON that a command prints."""
    return lambda *arguments: json.loads(flask(*arguments, "--json").stdout)


@pytest.fixture
def balances(app: Any) -> Any:
    """`balances()` of the merchant `demo`, or of another: available and held, in fen."""

    def read(key: str = "demo") -> tuple[int, int]:
        row = ledger.balances()[key]
        return row["available"], row["held"]

    return read


@pytest.fixture(autouse=True)
def _the_ledger_holds(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test that used the application, the ledger must verify."""
    yield
    if "app" in request.fixturenames and "breaks_the_ledger" not in request.keywords:
        off = {name: found for name, found in ledger.verify() if found}
        assert not off


@pytest.fixture
def service(instance: Path) -> Iterator[Service]:
    """The service in a process of its own, on the demo content."""
    running = Service(instance).start()
    yield running
    if running.process and running.process.poll() is None:
        running.stop()
