"""A channel whose account changes while an order is created or approved: the order is at one account only."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gateways.epay import EpayV1, EpayV2
from models.tables.order import Order
from services.withdrawals import approve
from tests import postgres
from tests.databases import orders_held_up, raw
from tests.support import until
from tests.upstreams.epay import EpayPlatform

# Longer than a group of orders waits for a lock before each order is inserted alone.
WAITING = """SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND xact_start < now() - interval '300 ms'"""


@pytest.fixture
def old(web_server):
    """The platform with the channel's present account."""
    return EpayPlatform(web_server, "old")


@pytest.fixture
def new(web_server):
    """The platform of the new account, which has the same keys."""
    return EpayPlatform(web_server, "new")


@pytest.fixture
def channel(old, add_channel):
    return add_channel("epay", old.config("2"))


@pytest.fixture
def move(flask, channel, new):
    """`move()`: the operator gives the channel its new account."""
    return lambda **named: flask("channel", "set", channel, "--config", f"base_url={new.url}", **named)


@pytest.fixture
def waits(instance):
    """`waits(count)`: returns once this number of sessions waits for locks on Postgres."""
    with raw(instance) as other:
        yield lambda count: until(lambda: other.execute(WAITING).fetchone()[0] == count)


@pytest.mark.parametrize("version", [EpayV1, EpayV2])
def test_a_deposit_is_not_opened_at_an_account_replaced_since_its_channel_was_read(
    version, api, flask, flask_json, add_channel, old, new, monkeypatch
):
    channel = add_channel("epay", old.config("1" if version is EpayV1 else "2"))

    def replaced(self):
        monkeypatch.undo()
        flask("channel", "set", channel, "--config", f"base_url={new.url}")
        return False

    monkeypatch.setattr(version, "opens_locally", property(replaced))
    answer = api.buy(channel=channel, paychannel_paymethod="alipay")
    assert (answer.status, answer.code) == (503, 50300)
    assert int(answer.headers["Retry-After"]) == 1
    assert (old.calls, flask_json("order", "list")) == ([], [])
    order_no = api.buy(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    assert (list(old.orders), list(new.orders)) == ([], [order_no])


def test_a_deposit_is_created_although_its_channels_secrets_get_another_key_meanwhile(
    api, flask, channel, old, monkeypatch
):
    def sealed_again(self):
        monkeypatch.undo()
        flask("vault", "rotate", "--wait", 0, *(["--only-host"] if postgres.IN_USE else []))
        return False

    monkeypatch.setattr(EpayV2, "opens_locally", property(sealed_again))
    answer = api.buy(channel=channel, paychannel_paymethod="alipay")
    assert (answer.code, list(old.orders)) == (1, [answer.data["order_no"]])


@pytest.mark.usefixtures("postgres_url")  # SQLite has one transaction at a time
def test_an_account_is_not_replaced_while_an_order_is_about_to_be_committed(
    api, channel, move, instance, old, new, waits
):
    with ThreadPoolExecutor(2) as pool:
        with orders_held_up(instance):
            order = pool.submit(api.buy, channel=channel, paychannel_paymethod="alipay")
            waits(1)
            moved = pool.submit(move, fails=True)
            waits(2)
        assert "orders are in progress at the account" in moved.result(20).stderr
        order_no = order.result(20).data["order_no"]
    assert (list(old.orders), list(new.orders)) == ([order_no], [])


@pytest.mark.usefixtures("postgres_url")
def test_a_withdrawal_approved_while_the_account_is_replaced_is_paid_out_at_the_new_one(
    api, channel, move, instance, old, new, waits, later
):
    order_no = api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    with ThreadPoolExecutor(2) as pool, raw(instance) as other:
        other.execute("BEGIN")
        other.execute("UPDATE revision SET number = number")  # a change of a channel updates this last
        moved = pool.submit(move)
        waits(1)
        accepted = pool.submit(approve.approve, Order.get(Order.order_no == order_no))
        waits(2)
        later(1)
        other.execute("ROLLBACK")
        moved.result(20)
        accepted.result(20)
    later(1, times=4)
    assert api.status(order_no) == "completed"
    assert (len(old.payouts), len(new.payouts)) == (0, 1)
