"""The cache of merchants and channels: every change takes effect, by any process."""

import json

import pytest

from models.db.writer import transaction
from models.tables.merchant import Merchant
from models.tables.setup_version import current_version
from services.merchants import cache
from tests import postgres
from tests.databases import raw
from tests.plans import Heard
from tests.support import Api, completed, until


@pytest.fixture
def only_told(monkeypatch):
    """Do not check the database for changes: only this process's own changes take effect."""
    monkeypatch.setattr(cache, "FRESH", 10**9)


@pytest.fixture
def always_asked(monkeypatch):
    """Check the database each time, instead of every few milliseconds."""
    monkeypatch.setattr(cache, "FRESH", -1)


@pytest.fixture
def change(instance, app):
    """`change(sql)` as another process does it: through a separate connection."""
    with raw(instance) as other:
        yield other.execute


def channels(api):
    """The channels that a merchant may use."""
    return [channel["id"] for channel in api.call("getPayChannels").data["list"]]


def fee(api):
    """The fee of a deposit of 100 yuan."""
    return api.buy("100.00").data["service_amount"]


CHANGES = [
    (("merchant", "set", "demo", "--disabled"), lambda api: api.listed().code, 1, 40101),
    (("merchant", "set", "demo", "--allow", "10.0.0.1"), lambda api: api.listed().code, 1, 40300),
    (("merchant", "set", "demo", "--buy-rate", "1.00"), fee, 60, 100),
    (("merchant", "rotate", "demo", "--keep-hours", 0), lambda api: api.listed().code, 1, 40102),
    (("channel", "set", 2, "--disabled"), channels, [1, 2, 3], [1, 3]),
    (("channel", "set", 2, "--max", "99.99"), lambda api: api.buy("100.00").code, 1, 42200),
    (("channel", "set", 2, "--pay-method", "bank"), lambda api: api.buy("100.00").code, 1, 42200),
    (("channel", "link", 4, "demo"), channels, [1, 2, 3], [1, 2, 3, 4]),
    (("channel", "unlink", 3, "demo"), channels, [1, 2, 3], [1, 2]),
]


@pytest.mark.parametrize(
    ("command", "look", "before", "after"), CHANGES, ids=lambda value: getattr(value, "__name__", str(value)[:60])
)
def test_a_change_in_this_process_takes_effect_immediately(only_told, api, flask, command, look, before, after):
    assert look(api) == before
    flask(*command)
    assert look(api) == after


def test_a_merchants_events_apply_to_the_next_callback(only_told, api, flask, flask_json):
    flask("merchant", "set", "demo", "--events", "paid")
    completed(api)
    assert {row["type"] for row in flask_json("callback", "list")} == {"order.paid", "order.completed"}


def test_an_unknown_merchant_may_call_once_it_was_added(only_told, http, flask_json):
    shop = Api(http, "shop", "?")
    assert shop.listed().code == 40101
    shop.secret = flask_json("merchant", "add", "shop")["api_secret"]
    assert shop.listed().code == 1


OTHERS_CHANGES = [
    ("UPDATE merchant SET enabled = FALSE WHERE id = 1", lambda api: api.listed().code, 40101),
    ("UPDATE merchant SET buy_rate = 100 WHERE id = 1", fee, 100),
    ("UPDATE merchant SET key = 'renamed' WHERE id = 1", lambda api: api.listed().code, 40101),
    ("UPDATE channel SET enabled = FALSE WHERE id = 2", channels, [1, 3]),
    ("UPDATE channel SET max_amount = 9999 WHERE id = 2", lambda api: api.buy("100.00").code, 42200),
    ("DELETE FROM channel_link WHERE channel_id = 3", channels, [1, 2]),
    ("INSERT INTO channel_link (merchant_id, channel_id) VALUES (1, 4)", channels, [1, 2, 3, 4]),
]


@pytest.mark.parametrize(
    ("sql", "look", "after"), OTHERS_CHANGES, ids=lambda value: getattr(value, "__name__", str(value)[:60])
)
def test_a_change_by_another_process_takes_effect_once_the_database_is_checked(
    always_asked, api, change, sql, look, after
):
    assert look(api) != after
    change(sql)
    assert look(api) == after


def test_any_change_of_merchants_and_channels_raises_the_setup_version(change):
    statements = [
        "UPDATE merchant SET name = 'x' WHERE id = 1",
        "DELETE FROM channel_link WHERE channel_id = 3",
        "INSERT INTO channel_link (merchant_id, channel_id) VALUES (1, 4)",
        "UPDATE channel SET name = 'x'",
        *([] if postgres.IN_USE else ["REPLACE INTO channel_link (merchant_id, channel_id) VALUES (1, 2)"]),
    ]
    for sql in statements:
        before = current_version()
        change(sql)
        assert current_version() > before, sql


def test_orders_do_not_raise_the_setup_version_or_reload_merchants(only_told, api, due):
    completed(api)
    before = current_version()
    with Heard() as heard:
        completed(api)
        api.sell("1.00")
        api.listed()
    assert current_version() == before
    assert not [sql for sql in heard.statements if 'FROM "merchant"' in sql]


def test_changes_of_a_failed_transaction_are_not_cached(always_asked, api):
    @transaction
    def fails():
        Merchant.update(buy_rate=100).execute()
        assert cache.by_id(1).merchant.buy_rate == 100
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fails()
    assert cache.by_id(1).merchant.buy_rate == 60


def test_unknown_keys_are_not_cached(api, http):
    assert api.listed().code == 1
    known = set(cache._cache().newest.known)
    for number in range(20):
        assert Api(http, f"stranger-{number}", "?").listed().code == 40101
    assert set(cache._cache().newest.known) <= known


def test_in_the_running_service_changes_of_commands_and_of_the_database_take_effect(service):
    assert fee(service.api) == 60
    assert channels(service.api) == [1, 2, 3]
    service.flask("channel", "unlink", "3", "demo")
    until(lambda: channels(service.api) == [1, 2])
    service.flask("merchant", "set", "demo", "--disabled")
    until(lambda: service.api.listed().code == 40101)
    service.flask("merchant", "set", "demo", "--enabled")
    until(lambda: service.api.listed().code == 1)
    rotated = json.loads(service.flask("merchant", "rotate", "demo", "--keep-hours", "0", "--json").stdout)
    until(lambda: service.api.listed().code == 40102)
    service.api.secret = rotated["api_secret"]
    assert service.api.listed().code == 1
    with raw(service.instance) as other:
        other.execute("UPDATE merchant SET buy_rate = 100")
    until(lambda: fee(service.api) == 100)
