"""The order export of an epay platform, as its merchant console writes it, against the orders: `tillbook reconcile`."""

import json
from datetime import datetime, timedelta, timezone

import pytest

CHINA = timezone(timedelta(hours=8))
FIRST, SECOND = "2026-05-01", "2026-05-02"
HEADER = (
    "系统订单号,商户订单号,接口订单号,商户ID,网站域名,商品名称,订单金额,实际支付,商户分成,支付方式,支付账号,支付IP,"
    "创建时间,完成时间,支付状态,已退款金额,退款时间"
)
FROZEN = "the channel holds the money back: ask its staff why, and until when"
WENT_BACK = "the money went back there and is booked here"


@pytest.fixture
def at(time_machine):
    """`at(SECOND, "00:05")` sets the clock, in China; each test begins on the first day at noon."""

    def set_clock(day, time="12:00"):
        time_machine.move_to(datetime.fromisoformat(f"{day} {time}:00").replace(tzinfo=CHINA))

    set_clock(FIRST)
    return set_clock


@pytest.fixture
def channel(at, version, platform, add_channel):
    return add_channel("epay", platform.config(version))


@pytest.fixture
def paid(api, channel, platform, flask):
    """`paid()`: the number of a deposit of 100 yuan whose payment is recorded."""

    def deposit():
        order_no = api.buy(channel=channel, paychannel_paymethod="alipay").data["order_no"]
        platform.pay(order_no)
        flask("order", "ask", order_no)
        return order_no

    return deposit


@pytest.fixture
def refund(platform, version):
    """`refund(order_no, yuan)`: the platform's staff refund this amount; version 1 does not report it."""

    def send_back(order_no, yuan):
        platform.orders[order_no] |= {"status": "2", **({"refundmoney": yuan} if version == "2" else {})}

    return send_back


@pytest.fixture
def row(platform):
    """`row(order_no, 支付状态="已退款")`: a line of the export; keywords replace values of a payment of 100 yuan."""

    def line(order_no, number="", **changed):
        facts = dict.fromkeys(HEADER.split(","), "")
        facts |= {"系统订单号": f'="{platform.orders[order_no]["trade_no"]}"', "商户订单号": f'="{number or order_no}"'}
        facts |= {"接口订单号": '="20260501220014"', "商户ID": "1001", "商品名称": "one, two, three"}
        facts |= {"订单金额": "100.00", "实际支付": "100.00", "商户分成": "99.40", "支付方式": "支付宝"}
        facts |= {"创建时间": f"{FIRST} 12:00:00", "完成时间": f"{FIRST} 12:01:00", "支付状态": "已支付", **changed}
        return ",".join(facts.values())

    return line


@pytest.fixture
def reconcile(app, channel, tmp_path):
    """`reconcile(*rows)`: the result for an export with these rows."""

    def compare(*rows, days=()):
        file = tmp_path / "export.csv"
        file.write_bytes(("\ufeff" + "\r\n".join((HEADER, *rows, ""))).encode())
        result = app.test_cli_runner().invoke(args=["reconcile", str(channel), str(file), *days, "--json"])
        assert result.exit_code in (0, 3), result.output
        return json.loads(result.stdout)

    return compare


@pytest.fixture
def differences(reconcile):
    """`differences(*rows)`: the differences, each as (kind, line of the file, detail)."""

    def compare(*rows, days=()):
        return [(each["kind"], each["line"], each["detail"]) for each in reconcile(*rows, days=days)["differences"]]

    return compare


