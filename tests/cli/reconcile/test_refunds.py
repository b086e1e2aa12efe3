"""`tillbook reconcile`: refunds of this service agree with their lines, and all other refunds are differences."""

import json

import pytest

from gateways.alipay import AlipayDriver
from gateways.epay import EpayDriver
from gateways.sandbox.driver import SandboxDriver
from gateways.sandbox.records import books
from gateways.wechatpay import WechatpayDriver
from models.tables.order import Order
from models.tables.refund import Refund
from models.tables.statement_layout import StatementLayout
from services.orders.returned import Returned
from services.refunds import approve, place
from services.refunds.place import Wanted
from tests.cli.conftest import MANUAL
from tests.cli.reconcile.conftest import HEADER, csv_of, line
from tests.refunds import allow, refunded
from tests.support import completed

FIRST, SECOND, THIRD = "2026-05-01", "2026-05-02", "2026-05-03"
NUMBERED = f"{HEADER},refund_no"


@pytest.fixture(autouse=True)
def allowed(app):
    allow()


@pytest.fixture
def day(clock):
    """`day(SECOND)` moves the clock to noon of that day."""
    return lambda of: clock(f"{of} 12:00:00")


@pytest.fixture
def paid(api):
    """The number of a deposit of 100.00 of the first day."""
    return completed(api)


def payment(order_no, day=FIRST, amount="100.00"):
    return f"{line(order_no, amount, time=f'{day} 12:00:00', reference=f'SB{order_no}')},"


def back(order_no, amount, day=FIRST, number="", reference=None):
    reference = f"SB{order_no}" if reference is None else reference
    return f"{line(order_no, amount, status='refunded', time=f'{day} 12:00:10', reference=reference)},{number}"


@pytest.fixture
def found(compared):
    """`found(day, *lines)`: the differences of one day: kind, line, what both sides have, and the detail."""

    def compare(day, *lines, header=NUMBERED):
        result = compared(csv_of(*lines, header=header), "--since", day, "--until", day)
        return [
            (each["kind"], each["line"], *(" ".join(each[side].values()) for side in ("here", "there")), each["detail"])
            for each in result["differences"]
        ]

    return compare


def test_a_refund_of_this_service_agrees_with_its_line_and_has_a_sum_of_its_own(api, paid, compared):
    number = refunded(api, paid, "40.00")
    for lines in (
        [payment(paid), back(paid, "40.00", number=number)],
        [payment(paid), back(paid, "-40.00")],
        [payment(paid), back(paid, "40.00", reference="")],
    ):
        result = compared(csv_of(*lines, header=NUMBERED))
        assert result["differences"] == []
        for side in ("here", "there"):
            assert {"in": "100.00", "out": "0.00", "refunds": "40.00"}.items() <= result["sums"][side].items()


@pytest.mark.parametrize("with_number", [True, False])
def test_refunds_agree_in_the_statements_of_their_own_days(api, paid, found, day, with_number):
    day(SECOND)
    second = refunded(api, paid, "40.00")
    day(THIRD)
    third = refunded(api, paid, "60.00")
    second, third = (second, third) if with_number else ("", "")
    assert found(FIRST, payment(paid)) == []
    assert found(SECOND, back(paid, "40.00", SECOND, second)) == []
    assert found(THIRD, back(paid, "60.00", THIRD, third)) == []


@pytest.mark.parametrize("with_number", [True, False])
def test_more_than_the_refunds_of_this_service_is_a_difference_on_any_day(api, paid, found, day, with_number):
    number = refunded(api, paid, "40.00") if with_number else refunded(api, paid, "40.00") and ""
    own = [payment(paid), back(paid, "40.00", number=number)]
    other = "F-1" if with_number else ""
    (status,) = found(FIRST, *own, back(paid, "0.01", number=other))
    assert status[:2] == ("status", 4)
    (status,) = found(FIRST, *own, back(paid, "40.00", number=other))
    assert status[:2] == ("status", 4)
    # The refund of this service has its line in the statement of the day before.
    (status,) = found(SECOND, back(paid, "0.01", SECOND, other))
    assert status[:2] == ("status", 2)
    assert "the money went back there and is booked here" in status[4]


def test_a_refund_of_another_amount_is_a_difference(api, paid, found):
    number = refunded(api, paid, "40.00")
    own = back(paid, "39.00", number=number)
    assert found(FIRST, payment(paid), own) == [
        ("amount", 3, "completed 40.00", "refunded 39.00", f"refund {number} has another amount here")
    ]
    assert found(FIRST, own)[0][0] == "amount"
    assert [each[:2] for each in found(FIRST, payment(paid), back(paid, "41.00"))] == [("status", 3)]
    both = found(FIRST, payment(paid), back(paid, "39.00"))
    assert [each[:2] for each in both] == [("missing_there", None)]


