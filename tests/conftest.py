"""Fixtures: a seeded service in this process, one in a process of its own, and its commands."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from pytest_httpserver import HTTPServer

from app import Service as Application
from app import begin, create_app
from gateways import config, registry
from gateways.sandbox.driver import SandboxDriver
from models import schema
from models.db.base import database
from models.tables.channel import Channel
from models.tables.merchant import OFF, Merchant, PaymentPage
from runtime import clock as service_clock
from runtime.state import current
from services.callbacks import delivery
from services.jobs import sweep as reconciliation
from services.ledger import accounts, integrity
from services.merchants import epay_accounts
from services.sandbox import seeding
from services.security import passwords
from tests import applications, contract, databases, postgres, rsa_keys, scratch, tiers
from tests.browser import chromium
from tests.services import walks
from tests.support import NOON, Api, DemoApi, DemoService, InlinePool, Receiver, Service, through_flask
from tests.trial_service import Trial

METHOD, CHEAP = passwords.METHOD, "scrypt:1024:8:1"  # of production, and of the tests


def pytest_configure() -> None:
    """Prepare before any file is written."""
    scratch.use_memory()
    tiers.begin()
    hypothesis_settings.register_profile("any machine", deadline=None)  # 200 ms for an example, unless set
    hypothesis_settings.load_profile("any machine")
    passwords.METHOD = CHEAP  # a hundred times as fast
    config.load_der_private_key = rsa_keys.load
    epay_accounts.rsa = rsa_keys
    registry.DRIVERS[Trial.name] = Trial
    Application.test_client_class = contract.CheckedClient


@pytest.hookimpl(tryfirst=True)  # before pytest itself chooses by `-m`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Assign the tiers, and leave out tests that do not run on the database in use."""
    left_out = tiers.assign(items)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of garbage collection, which would look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Watch the test from before its first fixture."""
    tiers.watch(item)


@pytest.fixture(scope="session")
def slow() -> None:
    """Puts a test that uses it, directly or through another fixture, into the slow tier, where it may start processes.

    For tests of processes, of the HTTP server, in a browser, on Postgres, and those of more than three seconds.
    """


@pytest.fixture(autouse=True)
def _a_fast_test_starts_no_process() -> Iterator[None]:
    yield
    assert tiers.started() == []


@pytest.fixture(scope="session")
def any_database() -> None:
    """Lets a test that uses it, directly or not, open a database. The test then runs on SQLite and on Postgres."""


@pytest.fixture
def demo() -> None:
    """Runs a test that uses it, directly or through another fixture, in demo mode on the demo content."""


@pytest.fixture(scope="session")
def seeded_demo(any_database: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An instance folder with the demo content, to be copied."""
    folder = tmp_path_factory.mktemp("seeded_demo")
    create_app(databases.settings_of(folder, demo=True))
    seeding.seed_base()
    seeding.seed_operators()
    databases.close()
    return folder


