"""epay, version 2: payouts, against the loopback platform; no independent code has checked them."""

import pytest

START = 1_000_000
HELD, SPENT, BACK = (START - 10_030, 10_030), (START - 10_030, 0), (START, 0)


@pytest.fixture
def channel(platform, add_channel):
    return add_channel("epay", platform.config("2"), "--auto-accept-max", "1000")


@pytest.fixture
def handed_over(platform):
    """`handed_over()`: the number of payout requests to the platform."""
    return lambda: [call.path for call in platform.calls].count("/epay/api/transfer/submit")


@pytest.fixture
def placed(api, channel):
    """`placed()`: the number of a new, auto-approved withdrawal of 100 yuan."""
    return lambda: api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]


@pytest.mark.parametrize("named", [{"biz_no": "BZ1"}, {"out_biz_no": "2026050112000000001"}])
def test_a_not_found_of_the_platforms_bank_does_not_mean_an_absent_payout(
    named, placed, api, platform, later, balances, monkeypatch
):
    order_no = placed()
    later(1)
    monkeypatch.setattr(platform, "_ask_transfer", lambda fields: {"code": -1, "msg": "转账订单不存在"} | named)
    later(1_000, times=3)
    assert (api.status(order_no), balances(), len(platform.payouts)) == ("confirmed", HELD, 1)
    assert platform.calls[-1].path.endswith("transfer/query")


@pytest.mark.parametrize("knows", [{"is_old": True}, {"knows_by": ("biz_no",)}], ids=["an older one", "its own number"])
def test_a_platform_may_name_payouts_in_its_own_way(knows, placed, api, platform, later, balances):
    for name, value in knows.items():
        setattr(platform, name, value)
    order_no = placed()
    later(1, times=4)
    later(601, times=2)
    assert (api.status(order_no), balances(), len(platform.payouts)) == ("completed", SPENT, 1)


def test_over_plain_http_nothing_is_paid_out(api, platform, add_channel):
    channel = add_channel("epay", platform.config("2", base_url="http://platform.invalid"))
    assert api.sell(channel=channel).code == 42200


# --- the platform's reports on a payout that it has


@pytest.fixture
def noted(order_details):
    """`noted(order_no)`: the history's lines on the payout at the channel."""
    return lambda order_no: [
        line["why"] for line in order_details(order_no)["history"] if line["code"] == "payout_shown"
    ]


def test_a_payout_is_absent_only_if_the_platform_knows_it_by_neither_number(
    placed, api, platform, later, balances, monkeypatch
):
    order_no = placed()
    platform.fails("unheard")
    later(1)
    unknown = {"out_biz_no": "转账交易号不存在", "biz_no": "系统繁忙"}
    answers = lambda fields: {"code": -1, "msg": next(unknown[name] for name in unknown if name in fields)}  # noqa: E731
    monkeypatch.setattr(platform, "_ask_transfer", answers)
    later(601, times=3)
    assert (platform.payouts, api.status(order_no), balances()) == ({}, "confirmed", HELD)


def test_the_history_has_the_banks_number_and_the_required_approval_once(placed, platform, later, noted):
    platform.is_old, platform.transfers_end = True, "3"
    order_no = placed()
    later(60, times=6)
    [number] = platform.payouts
    shown, approval = noted(order_no)
    assert shown == f"The channel has the payout: BANK{number}"
    assert "waits for the platform's staff" in approval


@pytest.mark.parametrize(
    ("address", "is_shown"),
    [("https://pay.example.com/paypage/wxtrans.php?type=transfer&id=7", True), ("javascript:alert(1)", False)],
)
def test_the_address_at_which_the_receiver_confirms_is_shown_to_the_operator(
    address, is_shown, placed, platform, later, noted
):
    platform.jump_url, platform.transfers_end = address, "0"
    order_no = placed()
    later(60, times=3)
    assert (address in " ".join(noted(order_no))) is is_shown


@pytest.fixture
def handed_over_unheard(placed, platform, later):
    """A withdrawal whose payout the platform has, although its response was lost; and an error naming the payout."""
    order_no = placed()
    later(1)
    platform.fails("lost")
    later(1)
    [number] = platform.payouts
    return order_no, {"code": -1, "msg": "支付通道不存在", "biz_no": f"BZ{number}", "out_biz_no": number}


@pytest.mark.parametrize("by", ["the service", "ask", "reject"])
def test_an_error_that_names_the_payout_shows_every_caller_that_the_platform_has_it(
    by, handed_over_unheard, platform, later, ahead, refuses, exceptions, handed_over, monkeypatch, outcome
):
    order_no, named = handed_over_unheard
    with monkeypatch.context() as it_waits_for_the_staff:
        it_waits_for_the_staff.setattr(platform, "_ask_transfer", lambda fields: named)
        if by == "the service":
            later(300)
            assert exceptions() == {order_no: "unknown_outcome"}
        else:
            ahead(660)
            refuses("order", by, order_no, *(["--reason", "wrong account"] if by == "reject" else []))
    platform.payouts.clear()
    later(601, times=3)
    later(3600, times=3)
    assert handed_over() == 1
    assert outcome(order_no) == ("confirmed", HELD, {order_no: "payout_missing"})


def test_an_unknown_status_keeps_the_reserve_and_shows_that_the_payout_exists(
    placed, api, platform, later, balances, exceptions, noted, handed_over, monkeypatch
):
    statuses = iter(["4", "9", ""])
    monkeypatch.setattr(platform, "_transfer", lambda fields: {"code": 0, "status": next(statuses)})
    orders = [placed() for _ in range(3)]
    later(1)
    assert [len(noted(order_no)) for order_no in orders] == [1, 1, 1]
    assert ({api.status(order_no) for order_no in orders}, balances()) == ({"confirmed"}, (START - 30_090, 30_090))
    assert exceptions() == dict.fromkeys(orders, "unknown_outcome")
    later(601)
    assert (exceptions(), handed_over()) == (dict.fromkeys(orders, "payout_missing"), 3)