def test_a_completed_refund_without_a_line_is_missing_if_the_statement_lists_refunds(api, paid, found, clock):
    number = refunded(api, paid, "40.00")
    detail = f"refund {number} completed here at 2026-05-01 12:00:00"
    missing = ("missing_there", None, "completed 40.00", "", detail)
    assert found(FIRST, payment(paid)) == [missing]
    assert found(FIRST, payment(paid).removesuffix(","), header=HEADER) == []
    other = completed(api)
    refund = refunded(api, other)
    lines = [each.rpartition(",")[0] for each in (payment(paid), payment(other), back(other, "100.00"))]
    assert found(FIRST, *lines, header=HEADER) == [missing]
    assert found(SECOND) == []
    assert found(FIRST, payment(paid), payment(other), back(other, "100.00", number=refund)) == [missing]


def test_a_refund_at_the_edge_of_the_day_names_the_day_of_the_other_statement(api, paid, found, clock, due):
    clock("2026-05-01 23:55:00")
    number = refunded(api, paid, "40.00")
    (missing,) = found(FIRST, payment(paid))
    assert missing[4].endswith("it may stand in the statement of 2026-05-02")
    assert found(SECOND, back(paid, "40.00", SECOND, number)) == []

    clock("2026-05-02 15:00:00")
    other = completed(api)
    refunded(api, other, "30.00", "silent")
    books().set_refund_outcome(Refund.get(Refund.amount == 3_000).refund_no, "success")
    clock("2026-05-03 15:00:00")  # this service hears the result a day late
    due.orders()
    (missing,) = found(THIRD)
    assert missing[4].endswith("it may stand in the statement of 2026-05-02")
    for with_number in (Refund.get(Refund.amount == 3_000).refund_no, ""):
        lines = [payment(other, SECOND), back(other, "30.00", SECOND, with_number), back(paid, "40.00", SECOND, number)]
        assert found(SECOND, *lines) == []


def test_a_refund_in_progress_agrees_with_and_without_a_line(api, paid, found):
    number = refunded(api, paid, "40.00", "silent")
    assert found(FIRST, payment(paid)) == []
    assert found(FIRST, payment(paid), back(paid, "40.00", number=number)) == []
    assert found(FIRST, payment(paid), back(paid, "40.00")) == []


def test_a_cancelled_refund_with_a_line_is_a_difference(api, paid, found):
    number = refunded(api, paid, "40.00", "fail")
    assert found(FIRST, payment(paid), back(paid, "40.00", number=number)) == [
        ("status", 3, "cancelled 40.00", "refunded 40.00", f"refund {number} is cancelled here")
    ]
    assert [each[:2] for each in found(FIRST, payment(paid), back(paid, "40.00"))] == [("status", 3)]


def test_refunds_agree_whoever_paid_for_them(api, paid, found, flask, due, clock):
    place.place(Order.find(paid), Wanted(4_000, "operator", approved_by="operator", by_platform=True))
    flask("channel", "set", 2, "--settlement-days", "9")
    uncredited, whole = completed(api), completed(api)
    numbers = [refunded(api, uncredited, "10.00"), refunded(api, whole)]
    late = api.buy().data["order_no"]
    api.play(late, "fail")
    api.notice(late, 9_000, reference="R-9")
    flask("order", "settle", late, "--refund")
    due.orders()
    assert {each.status for each in Refund.select()} == {"completed"}
    own = {each.paid_from: each.refund_no for each in Refund.select()}
    assert len(own) == 3
    assert {own["platform"], own["exception"], *numbers} == {each.refund_no for each in Refund.select()}
    late_in = f"{line(late, '90.00', reference='R-9')},"
    lines = [*(payment(each) for each in (paid, uncredited, whole)), late_in]
    numbered = [
        back(paid, "40.00", number=own["platform"]),
        back(uncredited, "10.00", number=numbers[0]),
        back(whole, "100.00", number=numbers[1]),
        back(late, "90.00", number=own["exception"], reference="R-9"),
    ]
    assert found(FIRST, *lines, *numbered) == []
    assert found(FIRST, *lines, *(each.rpartition(",")[0] + "," for each in numbered)) == []
    assert [each[0] for each in found(FIRST, *lines)] == ["missing_there"] * 4
    clock("2026-05-02 12:00:00")
    for order_no, reference in ((paid, None), (whole, None), (late, "R-9")):
        (status,) = found(SECOND, back(order_no, "0.01", SECOND, "F-1", reference))
        assert status[:2] == ("status", 2)


def test_a_refund_line_is_found_by_the_number_of_the_refund_alone(api, paid, found):
    number = refunded(api, paid, "40.00")
    assert found(FIRST, payment(paid), back("", "40.00", number=number, reference="")) == []
    assert found(FIRST, payment(paid), back("", "40.00", number="F-1", reference=""))[0][0] == "missing_here"


