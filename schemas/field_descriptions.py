"""The description of each field in one table: meaning, unit, example, and the codes of a bad value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from models.db.base import LARGEST_ID
from schemas.fields import LARGEST_TIME, MOST_FEN

YUAN, FEN, PERCENT, POINTS = "yuan", "fen", "percent", "basis points"
SECONDS, UNIX, PIECES = "seconds", "Unix seconds", "pieces"

# What a value that goes out is bounded by, as JSON Schema: by its unit, unless its row says otherwise.
RANGES: dict[str, dict[str, Any]] = {
    YUAN: {"x-range": ["0.01", f"{MOST_FEN // 100}.00"]},  # which JSON Schema has no word for in a text
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
        said: dict[str, Any] = {"description": self.text}
        if self.unit:
            said["x-unit"] = self.unit
        if self.example is not None:
            said["examples"] = [self.example]
        if self.codes:
            said["x-error-codes"] = [*self.codes]
        return said


def _in(text: str, example: Any = None, *codes: int, unit: str = "", instead: tuple[int, ...] = ()) -> Meaning:
    """A request's field: a bad value is 42200, or one of `codes`, or (if no schema checks it) one of `instead`."""
    return Meaning(text, example, instead or (42200, *codes), unit)


def _out(text: str, example: Any = None, unit: str = "", **bounds: Any) -> Meaning:
    return Meaning(text, example, (), unit, RANGES.get(unit, {}) | bounds)


_NUMBER = {"pattern": "^[0-9]{24}$"}
_CODE = {"pattern": "^[0-9]{6}$"}
_TYPE_IN = "1 is a deposit (buy), 2 a withdrawal (sell)."
_ORDER_NO = "The service's number of the order: 24 digits, the date in China and then random ones."
_OWN_NO = "Your own number. It need not be unique; of several orders with one number the detail query gives the oldest."
_PAYER_NO = "The order's number, as `pay_url` has it."