def test_payments_agree_and_unpaid_orders_are_not_payments(api, channel, paid, row, reconcile):
    waiting = api.buy(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    view = reconcile(row(paid()), row(waiting, 支付状态="未支付", 实际支付="", 完成时间=""))
    assert view["differences"] == []
    assert (view["lines"], view["matched"]) == (2, 2)
    assert (view["sums"]["here"]["in"], view["sums"]["there"]["in"]) == ("100.00", "100.00")


def test_a_frozen_payment_is_reported_and_the_others_are_compared(paid, row, differences):
    frozen, larger = paid(), paid()
    found = differences(row(frozen, 支付状态="已冻结"), row(larger, 订单金额="120.00"))
    assert found == [("status", 2, FROZEN), ("amount", 3, "")]


def test_a_refunded_row_is_a_payment_and_a_refund(paid, row, reconcile):
    order_no = paid()
    for back, paid_in, went_back in (
        ("40.00", "100.00", "40.00"),
        ("100.00", "100.00", "100.00"),
        ("102.00", "102.00", "100.00"),  # with a fee
        ("98.00", "98.00", "100.00"),  # less a discount
        ("40.00", "", "40.00"),
    ):
        refunded = {"支付状态": "已退款", "退款时间": f"{SECOND} 09:00:00", "已退款金额": back, "实际支付": paid_in}
        view = reconcile(row(order_no, **refunded))
        assert [(each["kind"], each["detail"]) for each in view["differences"]] == [("status", WENT_BACK)]
        sums = view["sums"]["there"]
        assert (view["lines"], sums["in"], sums["refunds"]) == (1, "100.00", went_back)


@pytest.mark.parametrize("size", ["40.00", "100.00"])
def test_a_resolved_refund_agrees(size, paid, row, differences, refund, flask):
    order_no = paid()
    back = row(order_no, 支付状态="已退款", 已退款金额=size)
    refund(order_no, size)
    flask("order", "ask", order_no)
    assert "reversed (open)" in differences(back)[0][2]
    flask("order", "settle", order_no, "--refund", typed="y\n")
    assert differences(back) == []


def test_a_refund_without_an_amount_is_reported_unless_it_is_recorded(paid, row, differences, refund, flask):
    order_no = paid()
    back = row(order_no, 支付状态="已退款", 已退款金额="")
    unknown = "some of it went back there, and the statement does not say how much; here nothing did"
    assert differences(back) == [("status", 2, unknown)]
    refund(order_no, "40.00")
    flask("order", "ask", order_no)
    [(kind, line, detail)] = differences(back)
    assert (kind, line) == ("status", 2)
    assert detail.startswith("the exception about what went back is open")
    flask("order", "settle", order_no, "--refund", typed="y\n")
    assert differences(back) == []


def test_an_order_is_in_the_export_of_the_day_of_its_creation(at, api, channel, platform, flask, row, differences):
    at(FIRST, "23:00")
    order_no = api.buy(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    platform.pay(order_no)
    at(SECOND, "00:30")
    flask("order", "ask", order_no)
    first, second = ([f"--since={day}", f"--until={day}"] for day in (FIRST, SECOND))
    stands = row(order_no, 创建时间=f"{FIRST} 23:00:00", 完成时间=f"{SECOND} 00:20:00")
    assert differences(stands) == []
    assert differences(days=second) == []
    [(kind, line, detail)] = differences(days=first)
    assert (kind, line) == ("missing_there", None)
    assert "edge" not in detail


def test_an_order_viewed_the_next_day_may_be_in_that_days_export(at, api, channel, platform, flask, differences):
    at(FIRST, "23:50")
    order_no = api.buy(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    platform.pay(order_no)
    flask("order", "ask", order_no)
    [(kind, _, detail)] = differences(days=[f"--since={FIRST}", f"--until={FIRST}"])
    assert kind == "missing_there"
    assert detail.endswith(f"at the edge of the day: it may stand in the statement of {SECOND}")


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_payouts_are_not_missing_in_an_export_of_deposits(api, channel, flask, later, differences):
    order_no = api.sell(channel=channel, paychannel_paymethod="alipay").data["order_no"]
    flask("order", "accept", order_no)
    later(1, times=4)
    assert api.status(order_no) == "completed"
    assert differences(days=[f"--since={FIRST}"]) == []


def test_a_second_attempt_belongs_to_its_order(paid, platform, row, differences):
    order_no = paid()
    again = platform.orders[order_no]["trade_no"] + "9"
    unpaid = row(order_no, 支付状态="未支付", 完成时间="").replace(platform.orders[order_no]["trade_no"], again)
    second = row(order_no, number=f"{order_no}_2")
    assert differences(second, unpaid) == []
    [(kind, line, _)] = differences(row(order_no), second.replace(platform.orders[order_no]["trade_no"], again))
    assert (kind, line) == ("amount", 3)


def test_an_unpaid_row_is_about_its_own_attempt_only(at, paid, platform, row, differences):
    at(FIRST, "23:50")
    order_no, days = paid(), [f"--since={FIRST}", f"--until={FIRST}"]
    unpaid = row(order_no, 支付状态="未支付", 完成时间="")
    assert differences(unpaid, days=days) == [("status", 2, "the money did not move there and is booked here")]
    of_another = unpaid.replace(platform.orders[order_no]["trade_no"], "EP9")
    [(kind, line, detail)] = differences(of_another, days=days)
    assert (kind, line) == ("missing_there", None)
    assert detail.endswith(f"it may stand in the statement of {SECOND}")