@pytest.fixture(scope="session")
def seeded(seeded_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An instance folder for production mode, to be copied: the demo's merchants and channels, with our driver."""
    folder = databases.copied(seeded_demo, tmp_path_factory.mktemp("seeded") / "instance")
    begin(databases.settings_of(folder))
    Merchant.update(demo=False, refund_mode=OFF, refund_auto_max=0).execute()
    PaymentPage.delete().execute()
    Channel.update(driver=Trial.name).where(Channel.driver == SandboxDriver.name).execute()
    databases.close()
    return folder


@pytest.fixture
def in_demo(request: pytest.FixtureRequest) -> bool:
    """Whether the test uses the fixture `demo`."""
    return "demo" in request.fixturenames


@pytest.fixture
def instance(in_demo: bool, seeded: Path, seeded_demo: Path, tmp_path: Path) -> Path:
    """This test's own copy of the seeded content."""
    return databases.copied(seeded_demo if in_demo else seeded, tmp_path / "instance")


@pytest.fixture
def _database_goes(tmp_path: Path) -> Iterator[None]:
    yield
    databases.remove(tmp_path / "instance")


@pytest.fixture
def settings_of_app() -> dict[str, Any]:
    """Override to change settings of `app`."""
    return {}


@pytest.fixture
def app(in_demo: bool, instance: Path, settings_of_app: dict[str, Any]) -> Any:
    """The application on the seeded content; its jobs run only if a test requests it (`due`)."""
    return applications.with_settings(databases.settings_of(instance, **{"demo": in_demo} | settings_of_app))


@pytest.fixture
def http(app: Any) -> Any:
    """`http(method, path, body, headers)` to the application."""
    return through_flask(app.test_client())


@pytest.fixture
def api(http: Any) -> Api:
    """The merchant `demo`."""
    return DemoApi(http) if current().settings.demo else Api(http)


@pytest.fixture
def other(http: Any) -> Api:
    """The merchant `other`."""
    return (DemoApi if current().settings.demo else Api)(http, "other")


@pytest.fixture
def due(app: Any) -> Any:
    """Do all work that is due now: orders (`due.orders()`), callbacks (`due.callbacks()`), or both."""

    class Due:
        def orders(self, **interruption: Any) -> int:
            return reconciliation.sweep(InlinePool(**interruption))  # type: ignore[arg-type]

        def callbacks(self) -> int:
            return delivery.sweep(InlinePool())  # type: ignore[arg-type]

        def __call__(self) -> int:
            return self.orders() + self.callbacks()

    return Due()


@pytest.fixture
def ahead(time_machine: Any) -> Any:
    """`ahead(60)` sets the clock a minute ahead; it continues to tick."""
    time_machine.move_to(datetime.now(UTC))
    return time_machine.shift


@pytest.fixture
def flask(app: Any) -> Any:
    """`flask("order", "list")` runs a command: its result has `output` and `exit_code`; `typed` is its input."""
    runner = app.test_cli_runner()

    def run(*arguments: str, fails: bool = False, typed: str = "") -> Any:
        result = runner.invoke(args=[str(argument) for argument in arguments], input=typed)
        assert (result.exit_code != 0) is fails, f"{result.output}\n{result.exception!r}"
        return result

    return run


@pytest.fixture
def flask_json(flask: Any) -> Any:
    """The parsed JSON that a command prints."""
    return lambda *arguments: json.loads(flask(*arguments, "--json").stdout)


@pytest.fixture
def merchants_of(flask_json: Any) -> Any:
    """`merchants_of(2)`: the keys of the merchants that may use a channel."""
    return lambda channel: flask_json("channel", "show", channel)["merchants"].split(",")


@pytest.fixture
def refuses(flask: Any) -> Any:
    """`refuses("order", "show", "1")` runs a command that must end with a message, and returns that message."""

    def run(*arguments: str) -> str:
        result = flask(*arguments, fails=True)
        # Other exceptions would be printed as a traceback.
        assert isinstance(result.exception, SystemExit), repr(result.exception)
        return result.stderr

    return run


@pytest.fixture
def balances(app: Any) -> Any:
    """`balances()` of the merchant `demo`, or of another: available and held, in fen."""

    def read(key: str = "demo") -> tuple[int, int]:
        row = accounts.balances()[key]
        return row["available"], row["held"]

    return read


@pytest.fixture
def clock(time_machine: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`clock(seconds)` sets the time after noon, when a window of any rate begins; the clock does not tick."""
    began = time.monotonic()

    def at(seconds: float) -> None:
        time_machine.move_to(NOON + seconds, tick=False)
        monkeypatch.setattr(service_clock, "steady", lambda: began + seconds)

    at(0)
    return at


@pytest.fixture
def order_details(flask_json: Any) -> Any:
    """`order_details(order_no)`: the output of `order show`."""
    return lambda order_no: flask_json("order", "show", order_no)


@pytest.fixture
def steps(order_details: Any) -> Any:
    """`steps(order_no)`: an order's steps, each as (who, from, to); each has a reason."""

    def moves(order_no: str) -> list[tuple[str, str, str]]:
        lines = [line for line in order_details(order_no)["history"] if line["from"] != line["to"]]
        assert all(line["why"] and line["at"] for line in lines)
        return [(line["who"], line["from"], line["to"]) for line in lines]

    return moves


@pytest.fixture
def exceptions(flask_json: Any) -> Any:
    """`exceptions()`: the kinds of open exceptions by order number, as the operator's list shows them."""
    return lambda: {row["order_no"]: row["exceptions"] for row in flask_json("order", "list", "--exceptions")}


@pytest.fixture
def later(ahead: Any, due: Any) -> Any:
    """`later(60, 3)`: three times, set the clock a minute ahead and process the orders that are due."""

    def pass_time(seconds: float, times: int = 1) -> None:
        for _ in range(times):
            ahead(seconds)
            due.orders()

    return pass_time


@pytest.fixture
def world(api: Api, http: Any, flask: Any, flask_json: Any, later: Any) -> SimpleNamespace:
    """The fixtures for walks of an order (`tests/services/walks.py`)."""
    return SimpleNamespace(api=api, http=http, flask=flask, flask_json=flask_json, later=later)


@pytest.fixture
def claimed(world: SimpleNamespace) -> Any:
    """`claimed("88.00")`: the number of a claimed deposit on the manual channel."""

    def place(amount: str, **more: Any) -> Any:
        order_no = world.api.buy(amount, walks.MANUAL, **more).data["order_no"]
        walks.claim(world, order_no)
        return order_no

    return place


@pytest.fixture
def rows(app: Any) -> Any:
    """`rows()`: the present content of the database, by table."""

    def select(table: Any) -> str:
        columns = ", ".join(f'"{field.column_name}"' for field in table._meta.sorted_fields)
        return f'SELECT {columns} FROM "{table._meta.table_name}"'

    queries = {table.__name__: select(table) for table in schema.TABLES}
    return lambda: {name: database.execute_sql(query).fetchall() for name, query in queries.items()}


@pytest.fixture
def kept(rows: Any) -> Any:
    """`kept()`: `rows()`; on Postgres without the nonces, because each request stores one there."""
    return lambda: {name: found for name, found in rows().items() if not (postgres.IN_USE and name == "Nonce")}


@pytest.fixture
def nothing_changes(rows: Any) -> Iterator[None]:
    """Check that the test leaves the database unchanged, except for used nonces and keys."""

    def business() -> Any:
        return {name: found for name, found in rows().items() if name not in ("Nonce", "IdempotencyKey")}

    before = business()
    yield
    assert business() == before


@pytest.fixture
def postgres_url(slow: None, any_database: None) -> Iterator[str]:
    """The address of an empty database of Postgres, whichever database the tests run on."""
    name = postgres.cluster().create()
    yield postgres.cluster().url(name)
    postgres.cluster().drop(name)


@pytest.fixture(scope="session")
def _chrome(slow: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = chromium(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()


@pytest.fixture
def chrome(_chrome: Any) -> Iterator[Any]:
    """One browser for all tests that need one; no test sees another one's page."""
    yield _chrome
    _chrome.get("about:blank")  # an open page would continue to send requests to a stopped service


@pytest.fixture(scope="session")
def _web_server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def web_server(_web_server: HTTPServer) -> Iterator[HTTPServer]:
    """A real HTTP server, a thread for each request; it forgets its pages after each test."""
    yield _web_server
    _web_server.clear()


@pytest.fixture
def receiver(web_server: HTTPServer) -> Receiver:
    """The HTTP server of the merchant `demo`, whose address the service does not know."""
    return Receiver(web_server, "/demo", seeding.CALLBACK_SECRETS["demo"])


@pytest.fixture
def shop(receiver: Receiver, flask: Any) -> Receiver:
    """The HTTP server of the merchant `demo`, which receives its callbacks."""
    flask("merchant", "set", "demo", "--callback-url", receiver.url)
    return receiver


@pytest.fixture
def other_shop(web_server: HTTPServer, flask: Any) -> Receiver:
    """The HTTP server of the merchant `other`, which receives its callbacks."""
    receiver = Receiver(web_server, "/other", seeding.CALLBACK_SECRETS["other"])
    flask("merchant", "set", "other", "--callback-url", receiver.url)
    return receiver


@pytest.fixture(autouse=True)
def _the_contract_holds() -> Iterator[None]:
    """Check after every test that each response and callback matched the OpenAPI document."""
    contract.drift.clear()
    yield
    assert contract.drift == []


@pytest.fixture(autouse=True)
def _the_ledger_holds(request: pytest.FixtureRequest, _database_goes: None) -> Iterator[None]:
    """Check the ledger's integrity after every test that used the application, over the test's own connection."""
    yield
    if "app" not in request.fixturenames or "breaks_the_ledger" in request.keywords:
        return
    try:
        off = {name: found for name, found in integrity.verify() if found}
    finally:
        database.close()
    assert not off


@pytest.fixture
def service(slow: None, in_demo: bool, instance: Path) -> Iterator[Service]:
    """The service in a process of its own, on the seeded content."""
    running = (DemoService if in_demo else Service)(instance).start()
    yield running
    if running.process and running.process.poll() is None:
        running.stop()


@pytest.fixture(scope="module")
def running(slow: None, seeded_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoService]:
    """A running demo, one for the module."""
    demo = DemoService(databases.copied(seeded_demo, tmp_path_factory.mktemp("running") / "instance")).start()
    yield demo
    demo.stop()
