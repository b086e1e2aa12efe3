"""A notice stays valid forever: after a refund it is not a new payment, and the service checks the status instead."""

import pytest

START = 1_000_000
version_2 = pytest.mark.parametrize("version", ["2"], indirect=True)  # which reports how much was returned


@pytest.fixture
def channel(version, platform, add_channel):
    platform.can_close = False
    return add_channel("epay", platform.config(version))


@pytest.fixture
def paid_late(version, api, channel, platform, later):
    """An order that was paid after it was cancelled, and the notice about it."""
    order_no = api.buy(channel=channel).data["order_no"]
    later(450, times=2)
    platform.pay(order_no)
    notice = platform.notice(order_no, version)
    assert notice.to(api.send, order_no).text == "success"
    return order_no, notice


@pytest.fixture
def kinds(order_details):
    return lambda order_no: [(each["kind"], each["resolution"]) for each in order_details(order_no)["exceptions"]]


def refunded(platform, order_no, version):
    platform.orders[order_no] |= {"status": "2"} | ({"refundmoney": "100.00"} if version == "2" else {})


def query_count(platform):
    return sum("query" in call.path or "act=order" in call.query_string.decode() for call in platform.calls)


def test_money_refunded_by_the_platform_is_credited_again_only_if_it_is_received_again(
    version, paid_late, api, platform, flask, due, kinds, exceptions
):
    order_no, notice = paid_late
    refunded(platform, order_no, version)
    flask("order", "ask", order_no)
    if version == "1":  # it does not contain the amount
        flask("order", "settle", order_no, "--refund")
    before, questions = kinds(order_no), query_count(platform)
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    assert (kinds(order_no), exceptions()) == (before, {})
    assert query_count(platform) == questions + 1
    platform.orders[order_no] |= {"status": "1", "refundmoney": ""}
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    assert list(exceptions()) == [order_no]


def test_after_an_operator_sent_money_back_only_another_payment_counts(
    paid_late, api, flask, due, kinds, exceptions, notify
):
    order_no, notice = paid_late
    flask("order", "settle", order_no, "--refund")
    due.orders()
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    assert (kinds(order_no), exceptions()) == ([("late_payment", "refund")], {})
    assert notify(order_no, trade_no="EP-SECOND").text == "success"
    assert exceptions() == {order_no: "late_payment"}


@version_2
def test_partly_credited_money_does_not_increase_again(paid_late, api, platform, flask, kinds, balances):
    order_no, notice = paid_late
    platform.orders[order_no] |= {"status": "2", "refundmoney": "40.00"}
    flask("order", "ask", order_no)
    flask("order", "settle", order_no, "--credit")
    credited = balances()
    assert notice.to(api.send, order_no).text == "success"
    assert (kinds(order_no), balances()) == ([("late_payment", "credit")], credited)


@version_2
def test_money_refunded_before_its_credit_is_not_late_money(
    version, api, channel, platform, flask, due, kinds, exceptions
):
    flask("channel", "set", channel, "--settlement-days", "1")
    order_no = api.buy(channel=channel).data["order_no"]
    platform.pay(order_no)
    notice = platform.notice(order_no, version)
    notice.to(api.send, order_no)
    refunded(platform, order_no, version)
    flask("order", "ask", order_no)
    assert api.status(order_no) == "cancelled"
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    assert (kinds(order_no), exceptions()) == ([], {})


@pytest.mark.parametrize(("version", "back"), [("1", ""), ("2", "100.00"), ("2", "30.00")], indirect=["version"])
@pytest.mark.parametrize("status", ["pending", "cancelled"])
def test_the_first_notice_after_a_refund_credits_nothing_until_the_money_is_back_at_the_platform(
    status, version, back, api, platform, channel, later, due, order_details, balances
):
    order_no = api.buy(channel=channel).data["order_no"]
    if status == "cancelled":
        later(450, times=2)
    platform.pay(order_no)
    notice = platform.notice(order_no, version)
    platform.orders[order_no] |= {"status": "2", "refundmoney": back}
    later(61 if status == "pending" else 601)  # a status check reports the refund

    def books():
        facts = order_details(order_no)
        money = [(each["kind"], each["amount"], each["resolution"]) for each in facts["exceptions"]]
        return facts["status"], money, balances()

    before = books()
    assert balances() == (START, 0)
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    assert books() == before
    platform.orders[order_no] |= {"status": "1", "refundmoney": ""}
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    is_over = before[0] == "cancelled"
    expected = ("cancelled", (START, 0)) if is_over else ("completed", (START + 9_940, 0))
    assert (api.status(order_no), balances()) == expected


@pytest.mark.parametrize("version", ["1"], indirect=True)
def test_a_notice_of_refunded_money_with_another_orders_number_changes_nothing(
    version, api, channel, platform, flask, due, order_details, notify
):
    first, order_no = (api.buy(channel=channel).data["order_no"] for _ in range(2))
    for each in first, order_no:
        platform.pay(each)
    platform.orders[order_no]["trade_no"] = platform.orders[first]["trade_no"]
    assert notify(first).text == "success"
    notice = platform.notice(order_no, version)
    assert notice.to(api.send, order_no).text == "success"

    def shared():
        return [(each["kind"], each["amount"]) for each in order_details(order_no)["exceptions"]]

    assert shared() == [("shared_reference", "100.00")]
    refunded(platform, order_no, version)
    flask("order", "ask", order_no)
    assert shared() == [("shared_reference", "0.00")]
    assert notice.to(api.send, order_no).text == "success"
    due.orders()
    assert shared() == [("shared_reference", "0.00")]
