"""Unusual responses of epay platforms: "not found" in all its forms, and pages instead of JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from gateways.base import ChannelError, ChannelRefused, ChannelUnknown, Finding, RefundRequest, Report, State
from gateways.upstream import Reply, printable
from runtime import money
from runtime.texts import N_

NAMES_IT = ("trade_no", "out_trade_no", "biz_no", "out_biz_no")
# Code -1 also means a wrong merchant number, a banned merchant, or an unknown payment method, so the text decides. Each
# text is only about the order. Codes -2 to -5 are about the account or the request.
NO_ORDER = re.compile(
    "(当前|该|此)?(商户|系统)?(订单|订单号|交易|交易号|记录)(不存在|未找到)"
    "|(支付|交易)订单号?不存在|订单信息不存在|該?訂單號?不存在"
    "|(查无|无|没有|没有找到|未找到|找不到|未查询到|查询不到)(此|该)?订单"
    "|(the )?(order|trade)( no)?( was)?( not found| does not exist| doesn't exist| not exists?)|no such order",
    re.IGNORECASE,
)
# linux-do/credit also says "or is completed". With HTTP 404 that is its response to a status check of an unknown order;
# with any other status, it may be about a paid one.
NO_ORDER_AT_404 = re.compile(f"{NO_ORDER.pattern}|(订单|服务)不存在或已完成", re.IGNORECASE)
NO_ORDER_CODES = {"1": ("-1", "0"), "2": ("-1",)}  # by version; in version 2, 0 is success
# Stricter, because an absent payout is sent again: the text must name the payout itself.
NO_PAYOUT = re.compile("(当前|该|此)?(转账|付款|代付|打款|出款)(订单|订单号|交易号|单号|记录|交易)(不存在|未找到)")
# Refusals of a refund that the platform decides alone, for a reason that stays: no money moved, and none will. All
# other errors are unknown outcomes. The cause may be an earlier request (已全额退款), or the same request may succeed
# later (余额不足, a wrong key), or the platform's own upstream may have timed out (退款失败：...).
NO_REFUND = re.compile(
    f"{NO_ORDER.pattern}"
    "|(管理员|平台|系统)?未开启商户后台自助退款"
    "|((该|此)?商户)?(未开启|未开通|没有开启|没有开通)(订单)?退款(API)?(接口|功能|权限)"
    "|((该|此)?商户)?(没有|无)(订单)?退款(API)?(接口)?权限"
    "|退款金额不能(大于|超过)(订单|支付)金额|接口订单号不存在"
    "|(退款失败[：:])?(当前|该)?支付(通道|插件)不支持(API)?退款|(退款失败[：:])?支付插件不存在"
    "|该商户未开通退款|refunds are not enabled for this merchant"
    "|该订单的支付渠道不支持退款|the payment channel of this order does not support refunds"
    "|no act|接口方法不存在",
    re.IGNORECASE,
)
PAID, REFUNDED = "1", "2"  # statuses of orders
# In a new payment: the order's amount, the payer's, the payer's at AliMPay.
SUMS = ("money", "realmoney", "payment_amount")
END_OF_TEXT = "!！。. "
LONGEST_PAGE = 6_000  # the platform's own has 3,000; the parser takes seconds for a hostile one of 20,000
ERROR_PAGE = "error-page"  # the id of its body
# Texts of pages that mean that the whole platform is down; they don't concern the order.
DOWN = re.compile("install|安装|升级|维护", re.IGNORECASE)


def refusal(answer: Mapping[str, Any]) -> str:
    """Return the platform's message in an error, with its code."""
    return f"{printable(answer.get('msg', ''))} (code {printable(answer.get('code'))})"


def message_of(answer: Mapping[str, Any]) -> str:
    """Return the platform's message without the code, for the payer."""
    return printable(answer.get("msg") or "") or refusal(answer)


def answer_of(reply: Reply) -> dict[str, Any]:
    """Return the JSON object of a response with status 200 and a `code`. Raises ChannelUnknown."""
    answer = reply.json()
    if reply.status != 200 or "code" not in answer:
        raise reply.not_the_api(printable(answer.get("msg", N_("no code in the response"))))
    return answer


def other_amount(answer: Mapping[str, Any], fen: int) -> str:
    """Return the amount to pay if it differs from the order's; otherwise "".

    Some platforms add a random part or their fee, and not all of them report it.
    """
    for asked in filter(None, map(answer.get, SUMS)):
        try:
            if money.fen(str(asked)) != fen:
                return printable(asked)
        except ValueError:
            return printable(asked)
    return ""


def _is_message(answer: Mapping[str, Any], text: re.Pattern[str]) -> bool:
    """Return whether this is the whole message, and the platform's own: a bank's comes with the order's number."""
    named = any(answer.get(name) for name in NAMES_IT)
    return not named and bool(text.fullmatch(str(answer.get("msg")).strip().rstrip(END_OF_TEXT)))


def knows_no_payout(answer: Mapping[str, Any]) -> bool:
    """Return whether a response with status 200 reports that the payout does not exist."""
    return str(answer.get("code")) == "-1" and _is_message(answer, NO_PAYOUT)


def knows_no_order(answer: Mapping[str, Any], version: str) -> bool:
    """Return whether the response reports that the deposit was never opened."""
    return str(answer.get("code")) in NO_ORDER_CODES[version] and _is_message(answer, NO_ORDER)


def refund_refusal(answer: Mapping[str, Any]) -> ChannelError:
    """Return the error for a refund that the platform did not accept: ChannelRefused only for a final refusal."""
    is_final = _is_message(answer, NO_REFUND)
    return ChannelRefused(message_of(answer)) if is_final else ChannelUnknown(refusal(answer))


