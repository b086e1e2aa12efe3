"""The description of each field in one table: meaning, unit, example, and the codes of a bad value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from models.db.base import LARGEST_ID
from runtime.money import hundredths
from schemas.fields import LARGEST_TIME, MOST_FEN
from schemas.messages import N_

YUAN, FEN, PERCENT, POINTS = N_("yuan"), N_("fen"), N_("percent"), N_("basis points")
SECONDS, UNIX, PIECES = N_("seconds"), N_("Unix seconds"), N_("count")

# The range of a response's values as JSON Schema: by unit, unless the field's row has its own.
RANGES: dict[str, dict[str, Any]] = {
    YUAN: {"x-range": ["0.01", hundredths(MOST_FEN)]},  # JSON Schema has no keyword for a range of texts
    PERCENT: {"x-range": ["0.00", "100.00"]},
    FEN: {"minimum": 0, "maximum": 3 * MOST_FEN},
    POINTS: {"minimum": 0, "maximum": 10_000},
    UNIX: {"minimum": 0, "maximum": LARGEST_TIME},
    PIECES: {"minimum": 0, "maximum": LARGEST_ID},
}


@dataclass(frozen=True)
class Meaning:
    """One field. `codes` are for requests, `bounds` (JSON Schema) for responses."""

    text: str
    example: Any = None
    codes: tuple[int, ...] = ()
    unit: str = ""
    bounds: dict[str, Any] = field(default_factory=dict)

    def words(self) -> dict[str, Any]:
        """The field's description in the OpenAPI document, in addition to its type."""
        words: dict[str, Any] = {"description": self.text}
        if self.unit:
            words["x-unit"] = self.unit
        if self.example is not None:
            words["examples"] = [self.example]
        if self.codes:
            words["x-error-codes"] = [*self.codes]
        return words


def _in(text: str, example: Any = None, *codes: int, unit: str = "", instead: tuple[int, ...] = ()) -> Meaning:
    """Describe a request's field: a bad value is 42200, or one of `codes` (or of `instead` if no schema checks it)."""
    return Meaning(text, example, instead or (42200, *codes), unit)


def _out(text: str, example: Any = None, unit: str = "", **bounds: Any) -> Meaning:
    return Meaning(text, example, (), unit, RANGES.get(unit, {}) | bounds)


_NUMBER = {"pattern": "^[0-9]{24}$"}
_CODE = {"pattern": "^[0-9]{6}$"}
_TYPE_IN = N_("1 = deposit (buy), 2 = withdrawal (sell).")
_ORDER_NO = N_("Order number: 24 digits, first the date in China, then random digits.")
_OWN_NO = N_(
    "Your own order number. It does not have to be unique. If several orders have it, "
    "orderQueryDetail returns the oldest. Use a new one after 50201."
)
_A_BALANCE = {"x-range": ["0.00", hundredths(LARGEST_ID)]}
_SIGNED = {"minimum": -LARGEST_ID, "maximum": LARGEST_ID}
_UNSETTLED = N_(
    "The amount of your `confirmed` deposits that will be credited after their settlement delay, after fees. Deposits "
    "whose payment is under review are not included."
)
_PAYER_NO = N_("Order number from `pay_url`.")
_REFUND_NO = "202601024410932758106347"
_OWN_REFUND_NO = N_(
    "Your own number of the refund. Each refund has its own: the same number with the same data is the same refund, "
    "other data is refused with 42201."
)

