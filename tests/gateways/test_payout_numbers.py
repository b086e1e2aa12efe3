"""Payout numbers stay different when ids with the same ending get the same second, because the clock was set back."""

import pytest

from models.tables.order import Order
from tests import postgres
from tests.databases import raw

BETWEEN = 100_000  # ids with the same ending of the payout number


@pytest.fixture
def channel(platform, add_channel, flask):
    """A channel of both merchants; `other` also has a balance and an account."""
    number = add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")
    flask("channel", "link", number, "other")
    flask("ledger", "adjust", "other", "1000", "--reason", "start")
    flask("account", "add", "other", "--card-number", "6222020000000000025", "--real-name", "李四")
    return number


@pytest.fixture
def sell(channel):
    """`sell(api)`: the number of a new, auto-approved withdrawal, always with the same createtime."""

    def place(api):
        answer = api.sell(channel=channel, paychannel_paymethod="alipay")
        order_no = answer.data["order_no"]
        assert api.detail(order_no=order_no).data["createtime"] == int(answer.json["time"])
        return order_no

    return place


@pytest.fixture
def skip_ids(instance, other):
    """`skip_ids(order_no)`: the next order's id ends like this one's, as after 100,000 more orders."""

    def skip(order_no):
        deposit = other.buy().data["order_no"]
        last = Order.get(Order.order_no == order_no).id + BETWEEN - 1
        facts = {"id": "?", "order_no": "?", "seq": "seq + 1"}
        columns = [field.column_name for field in Order._meta.sorted_fields]
        named, values = (", ".join(each) for each in (map('"{}"'.format, columns), [facts.get(c, c) for c in columns]))
        with raw(instance) as books:
            copy = f'INSERT INTO "order" ({named}) SELECT {values} FROM "order" WHERE order_no = ?'
            books.execute(copy, (last, f"{last:024d}", deposit))
            if postgres.IN_USE:
                books.execute("SELECT setval(pg_get_serial_sequence('\"order\"', 'id'), ?)", (last,))

    return skip


@pytest.fixture
def pay_out(clock, due):
    """`pay_out(since)`: process the orders that are due in the minute from then on."""

    def do(since):
        for seconds in range(since, since + 60, 5):
            clock(seconds)
            due.orders()

    return do


@pytest.mark.parametrize("passed", [0, -30], ids=["the same second", "an earlier second"])
@pytest.mark.parametrize("whose", ["the same merchant's", "another merchant's"])
def test_two_withdrawals_are_two_payouts(api, other, platform, sell, skip_ids, clock, pay_out, whose, passed):
    second = api if whose == "the same merchant's" else other
    clock(60)
    placed = [(api, sell(api))]
    skip_ids(placed[0][1])
    clock(60 + passed)
    placed.append((second, sell(second)))
    pay_out(90)
    assert [merchant.status(order_no) for merchant, order_no in placed] == ["completed"] * 2
    assert len(platform.payouts) == 2


def test_each_further_withdrawal_gets_a_second_of_its_own(api, platform, sell, skip_ids, clock, pay_out, flask_json):
    clock(60)
    orders = [sell(api)]
    for _ in range(2):
        skip_ids(orders[-1])
        orders.append(sell(api))
    skip_ids(orders[-1])
    clock(70)
    orders.append(sell(api))
    pay_out(90)
    assert len(platform.payouts) == 4
    times = [api.detail(order_no=order_no).data["createtime"] for order_no in orders]
    assert [time - times[0] for time in times] == [0, 1, 2, 10], "a withdrawal of another second keeps its time"
    assert [row["order_no"] for row in flask_json("order", "list", "--merchant", "demo")] == orders[::-1]