def refunded_payment(request: RefundRequest) -> dict[str, str]:
    """Return the number of the payment that is refunded, as a field: the platform's own, if known."""
    return {"trade_no": request.reference} if request.reference else {"out_trade_no": request.order_no}


def refund_done(answer: Mapping[str, Any], request: RefundRequest) -> Report:
    """Return the report on a refund that was accepted. Raises ChannelUnknown if its number or amount contradicts it."""
    [(name, number)] = refunded_payment(request).items()
    if str(answer.get(name) or number) != number:
        raise ChannelUnknown(N_("the response is about another order"))
    try:
        amount = money.fen(str(answer.get("money") or money.hundredths(request.amount)))
    except ValueError as error:
        raise ChannelUnknown(printable(error)) from None
    if amount != request.amount:
        raise ChannelUnknown(N_("the platform reports a refund of %(amount)s") % {"amount": money.hundredths(amount)})
    # Only some platforms have a status here. Another one than 1: accepted, in progress or awaiting approval.
    state = State.PAID if str(answer.get("status", "1")) == "1" else State.OPEN
    return Report(state, amount if state is State.PAID else 0, printable(answer.get("refund_no") or ""))


def refunded_of(answer: Mapping[str, Any], request: RefundRequest) -> int | None:
    """Return what was refunded of an order, in fen; None if the response does not tell. Raises ChannelUnknown."""
    [(name, number)] = refunded_payment(request).items()
    status = str(answer.get("status"))
    if str(answer.get(name)) != number or status not in (PAID, REFUNDED):
        return None
    try:
        returned = money.fen(str(answer.get("refundmoney") or "0"))
    except ValueError as error:
        raise ChannelUnknown(printable(error)) from None
    return None if status == REFUNDED and not returned else returned


def order_response(reply: Reply) -> dict[str, Any]:
    """Return the response to a status check; "not found" may have the status 404. Raises ChannelUnknown."""
    if reply.status == 404 and _is_message(reply.json(), NO_ORDER_AT_404):
        return {"code": "-1", "msg": "订单不存在"}
    return answer_of(reply)


def opened(reply: Reply) -> dict[str, Any]:
    """Return the response to a request to open a payment.

    An error page instead of JSON is a refusal: the code of such platforms ends there, before any payment can be shown.
    If a payment did exist and were paid, its notice or the status checks of a cancelled deposit would open
    `late_payment`, so no money is lost.

    Raises:
        ChannelRefused: an error page of the platform; with its text.
        ChannelUnknown: anything else, such as a page of a proxy, or of a platform that is down.
    """
    text = _error_page(reply)
    if text and not DOWN.search(text):
        raise ChannelRefused(printable(text))
    return answer_of(reply)


class _Page(HTMLParser):
    """The text of a platform's own error page, which is recognized by its body's id."""

    SILENT = ("style", "script", "title", "h3")

    def __init__(self) -> None:
        super().__init__()
        self.is_theirs, self.texts, self._silent = False, [""], 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start at the marked body."""
        self.is_theirs = self.is_theirs or (tag == "body" and ("id", ERROR_PAGE) in attrs)
        self._silent += tag in self.SILENT

    def handle_endtag(self, tag: str) -> None:
        """Continue after an element without readable text."""
        self._silent = max(self._silent - (tag in self.SILENT), 0)

    def handle_data(self, data: str) -> None:
        """Collect readable text."""
        if self.is_theirs and not self._silent:
            self.texts.append(data)


def _error_page(reply: Reply) -> str:
    """Return the text of an error page of the platform with status 200; "" for any other response."""
    body = reply.body.decode(errors="replace").lstrip("\ufeff \r\n\t")
    if reply.status != 200 or not body.startswith("<") or ERROR_PAGE not in body or len(body) > LONGEST_PAGE:
        return ""
    page = _Page()
    page.feed(body)
    page.close()
    return " ".join(" ".join(page.texts).split())


def no_response(about: str, silence: ChannelUnknown) -> Finding:
    """Return a finding for a check without a usable response."""
    return Finding(about, None, N_("Unknown: %(why)s"), {"why": str(silence)})


def may_collect(answer: Mapping[str, Any], success: str, *states: Any) -> Finding:
    """Return a finding on whether the merchant may accept payments.

    Each state is 1 if allowed, 2 while it is under review, 0 if not.
    """
    if str(answer["code"]) != success:
        return Finding("collect", None, N_("Unknown: %(why)s"), {"why": refusal(answer)})
    if None in states:
        return Finding("collect", None, N_("Unknown: %(why)s"), {"why": N_("the platform does not say")})
    found = {str(state) for state in states}
    if found == {"1"}:
        balance = printable(answer.get("money", ""))
        return Finding("collect", True, N_("Enabled. Balance at the platform: %(balance)s"), {"balance": balance})
    if "2" in found:
        return Finding("collect", False, N_("The platform is still reviewing the merchant."))
    return Finding("collect", False, N_("The platform has disabled payments for the merchant."))


def may_pay_out(answer: Mapping[str, Any]) -> Finding:
    """Return a finding on payouts. For a channel that takes deposits only, a missing permission is not a problem."""
    if str(answer["code"]) != "0":
        return Finding("pay_out", None, N_("Not enabled: %(why)s"), {"why": refusal(answer)})
    facts = {
        "available": printable(answer.get("available_money", "")),
        "rate": printable(answer.get("transfer_rate", "")),
    }
    return Finding("pay_out", True, N_("Enabled. Available: %(available)s, platform fee: %(rate)s%%"), facts)