# By `Class.field`, where a class also applies to its subclasses, or by the name alone.
MEANINGS: dict[str, Meaning] = {
    # --- the four that sign a request
    "api_key": _in("The merchant's API key.", "demo", instead=(40101,)),
    "timestamp": _in(
        "The time of the request, at most 300 seconds from the server's time.", 1767225600, unit=UNIX, instead=(40103,)
    ),
    "nonce": _in(
        "A random text, new for each request: 8 to 64 letters, digits, `_`, `.` or `-`.",
        "d1f0c5a2b7e94c38",
        instead=(40104,),
    ),
    "signature": _in(
        "HMAC-SHA256 of the string to sign with the API secret as the key, in lowercase hex.",
        "0" * 64,
        instead=(40102,),
    ),
    # --- a new order
    "NewOrder.order_type": _in(_TYPE_IN, 2),
    "BuyOrder.order_type": _in(_TYPE_IN, 1),
    "NewOrder.cny_amount": _in(
        'The amount with at most two decimals, as a text such as "100.00". The channel can have narrower limits. '
        "A withdrawal needs sufficient balance (40901).",
        "100.00",
        40901,
        unit=YUAN,
    ),
    "BuyOrder.cny_amount": _in(
        'The amount with at most two decimals, as a text such as "100.00". The channel can have narrower limits.',
        "100.00",
        unit=YUAN,
    ),
    "NewOrder.paychannel_id": _in("The `id` of a channel from getPayChannels.", 2, 40403),
    "SellOrder.paychannel_id": _in(
        "The `id` of a channel from getPayChannels. The money is sent to your newest payout account. "
        "Without a payout account the code is 40903.",
        2,
        40403,
        40903,
    ),
    "GatewayASellOrder.paychannel_id": _in("The `id` of a channel of category gateway_a.", 1, 40403),
    "NewOrder.paychannel_paymethod": _in("A payment method of the channel.", "bank"),
    "BuyOrder.paychannel_paymethod": _in("A payment method of the channel.", "wxpay"),
    "NewOrder.merchant_order_no": _in(_OWN_NO, "A-1001"),
    "SellOrder.merchant_order_no": _in(_OWN_NO, "W-2001"),
    "GatewayASellOrder.merchant_order_no": _in(_OWN_NO, "W-2002"),
    "BuyOrder.customer_name": _in("The name of the payer, for your records.", "张三"),
    "GatewayAFields.gatewaya_personal_data": _in("The owner of the settlement card."),
    "GatewayAFields.gatewaya_card_info": _in("The settlement card that receives the money."),
    "PersonalData.name": _in("Real name.", "张三"),
    "PersonalData.cert_type": _in("Certificate type, two digits. 00 = identity card.", "00"),
    "PersonalData.cert_no": _in("Certificate number.", "110101199003077758"),
    "PersonalData.cert_validity_type": _in("1 = long-term valid, 0 = valid until `cert_end_date`.", "0"),
    "PersonalData.cert_begin_date": _in("The first day of validity, YYYYMMDD.", "20200101"),
    "PersonalData.cert_end_date": _in(
        "The last day of validity, YYYYMMDD, not before the first. Required if `cert_validity_type` "
        "is 0, otherwise it can be empty.",
        "20400101",
    ),
    "PersonalData.mobile_no": _in("Mobile number: digits and `-`, with or without a leading `+`.", "13800138000"),
    "PersonalData.email": _in("E-mail address.", "zhang.san@example.com"),
    "PersonalData.address": _in("Postal address.", "东华门街道1号"),
    "CardInfo.card_type": _in(
        "0 = corporate, 1 = individual legal person, 2 = individual non-legal person, 4 = corporate "
        "with a different holder name.",
        "2",
    ),
    "CardInfo.card_name": _in("Name of the card holder.", "张三"),
    "CardInfo.card_no": _in("Bank card number, digits only.", "6222020000000000017"),
    "CardInfo.prov_id": _in("Province code from provinceList.", "110000"),
    "CardInfo.area_id": _in("Code of a city or district in that province.", "110101"),
    # --- queries
    "OrderDetailQuery.id": _in(
        "The id of the order: `order_id` of a withdrawal. Used first if several of the three are sent.", 1, 40401
    ),
    "OrderDetailQuery.order_no": _in(
        "Order number: 24 digits, first the date in China, then random digits. Used before `merchant_order_no`.",
        "202601018899480685472049",
        40401,
    ),
    "OrderDetailQuery.merchant_order_no": _in(_OWN_NO, "A-1001", 40401),
    "OrderListQuery.page": _in("The page number, from 1. The default is 1.", 1, unit=PIECES),
    "OrderListQuery.limit": _in("The number of orders on a page. The default is 20.", 20, unit=PIECES),
    "OrderListQuery.status": _in("Only orders with this status.", "completed"),
    "OrderListQuery.order_type": _in("Only deposits (1) or withdrawals (2).", 1),
    "OrderListQuery.merchant_order_no": _in(
        "Only orders whose `merchant_order_no` contains this text. ASCII case is ignored. `%` and `_`"
        " are ordinary characters.",
        "A-10",
    ),
    "OrderListQuery.start_time": _in("Only orders created at this time or later.", 1767225600, unit=UNIX),
    "OrderListQuery.end_time": _in("Only orders created at this time or earlier.", 1798761599, unit=UNIX),
    "OrderListQuery.before": _in(
        "The next page: only orders that follow this order_no in the list. Leave `page` out.",
        "202601018899480685472049",
        40401,
    ),
    # --- refunds
    "NewRefund.order_no": _in(
        "The deposit to refund. Its status must be `confirmed` or `completed`.",
        "202601018899480685472049",
        40401,
        40904,
    ),
    "NewRefund.cny_amount": _in(
        'The amount to refund with at most two decimals, as a text such as "30.00": the whole payment, or a part of '
        "what is left of it (40904). Your available balance must cover it (40901).",
        "30.00",
        40901,
        40904,
        unit=YUAN,
    ),
    "NewRefund.merchant_refund_no": _in(_OWN_REFUND_NO, "R-1001", 42201),
    "NewRefund.reason": _in(
        "The reason, at most 80 bytes in UTF-8. The channel can show it to the payer.", "Returned goods"
    ),
    "RefundDetailQuery.refund_no": _in("Refund number: 24 digits. Used first if both are sent.", _REFUND_NO, 40405),
    "RefundDetailQuery.merchant_refund_no": _in("Your own number of the refund.", "R-1001", 40405),
    "RefundListQuery.page": _in("The page number, from 1. The default is 1.", 1, unit=PIECES),
    "RefundListQuery.limit": _in("The number of refunds on a page. The default is 20.", 20, unit=PIECES),
    "RefundListQuery.status": _in("Only refunds with this status.", "completed"),
    "RefundListQuery.order_no": _in("Only refunds of this order.", "202601018899480685472049"),
    "RefundListQuery.start_time": _in("Only refunds created at this time or later.", 1767225600, unit=UNIX),
    "RefundListQuery.end_time": _in("Only refunds created at this time or earlier.", 1798761599, unit=UNIX),
    "RefundListQuery.before": _in(
        "The next page: only refunds that follow this refund_no in the list. Leave `page` out.", _REFUND_NO, 40405
    ),
    # --- statements
    "StatementQuery.month": _in("The month in China (UTC+8), YYYY-MM, not a future one.", "2026-10"),
    "StatementQuery.format": _in("`json` (default): `list` has the lines. `csv`: `csv` has them as text.", "json"),
    "StatementQuery.limit": _in("The number of lines of a page. The default is 100.", 100, unit=PIECES),
    "StatementQuery.after": _in(
        "The next page: only lines that follow this line_no. Send `next` of the previous page.", "a17", 40406
    ),
    "ChannelListQuery.category": _in("Only channels of this category.", "gateway_b"),
    "CityQuery.province": _in("Province name, exactly as in provinceList.", "广东省", 40402),
    "DistrictQuery.city": _in("City name, exactly as in cityList.", "广州市", 40402),
    # --- texts in addresses, forms and headers, which no schema checks
    "paymentPage.order_no": Meaning(
        "Order number from `pay_url`. An unknown number returns a page with status 404.", "202601018899480685472049"
    ),
    "paymentPage.again": Meaning("Inside WeChat: opens the payment again after the channel refused it.", "1"),
    "retried": Meaning("Inside WeChat: sent once after a failed sign-in, which is then tried again.", "1"),
    "paymentPage.stay": Meaning("Sent by a payer who does not want to return to the merchant automatically.", "1"),
    "paymentPage.played": Meaning("Sandbox only: the outcome that the tester has just chosen.", "success"),
    "paymentPage.refused": Meaning("Sent after the channel refused the payment method that the payer chose.", ""),
    "paymentSignedIn.code": Meaning("The channel's code, with which the service learns who pays.", "0a1b2c3d4e5f"),
    "paymentSignedIn.state": Meaning("Proves that this browser began the sign-in.", "rA5ZT0CGdx8"),
    "paymentChosen.order_no": Meaning("The payment's number.", "202601018899480685472049"),
    "paymentChosen.choice": Meaning("The channel and the payment method, as the page offers them.", "2-alipay"),
    "paymentOpened.again": Meaning(
        "`1` opens the payment again after the channel refused it, with a new number at the channel. Otherwise empty.",
        "1",
    ),
    "order_no": _in(_PAYER_NO, "202601018899480685472049", instead=(40401,)),
    "Idempotency-Key": _in(
        "Makes a retry safe for 24 hours: the same key with the same payload returns the first response again.",
        "0b5e2f1c-7d0a-4f7e-9b59-1f6f1f3c2a11",
        40902,
        42201,
    ),
    "If-None-Match": Meaning(
        "The `ETag` of an earlier response. The status is 304 if nothing has changed.", '"0a1b2c3d"'
    ),
    # --- an order in responses
    "View.order_no": _out(_ORDER_NO, "202601018899480685472049", **_NUMBER),
    "View.merchant_order_no": _out("Your own order number as sent, otherwise empty.", "A-1001", maxLength=255),
    "View.order_id": _out("The `id` for orderQueryDetail.", "2", pattern="^[1-9][0-9]{0,18}$"),
    "View.status": _out("The status of the order.", "completed"),
    "CreatedOrder.status": _out(
        "Always `pending`, also in a replayed response. Query the order for its current status.", "pending"
    ),
    "View.order_type": _out(_TYPE_IN, 1),
    "SellOrderView.order_type": _out(_TYPE_IN, 2),
    "View.cny_amount": _out("The amount of the order.", "100.00", YUAN),
    "View.merchant_amount": _out("The amount before fees, equal to `cny_amount`.", "100.00", YUAN),
    "View.service_amount": _out("The service fee: amount times your rate, rounded half up to a fen.", 60, FEN),
    "SellOrderView.service_amount": _out("The service fee: amount times your rate, rounded half up to a fen.", 30, FEN),
    "View.service_rate": _out("Your service rate when the order was created.", "0.60", PERCENT),
    "View.merchant_actual_amount": _out(
        "Deposit: the amount credited, after the fee. Withdrawal: the amount deducted, including fees.", 9940, FEN
    ),
    "BuyOrderView.merchant_actual_amount": _out("The amount that will be credited, after the fee.", 9940, FEN),
    "SellOrderView.merchant_actual_amount": _out(
        "The amount deducted: amount, service fee and channel fee.", 10020, FEN
    ),
    "BuyOrderView.deposit_amount": _out("For a deposit: the amount of the order in fen.", 10000, FEN),
    "View.deposit_amount": _out(
        "For a withdrawal: the security deposit reserved while the order is open. It is returned in full.", 100, FEN
    ),
    "View.deposit_rate": _out("The rate of the security deposit.", 100, POINTS),
    "View.passage_rate": _out(
        "The rate of the channel fee. A negative rate is a rebate.",
        "-0.10",
        PERCENT,
        **{"x-range": ["-100.00", "100.00"]},
    ),
    "View.passage_amount": _out(
        "The channel fee of this order. A negative amount is a rebate.", -10, FEN, minimum=-MOST_FEN, maximum=MOST_FEN
    ),
    "View.channel_amount": _out("The channel cost. The operator pays it.", 20, FEN),
    "View.base_rate": _out("Your service rate when the order was created.", 30, POINTS),
    "View.createtime": _out("Creation time.", 1767225600, UNIX),
    "View.updatetime": _out("Time of the last change.", 1767225660, UNIX),
    "OrderView.updatetime": _out(
        "Time of the last step. Several steps can have the same time, so do not order callbacks by it.",
        1767225660,
        UNIX,
    ),
    "View.payment_method": _out("The payment method of the order: `wxpay`, `alipay` or `bank`.", "wxpay"),
    "View.pay_url": _out(
        "The payment page. Open it in the payer's browser. After the payment it leads back to your shop, if the "
        "operator has set a return address.",
        "https://pay.example.com/addons/paychannel/pay/index?order_no=202601018899480685472049",
        format="uri",
    ),
    "View.payment_method_id": _out("The id of the payout account.", 1, minimum=1, maximum=LARGEST_ID),
    "View.payment_method_snapshot": _out("The payout account when the order was created."),
    "View.customer_payment_method": _out("The payout account with a text to show."),
    "View.bank": _out("The bank, empty if unknown.", "中国工商银行"),
    "View.sub_bank": _out("The branch, empty if unknown.", "北京东城支行"),
    "View.card_number": _out("Card or account number.", "6222020000000000017"),
    "View.real_name": _out("Name of the account holder.", "张三"),
    "View.full_info": _out("All details in one text.", "中国工商银行 北京东城支行 6222020000000000017 张三"),
    # --- a refund in responses
    "View.refund_no": _out("Refund number: 24 digits.", _REFUND_NO, **_NUMBER),
    "RefundView.order_no": _out("The order number of the refunded deposit.", "202601018899480685472049", **_NUMBER),
    "RefundView.merchant_refund_no": _out(
        "Your own number of the refund. Empty if the operator made it.", "R-1001", maxLength=64
    ),
    "RefundView.cny_amount": _out("The amount of the refund, which the payer receives.", "30.00", YUAN),
    "RefundView.service_amount": _out("The service fee that you get back with this refund.", 18, FEN),
    "RefundView.merchant_actual_amount": _out(
        "The amount deducted from your balance: the refund, less the fee that you get back. 0 if it costs you nothing.",
        2982,
        FEN,
    ),
    "RefundView.status": _out(
        "`pending`: needs approval, or waits for its turn. `confirmed`: handed to the channel. `completed`: the payer "
        "received it. `cancelled`: rejected or failed.",
        "completed",
    ),
    "RefundView.reason": _out("The reason as sent, otherwise empty.", "Returned goods", maxLength=80),
    "RefundPage.list": _out("The refunds of this page, newest first."),
    "NotRefundable.reason": _out(
        "`disabled`: you may not refund. `state`: the order is not a `confirmed` or `completed` deposit. `window`: the "
        "payment is too old. `driver`: the channel has no refunds. `exception`: the operator is reviewing the payment. "
        "`amount`: more than what is left.",
        "amount",
    ),
    "NotRefundable.left": _out(
        "What can still be refunded.", "30.00", YUAN, **{"x-range": ["0.00", hundredths(MOST_FEN)]}
    ),
    # --- lists and channels
    "OrderPage.list": _out("The orders of this page, newest first."),
    "ChannelList.list": _out("The enabled channels linked to you."),
    "View.total": _out("The number of all matches.", 1, PIECES),
    "View.page": _out("The page number.", 1, PIECES, minimum=1),
    "View.limit": _out("The page size.", 20, PIECES, minimum=1, maximum=100),
    "View.id": _out("The `paychannel_id` for createOrder.", 2, minimum=1, maximum=LARGEST_ID),
    "View.category": _out("The category. It decides which data a withdrawal needs.", "gateway_b"),
    "Channel.name": _out("Name of the channel.", "Sandbox B"),
    "View.pay_method": _out(
        "The payment methods, separated by commas: `wxpay`, `alipay`, `bank`.",
        "wxpay,alipay",
        pattern="^((wxpay|alipay|bank)(,(wxpay|alipay|bank))*)?$",
    ),
    "View.category_text": _out("Display text of the category.", "Gateway B"),
    "View.pay_method_text": _out("Display text of the payment methods.", "WeChat Pay, Alipay"),
    # --- the balance
    "View.available_cny_amount": _out(
        "The amount available for withdrawals and refunds.", "10000.00", YUAN, **_A_BALANCE
    ),
    "View.available_amount": _out(
        "The amount available for withdrawals and refunds.", 1000000, FEN, maximum=LARGEST_ID
    ),
    "View.held_cny_amount": _out(
        "The amount reserved for open withdrawals, including fees and security deposits, and for open refunds.",
        "101.20",
        YUAN,
        **_A_BALANCE,
    ),
    "View.held_amount": _out(
        "The amount reserved for open withdrawals, including fees and security deposits, and for open refunds.",
        10120,
        FEN,
        maximum=LARGEST_ID,
    ),
    "View.unsettled_cny_amount": _out(_UNSETTLED, "99.40", YUAN, **_A_BALANCE),
    "View.unsettled_amount": _out(_UNSETTLED, 9940, FEN, maximum=LARGEST_ID),
    # --- a statement
    "StatementView.month": _out("The month in China (UTC+8).", "2026-10", pattern="^[0-9]{4}-[0-9]{2}$"),
    "StatementView.is_over": _out("Whether the month is over. Otherwise the statement ends now.", True),
    "View.opening_cny_amount": _out(
        "The balance at the beginning, with its reserved part.", "10000.00", YUAN, **_A_BALANCE
    ),
    "View.opening_amount": _out(
        "The balance at the beginning, with its reserved part.", 1000000, FEN, maximum=LARGEST_ID
    ),
    "View.closing_cny_amount": _out("The balance at the end, with its reserved part.", "10099.40", YUAN, **_A_BALANCE),
    "View.closing_amount": _out("The balance at the end, with its reserved part.", 1009940, FEN, maximum=LARGEST_ID),
    "StatementView.held_cny_amount": _out("The reserved part of the closing balance.", "0.00", YUAN, **_A_BALANCE),
    "StatementView.held_amount": _out("The reserved part of the closing balance.", 0, FEN, maximum=LARGEST_ID),
    "View.deposits_count": _out("The number of credited deposits.", 1, PIECES),
    "View.deposits_amount": _out("Credited deposits, before fees.", 10000, FEN, **_SIGNED),
    "View.withdrawals_count": _out("The number of withdrawals that were paid out.", 0, PIECES),
    "View.withdrawals_amount": _out(
        "Withdrawals that were paid out, before fees, as a negative number.", 0, FEN, **_SIGNED
    ),
    "View.refunds_count": _out("The number of refunds, completed and come back.", 0, PIECES),
    "View.refunds_amount": _out("Refunds, before fees; negative if they were deducted.", 0, FEN, **_SIGNED),
    "View.exceptions_count": _out("The number of exceptions that moved the balance.", 0, PIECES),
    "View.exceptions_amount": _out("Exceptions that moved the balance, before fees.", 0, FEN, **_SIGNED),
    "View.adjustments_count": _out("The number of manual adjustments.", 0, PIECES),
    "View.adjustments_amount": _out("Manual adjustments.", 0, FEN, **_SIGNED),
    "View.fees_amount": _out("The fees, negative if you paid them.", -60, FEN, **_SIGNED),
    "View.change_amount": _out("The change of the balance.", 9940, FEN, **_SIGNED),
    "View.balance_amount": _out("The balance after it, with its reserved part.", 1009940, FEN, maximum=LARGEST_ID),
    "View.days": _out("The days with lines, oldest first."),
    "View.day": _out("The day in China (UTC+8).", "2026-10-05", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    "View.csv": _out(
        "The lines of this page as CSV. The first page begins with the names of the columns.",
        "time,kind,order_no,merchant_order_no,amount,fees,change,balance,memo,line_no\r\n",
    ),
    "StatementView.list": _out("The lines of this page, oldest first."),
    "StatementView.total": _out("The number of all lines of the month.", 1, PIECES),
    "StatementView.limit": _out("The page size.", 100, PIECES, minimum=1, maximum=1000),
    "View.next": _out("The `after` of the next page; empty on the last page.", "a17", pattern="^([ah][0-9]+)?$"),
    "View.line_no": _out("Your unique number of the line. It never changes.", "a17", pattern="^[ah][0-9]+$"),
    "StatementLineView.createtime": _out("When the balance changed.", 1767225660, UNIX),
    "View.kind": _out(
        "`credit`: a deposit. `spend`, `spend_again`: a withdrawal. `refund`, `refund_return`: a refund, and one that "
        "came back. `exception`, `return`: an exception. `adjustment`, `sandbox_removal`: an adjustment.",
        "credit",
    ),
    "StatementLineView.order_no": _out(
        "The order. Empty for adjustments without an order.", "202601018899480685472049", pattern="^([0-9]{24})?$"
    ),
    "StatementLineView.merchant_order_no": _out("Your own number of the order; may be empty.", "A-1001"),
    "StatementLineView.cny_amount": _out(
        "The amount before fees, negative if it was deducted.",
        "100.00",
        YUAN,
        **{"x-range": [hundredths(-LARGEST_ID), hundredths(LARGEST_ID)]},
    ),
    "StatementLineView.memo": _out(
        "The reason of an adjustment, or the kind of an exception. Otherwise empty.", "late"
    ),
    # --- regions
    "Region.name": _out("The name. Use it in the next request.", "广东省", minLength=1),
    "Region.code": _out("Administrative division code.", "440000", **_CODE),
    "View.val": _out("Administrative division code.", "440000", **_CODE),
    "Province.items": _out("The cities by name.", {"广州市": {"val": "440100", "items": {"天河区": "440106"}}}),
    "City.items": _out("The codes of the districts by name.", {"天河区": "440106"}),
    # --- the payment page's state, health, callbacks
    "View.ready": _out("Whether the payment details are ready to be shown.", True),
    "View.moved": _out("Whether the payment was opened in another browser after this one.", False),
    "View.state": _out(
        "The panel of the page: the status, or `expired`; `checking` or `late` while a payment that does not match or "
        "was late is checked; `refunded` after it was sent back.",
        "completed",
    ),
    "View.can_return": _out("Whether the payer can return to the merchant now.", False),
    "View.received_at": _out("When the money was received; null until the payment is confirmed.", 1795231994, UNIX),
    "View.checking": _out("Whether the operator is reviewing a received payment.", False),
    "View.seconds_left": _out("Time until the order expires, then 0.", 840, SECONDS, minimum=0, maximum=LARGEST_TIME),
    "View.version": _out("Version of the service.", "0.4.0"),
    "Readiness.database": _out("`ok`, or why the database cannot be written.", "ok"),
    "Readiness.scheduler": _out("`ok`, or the background jobs that are overdue.", "ok"),
    "Readiness.disk": _out("`ok`, or the folder with little free space.", "ok"),
    "Readiness.clock": _out("`ok`, or the problem: set back recently, or different from the database's clock.", "ok"),
    "Readiness.proxy": _out(
        "`ok`, or a warning that `trusted_proxies` is probably too low. It never fails the check.", "ok"
    ),
    "NoticeRefused.code": _out("Always FAIL.", "FAIL"),
    "NoticeRefused.message": _out("The reason as text.", "the notice was refused"),
    "Event.type": _out("The event. Respond with 2xx to unknown types too.", "order.completed"),
    "Event.timestamp": _out("Time of the event, RFC 3339 in UTC.", "2026-01-01T00:01:00Z", format="date-time"),
    "Event.data": _out("The order at that time, as the queries return it."),
    "RefundEvent.type": _out("The event. Respond with 2xx to unknown types too.", "refund.completed"),
    "RefundEvent.timestamp": _out("Time of the event, RFC 3339 in UTC.", "2026-01-02T00:01:00Z", format="date-time"),
    "RefundEvent.data": _out("The refund at that time, as the queries return it."),
    "webhook-id": _out(
        "Id of the event, the same in every retry and redelivery. Process each id once.",
        "msg_0f8e4c1d8a3b4f6f9b1f2c7d5e6a7b80",
        pattern="^msg_[0-9a-f]{32}$",
    ),
    "webhook-timestamp": _out(
        "Time of this attempt. Reject it if it differs from your time by more than 300 seconds.", 1767225660, UNIX
    ),
    "webhook-signature": _out(
        "`v1,` and the base64 of HMAC-SHA256 of `webhook-id.webhook-timestamp.body` with the decoded "
        "callback secret. While the secret rotates there are two, separated by a space. Accept "
        "either.",
        "v1,LJAHTsV9nc1EfiDG3mLI4r7qjECIOB0W0jvD9mE/Hys=",
        pattern="^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$",
    ),
}


# Each object of a body or a response, by its class.
SCHEMAS = {
    "SignedBuyOrder": N_("A deposit"),
    "SignedSellOrder": N_("A withdrawal through gateway_b or gateway_c"),
    "SignedGatewayASellOrder": N_("A withdrawal through gateway_a"),
    "PersonalData": N_("The owner of the settlement card"),
    "CardInfo": N_("The settlement card that receives the money"),
    "CreatedBuyOrder": N_("A new deposit"),
    "CreatedSellOrder": N_("A new withdrawal"),
    "Account": N_("A payout account when the order was created"),
    "AccountWithText": N_("A payout account with a text to show"),
    "SignedOrderDetailQuery": N_("One of three parameters, by their priority"),
    "SignedOrderListQuery": N_("A page of the list, and its filters"),
    "SignedBalanceQuery": N_("The four signing parameters only"),
    "BalanceView": N_("A merchant's balance"),
    "OrderView": N_("An order, in queries and callbacks"),
    "OrderPage": N_("One page of orders"),
    "OptionalAuth": N_("The four signing parameters, here or in the query string"),
    "Channel": N_("A channel"),
    "ChannelList": N_("The channels that you can use"),
    "Region": N_("A province, city or district"),
    "Province": N_("A province with its cities by name"),
    "City": N_("A city with its districts by name"),
    "PaymentState": N_("The state of a payment page"),
    "Health": N_("The version of the running service"),
    "Readiness": N_("The result of each check"),
    "NoticeRefused": N_("The response to a rejected notice, if the channel expects JSON"),
    "SignedNewRefund": N_("A refund of a deposit"),
    "SignedRefundDetailQuery": N_("One of two parameters, by their priority"),
    "SignedRefundListQuery": N_("A page of the list of refunds, and its filters"),
    "RefundView": N_("A refund, in responses and callbacks"),
    "RefundPage": N_("One page of refunds"),
    "SignedStatementQuery": N_("A month, and a page of its lines"),
    "StatementPage": N_("A statement with a page of its lines"),
    "StatementFile": N_("A statement with a page of its lines as CSV"),
    "StatementDayView": N_("The movements of a day"),
    "StatementLineView": N_("A line of a statement"),
    "Event": N_("A callback about an order"),
    "RefundEvent": N_("A callback about a refund"),
}


def meaning_of(name: str, *owners: str) -> Meaning:
    """Return the row of a field of one of these owners, nearest first, or of any. Raises KeyError if it has none."""
    keys = [*(f"{owner}.{name}" for owner in owners), name]
    return MEANINGS[next((key for key in keys if key in MEANINGS), name)]