WECHAT = (
    "交易时间,微信订单号,商户订单号,交易状态,微信退款单号,商户退款单号,退款金额,退款状态,手续费,订单金额,申请退款金额"
)
ALIPAY = (
    "支付宝交易号,商户订单号,业务类型,商品名称,完成时间,订单金额（元）,商家实收（元）,退款批次号/请求号,服务费（元）"
)


@pytest.mark.parametrize("state", ["SUCCESS", "PROCESSING", "FAIL"])
def test_wechats_bill_names_the_refund_and_its_status_proves_nothing(api, paid, found, monkeypatch, state):
    monkeypatch.setattr(SandboxDriver, "statement", WechatpayDriver.statement)
    number = refunded(api, paid, "40.00")
    at = f"`{FIRST} 12:00:00,`SB{paid},`{paid}"
    own = f"{at},`SUCCESS,`0,`0,`0.00,`,`0.60000,`100.00,`0.00"
    refund = f"{at},`REFUND,`503,`{{}},`40.00,`{state},`-0.24000,`0.00,`40.00"
    assert found(FIRST, own, refund.format(number), header=WECHAT) == []
    both = found(FIRST, own, refund.format("F-1"), header=WECHAT)
    assert [each[0] for each in both] == ["status", "missing_there"]
    assert [each[0] for each in found(FIRST, own, header=WECHAT)] == ["missing_there"]


def test_alipays_bill_names_the_refund(api, paid, found, monkeypatch):
    monkeypatch.setattr(SandboxDriver, "statement", AlipayDriver.statement)
    number = refunded(api, paid, "40.00")
    own = f"SB{paid}\t,{paid}\t,交易,x,{FIRST} 12:00:00,100.00,100.00,,-0.60"
    refund = f"SB{paid}\t,{paid}\t,退款,x,{FIRST} 12:00:00,-40.00,-40.00,{{}}\t,0.24"
    assert found(FIRST, own, refund.format(number), header=ALIPAY) == []
    assert [each[0] for each in found(FIRST, own, refund.format("F-1"), header=ALIPAY)] == ["status", "missing_there"]


def test_an_epay_export_has_the_sum_of_all_refunds(api, paid, found, monkeypatch, clock):
    monkeypatch.setattr(SandboxDriver, "statement", EpayDriver.statement)
    refunded(api, paid, "40.00")
    clock("2026-05-01 12:02:00")
    refunded(api, paid, "20.00")
    header = "系统订单号,商户订单号,商品金额,实际支付,已退款金额,创建时间,完成时间,支付状态"

    def row(back, state="已退款"):
        return f"SB{paid},{paid},100.00,100.00,{back},{FIRST} 12:00:00,{FIRST} 12:00:00,{state}"

    assert found(FIRST, row("60.00"), header=header) == []
    assert [each[:3] for each in found(FIRST, row("61.00"), header=header)] == [("status", 2, "completed 100.00")]
    assert [each[:3] for each in found(FIRST, row("40.00"), header=header)] == [
        ("missing_there", None, "completed 20.00")
    ]
    assert [each[:3] for each in found(FIRST, row("0.00", "已支付"), header=header)] == [
        ("missing_there", None, "completed 40.00"),
        ("missing_there", None, "completed 20.00"),
    ]


def test_an_operators_transfer_is_found_by_its_reference_in_the_account_statement(
    api, flask, compared, due, claimed, clock
):
    order_no = claimed("100.00")
    flask("order", "paid", order_no, "--reference", "B1")
    refund = place.place(Order.find(order_no), Wanted(4_000, "operator", approved_by="operator"))
    due.orders()
    approve.mark_refunded(refund, Returned("B2"), "operator")
    header = "交易时间,流水号,收入金额,支出金额,附言"
    roles = '["time", "reference", "income", "expense", "note"]'
    columns = json.dumps(header.split(","), ensure_ascii=False)
    StatementLayout.insert(channel=MANUAL, header=columns, roles=roles, who="anna", createtime=1).execute()
    paid_in = f"{FIRST} 12:00:00,B1,100.00,,"

    def compare(*rows, day=FIRST):
        content = csv_of(*rows, header=header)
        return compared(content, "--since", day, "--until", day, channel=MANUAL)["differences"]

    assert compare(paid_in, f"{FIRST} 12:00:00,B2,,40.00,refund") == []
    assert [each["kind"] for each in compare(paid_in)] == ["missing_there"]
    # The bank dates it later.
    assert compare(f"{SECOND} 09:00:00,B2,,40.00,refund", day=SECOND) == []
    assert [each["kind"] for each in compare(paid_in, f"{FIRST} 12:00:00,B2,,41.00,refund")] == ["amount"]