# By `Class.field`, where a class also stands for those that inherit from it, or by the name alone.
MEANINGS: dict[str, Meaning] = {
    # --- the four that sign a request
    "api_key": _in("Which merchant calls.", "demo", instead=(40101,)),
    "timestamp": _in("When the request was signed; at most 300 s off.", 1767225600, unit=UNIX, instead=(40103,)),
    "nonce": _in(
        "A random text, another one for each request: 8 to 64 letters, digits, `_`, `.`, `-`.",
        "d1f0c5a2b7e94c38",
        instead=(40104,),
    ),
    "signature": _in(
        "HMAC-SHA256 of the string to sign under the API secret, in lowercase hex.", "0" * 64, instead=(40102,)
    ),
    # --- a new order
    "NewOrder.order_type": _in(_TYPE_IN, 2),
    "BuyOrder.order_type": _in(_TYPE_IN, 1),
    "NewOrder.cny_amount": _in(
        "The amount, a number or a text, with at most two decimals. The channel has limits of its own: 0.01 to "
        "1000000.00 yuan unless the operator set others. For a withdrawal the balance must cover it (40901).",
        "100.00",
        40901,
        unit=YUAN,
    ),
    "BuyOrder.cny_amount": _in(
        "The amount, a number or a text, with at most two decimals. The channel has limits of its own: 0.01 to "
        "1000000.00 yuan unless the operator set others.",
        "100.00",
        unit=YUAN,
    ),
    "NewOrder.paychannel_id": _in("The channel's `id`, from getPayChannels.", 2, 40403),
    "SellOrder.paychannel_id": _in(
        "The channel's `id`, from getPayChannels. The money goes to your newest receiving account; without one it is "
        "40903.",
        2,
        40403,
        40903,
    ),
    "GatewayASellOrder.paychannel_id": _in("The `id` of a channel of category gateway_a.", 1, 40403),
    "NewOrder.paychannel_paymethod": _in("One that the channel can pay out by.", "bank"),
    "BuyOrder.paychannel_paymethod": _in("One that the channel takes.", "wxpay"),
    "NewOrder.merchant_order_no": _in(_OWN_NO, "A-1001"),
    "SellOrder.merchant_order_no": _in(_OWN_NO, "W-2001"),
    "GatewayASellOrder.merchant_order_no": _in(_OWN_NO, "W-2002"),
    "BuyOrder.customer_name": _in("Who pays, for your records.", "张三"),
    "GatewayAFields.gatewaya_personal_data": _in("The person behind the settlement card."),
    "GatewayAFields.gatewaya_card_info": _in("The settlement card that the money goes to."),
    "PersonalData.name": _in("The person's real name.", "张三"),
    "PersonalData.cert_type": _in("The kind of certificate, two digits: 00 is an identity card.", "00"),
    "PersonalData.cert_no": _in("The certificate's number.", "110101199003077758"),
    "PersonalData.cert_validity_type": _in("1 is valid for good, 0 until `cert_end_date`.", "0"),
    "PersonalData.cert_begin_date": _in("The first day on which it is valid, YYYYMMDD.", "20200101"),
    "PersonalData.cert_end_date": _in(
        "The last day, YYYYMMDD, not before the first. Required if `cert_validity_type` is 0; may be empty otherwise.",
        "20400101",
    ),
    "PersonalData.mobile_no": _in("A telephone number: digits and `-`, with or without `+`.", "13800138000"),
    "PersonalData.email": _in("An e-mail address.", "zhang.san@example.com"),
    "PersonalData.address": _in("A postal address.", "东华门街道1号"),
    "CardInfo.card_type": _in(
        "0 corporate, 1 the legal person, 2 another individual, 4 corporate with another holder's name.",
        "2",
    ),
    "CardInfo.card_name": _in("The card holder's name.", "张三"),
    "CardInfo.card_no": _in("The card's number, digits only.", "6222020000000000017"),
    "CardInfo.prov_id": _in("A province's code, from provinceList.", "110000"),
    "CardInfo.area_id": _in("The code of a city or district inside that province.", "110101"),
    # --- queries
    "OrderDetailQuery.id": _in("The order's id: `order_id` of a withdrawal. Goes before the two others.", 1, 40401),
    "OrderDetailQuery.order_no": _in(
        f"{_ORDER_NO} Goes before `merchant_order_no`.", "202601018899480685472049", 40401
    ),
    "OrderDetailQuery.merchant_order_no": _in(_OWN_NO, "A-1001", 40401),
    "OrderListQuery.page": _in("The page number, from 1. The default is 1.", 1, unit=PIECES),
    "OrderListQuery.limit": _in("The number of orders on a page. The default is 20.", 20, unit=PIECES),
    "OrderListQuery.status": _in("Only orders with this status.", "completed"),
    "OrderListQuery.order_type": _in(f"Only one kind: {_TYPE_IN}", 1),
    "OrderListQuery.merchant_order_no": _in(
        "Only orders whose own number contains this text; ASCII case is ignored, `%` and `_` mean themselves.", "A-10"
    ),
    "OrderListQuery.start_time": _in("Only orders created then or later.", 1767225600, unit=UNIX),
    "OrderListQuery.end_time": _in("Only orders created then or earlier.", 1798761599, unit=UNIX),
    "OrderListQuery.before": _in(
        "The next page: only orders that follow this order_no in the list. Leave `page` out.",
        "202601018899480685472049",
        40401,
    ),
    "ChannelListQuery.category": _in("Only channels of this category.", "gateway_b"),
    "CityQuery.province": _in("A province's name, exactly as in provinceList.", "广东省", 40402),
    "DistrictQuery.city": _in("A city's name, exactly as in cityList.", "广州市", 40402),
    # --- what is not held to a schema: texts in addresses, forms and headers
    "paymentPage.order_no": Meaning(
        f"{_PAYER_NO} Another one is answered by a page with 404.", "202601018899480685472049"
    ),
    "paymentPage.played": Meaning("Which outcome a tester has chosen just now; of use in the sandbox only.", "success"),
    "paymentOpened.again": Meaning(
        "`1`: open it also after a refusal, under a new number at the channel; empty: not then.", "1"
    ),
    "order_no": _in(_PAYER_NO, "202601018899480685472049", instead=(40401,)),
    "Idempotency-Key": _in(
        "Makes a retry safe for 24 hours: the same key with the same payload gives the first answer again.",
        "0b5e2f1c-7d0a-4f7e-9b59-1f6f1f3c2a11",
        40902,
        42201,
    ),
    "If-None-Match": Meaning("The `ETag` of an earlier answer: 304 if nothing has changed since.", '"0a1b2c3d"'),
    # --- an order, going out
    "View.order_no": _out(_ORDER_NO, "202601018899480685472049", **_NUMBER),
    "View.merchant_order_no": _out("Your own number, as sent; empty where none was.", "A-1001", maxLength=255),
    "View.order_id": _out("The `id` for orderQueryDetail.", "2", pattern="^[1-9][0-9]{0,18}$"),
    "View.status": _out("How far the order has come.", "completed"),
    "CreatedOrder.status": _out("Always `pending`, in a safe retry too; ask for the present one.", "pending"),
    "View.order_type": _out(_TYPE_IN, 1),
    "SellOrderView.order_type": _out(_TYPE_IN, 2),
    "View.cny_amount": _out("The order's amount.", "100.00", YUAN),
    "View.merchant_amount": _out("The order's amount again, before fees.", "100.00", YUAN),
    "View.service_amount": _out("The service's fee: the amount times your rate, half a fen rounded up.", 60, FEN),
    "SellOrderView.service_amount": _out(
        "The service's fee: the amount times your rate, half a fen rounded up.", 30, FEN
    ),
    "View.service_rate": _out("Your rate when the order was created.", "0.60", PERCENT),
    "View.merchant_actual_amount": _out(
        "What is credited for a deposit (amount - fee) or deducted for a withdrawal (amount + fees).", 9940, FEN
    ),
    "BuyOrderView.merchant_actual_amount": _out("What will be credited: the amount less the fee.", 9940, FEN),
    "SellOrderView.merchant_actual_amount": _out("What is deducted: amount + service + passage.", 10020, FEN),
    "BuyOrderView.deposit_amount": _out("The amount in fen.", 10000, FEN),
    "View.deposit_amount": _out("Security that is held while the order is open, and comes back whole.", 100, FEN),
    "View.deposit_rate": _out("The rate of that security.", 100, POINTS),
    "View.passage_rate": _out(
        "The channel's surcharge; negative is a rebate.", "-0.10", PERCENT, **{"x-range": ["-100.00", "100.00"]}
    ),
    "View.passage_amount": _out(
        "The channel's surcharge on this order; negative is a rebate.", -10, FEN, minimum=-MOST_FEN, maximum=MOST_FEN
    ),
    "View.channel_amount": _out("The channel's commission, which the operator pays and you never do.", 20, FEN),
    "View.base_rate": _out("Your rate when the order was created.", 30, POINTS),
    "View.createtime": _out("When it was created.", 1767225600, UNIX),
    "View.updatetime": _out("When it last changed.", 1767225660, UNIX),
    "View.payment_method": _out("The one that was chosen: `wxpay`, `alipay` or `bank`.", "wxpay"),
    "View.pay_url": _out(
        "The payment page: send the payer there.",
        "https://pay.example.com/addons/paychannel/pay/index?order_no=202601018899480685472049",
        format="uri",
    ),
    "View.payment_method_id": _out("The number of the receiving account.", 1, minimum=1, maximum=LARGEST_ID),
    "View.payment_method_snapshot": _out("The receiving account as it was then."),
    "View.customer_payment_method": _out("The same, with one text to show."),
    "View.bank": _out("The bank; empty where it is not known.", "中国工商银行"),
    "View.sub_bank": _out("Its branch; empty where it is not known.", "北京东城支行"),
    "View.card_number": _out("The card's or account's number.", "6222020000000000017"),
    "View.real_name": _out("The holder's name.", "张三"),
    "View.full_info": _out("All of it in one text.", "中国工商银行 北京东城支行 6222020000000000017 张三"),
    # --- lists and channels
    "OrderPage.list": _out("The orders of this page, newest first."),
    "ChannelList.list": _out("The enabled channels that are linked to you."),
    "View.total": _out("How many match in all.", 1, PIECES),
    "View.page": _out("Which page this is.", 1, PIECES, minimum=1),
    "View.limit": _out("How many a page has at most.", 20, PIECES, minimum=1, maximum=100),
    "View.id": _out("The `paychannel_id` for createOrder.", 2, minimum=1, maximum=LARGEST_ID),
    "View.category": _out("Which data a withdrawal must carry.", "gateway_b"),
    "Channel.name": _out("The channel's name.", "Sandbox B"),
    "View.pay_method": _out(
        "What payers can pay by: some of `wxpay`, `alipay`, `bank`, joined by commas.",
        "wxpay,alipay",
        pattern="^((wxpay|alipay|bank)(,(wxpay|alipay|bank))*)?$",
    ),
    "View.category_text": _out("The category, for people.", "Gateway B"),
    "View.pay_method_text": _out("The payment methods, for people.", "WeChat Pay, Alipay"),
    # --- regions
    "Region.name": _out("The name, which the next look-up takes.", "广东省", minLength=1),
    "Region.code": _out("The administrative division's code.", "440000", **_CODE),
    "View.val": _out("The administrative division's code.", "440000", **_CODE),
    "Province.items": _out("Its cities by name.", {"广州市": {"val": "440100", "items": {"天河区": "440106"}}}),
    "City.items": _out("The codes of its districts by name.", {"天河区": "440106"}),
    # --- the payment page's state, health, callbacks
    "View.ready": _out("Is there anything to show to the payer yet?", True),
    "View.checking": _out("Did money come that an operator has to look at?", False),
    "View.seconds_left": _out("Until the order expires; 0 afterwards.", 840, SECONDS, minimum=0, maximum=LARGEST_TIME),
    "View.version": _out("The service's version.", "0.3.0"),
    "Readiness.database": _out("What keeps it from being written, in a word, or `ok`.", "ok"),
    "Readiness.scheduler": _out("The service's own jobs that have not run for too long, or `ok`.", "ok"),
    "Readiness.disk": _out("Where there is hardly any room left, or `ok`.", "ok"),
    "Readiness.clock": _out("Whether it was set back lately or differs from the database's, or `ok`.", "ok"),
    "Readiness.proxy": _out("`ok`, or a warning that `trusted_proxies` is probably too low; never a failure.", "ok"),
    "NoticeRefused.code": _out("Always FAIL.", "FAIL"),
    "NoticeRefused.message": _out("Why, for people.", "the notice was refused"),
    "Event.type": _out("What happened. Answer types that you don't know with 2xx, too.", "order.completed"),
    "Event.timestamp": _out("When the status was reached: RFC 3339, UTC.", "2026-01-01T00:01:00Z", format="date-time"),
    "Event.data": _out("The order as it was then, in the form of the queries."),
    "webhook-id": _out(
        "Names the event; the same on every retry and redelivery, so remember it: one may come twice.",
        "msg_0f8e4c1d8a3b4f6f9b1f2c7d5e6a7b80",
        pattern="^msg_[0-9a-f]{32}$",
    ),
    "webhook-timestamp": _out("When this attempt was made; refuse one that is more than 300 s off.", 1767225660, UNIX),
    "webhook-signature": _out(
        "`v1,` and base64 of HMAC-SHA256 over `webhook-id.webhook-timestamp.body` under the callback secret; two of "
        "them with a space between while the secret rotates, and either will do.",
        "v1,LJAHTsV9nc1EfiDG3mLI4r7qjECIOB0W0jvD9mE/Hys=",
        pattern="^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$",
    ),
}


def meaning_of(name: str, *owners: str) -> Meaning:
    """The row of a field of one of these owners, nearest first, else of any. Raises KeyError: it has none."""
    keys = [*(f"{owner}.{name}" for owner in owners), name]
    return MEANINGS[next((key for key in keys if key in MEANINGS), name)]
