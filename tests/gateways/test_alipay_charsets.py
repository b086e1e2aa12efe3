"""alipay: responses and notices in GBK, although UTF-8 was requested. What is signed are the bytes, not the text."""

from urllib.parse import quote_plus

import pytest
from werkzeug import Response

from tests.upstreams.loopback import Sent

START = 1_000_000
UNPAID = (START, 0)
# The second byte of 乗 is a backslash in GBK, that of 亇 a brace.
NAME = "张三的小店 乗亇"


@pytest.fixture
def channel(add_channel, alipay):
    return add_channel("alipay", alipay.config("key"))


@pytest.fixture
def placed(api, channel):
    """`placed()`: the number of a new deposit of 100 yuan."""
    return lambda: api.buy(channel=channel, paychannel_paymethod="alipay").data["order_no"]


@pytest.fixture
def paid(placed, alipay):
    """`paid()`: the number of a new deposit that was paid, with a name like JSON in its trade."""

    def pay():
        order_no = placed()
        alipay.pay(order_no)
        alipay.trades[order_no]["store_name"] = NAME
        return order_no

    return pay


@pytest.fixture
def speaks(alipay):
    """`speaks("gb18030", "GBK")`: from now on Alipay sends this charset, and names it so; not at all without a name."""

    def change(charset="gb18030", name="GBK"):
        alipay.charset = charset
        alipay.content_type = f"text/html;charset={name}" if name else "text/html"

    return change


# --- responses


@pytest.mark.parametrize("signed", [True, False])
def test_the_reason_of_an_error_in_gbk_is_readable(signed, alipay, speaks, channel, api, order_details):
    for name in ("gbk", "GBK", "gb2312", "GB18030", '"gbk"'):
        speaks(name=name)
        alipay.errs("40004", "ACQ.TOTAL_FEE_EXCEED", signed)
        assert api.buy(channel=channel, paychannel_paymethod="alipay").code == 50201, name
        order = api.listed().data["list"][0]
        why = order_details(order["order_no"])["history"][-1]["why"]
        assert (order["status"], why) == ("cancelled", "Rejected: 业务处理失败 (40004 ACQ.TOTAL_FEE_EXCEED)"), name


@pytest.mark.parametrize("name", ["GBK", ""])
def test_a_wrong_key_is_reported_in_plain_words_by_the_check(name, alipay, speaks, channel, refuses):
    speaks(name=name)
    alipay._wrong_request = lambda path, fields: "invalid-signature"
    assert "unsigned error: 验签出错" in refuses("channel", "check", channel)


def test_a_payment_is_found_by_a_status_check_in_every_charset_and_format(alipay, speaks, paid, api, later, balances):
    assert {b"\\", b"}"} <= {bytes([byte]) for byte in NAME.encode("gbk")}, "the bytes look like JSON"
    cases = [("gb18030", "GBK", written) for written in ("plain", "pretty", "tricky", "escaped")]
    cases += [("utf-8", name, "tricky") for name in ("", "utf-8", "UTF-8", "utf8")]
    for charset, name, written in cases:
        speaks(charset, name)
        alipay.written = written
        order_no = paid()
        later(60)
        assert api.status(order_no) == "completed", (charset, name, written)
    assert balances() == (START + len(cases) * 9_940, 0)


def test_a_response_with_another_charset_than_it_names_credits_nothing(speaks, paid, later, balances, exceptions):
    orders = []
    for name in ("utf-8", "utf-7", "utf-16", "idna", "latin-1", "no-such-charset"):
        orders.append(paid())
        speaks(name=name)
        later(60)
        assert (balances(), exceptions()) == (UNPAID, dict.fromkeys(orders, "unknown_outcome")), name
        speaks()


def test_the_signature_is_that_of_the_bytes(alipay, speaks, paid, later, balances, exceptions, monkeypatch):
    genuine, orders = alipay.answer, []
    for change, name in (
        (lambda body: body.decode("gb18030").encode(), "utf-8"),  # the same text
        (lambda body: body.replace("张".encode("gbk"), "李".encode("gbk")), "GBK"),
        (lambda body: body.replace("张".encode("gbk"), b"\xff\xff"), "GBK"),  # no character
    ):
        orders.append(paid())
        speaks(name=name)

        def resent(path, request, change=change):
            made = genuine(path, request)
            return Response(change(made.get_data()), made.status, content_type=made.content_type)

        with monkeypatch.context() as patch:
            patch.setattr(alipay, "answer", resent)
            later(60)
        assert (balances(), exceptions()) == (UNPAID, dict.fromkeys(orders, "unknown_outcome")), name
        speaks()


# --- notices


def test_a_notice_counts_by_its_bytes_whatever_its_charset_is_called(alipay, speaks, paid, api, balances):
    speaks()
    for named in ("GBK", "gbk", "utf-8", "", "no-such-charset"):
        order_no = paid()
        notice = alipay.notice(order_no, subject=NAME, buyer_logon_id="张*", charset=named)
        assert notice.to(api.send, order_no).text == "success", named
        assert api.status(order_no) == "completed", named
    assert balances() == (START + 5 * 9_940, 0)


def test_a_notice_counts_with_plain_bytes_and_with_half_a_character(alipay, paid, api):
    for charset in ("utf-8", "gb18030"):
        order_no, alipay.charset = paid(), charset
        notice = alipay.notice(order_no, subject=NAME)
        plain = notice.body.replace(quote_plus(NAME, encoding=charset).encode(), NAME.replace(" ", "+").encode(charset))
        assert plain != notice.body
        assert Sent("POST", plain, notice.headers).to(api.send, order_no).text == "success"
        assert api.status(order_no) == "completed"
        alipay.charset = "utf-8"
    order_no = paid()
    del alipay.trades[order_no]["store_name"]
    alipay.charset = "latin-1"  # one character for each byte
    cut = NAME.encode("gbk")[:3].decode("latin-1")
    assert alipay.notice(order_no, subject=cut, memo="").to(api.send, order_no).text == "success"
    assert api.status(order_no) == "completed"


def test_a_notice_whose_bytes_were_not_signed_is_refused(alipay, placed, api, outcome):
    order_no = placed()
    alipay.pay(order_no)
    in_utf_8 = alipay.notice(order_no, subject=NAME).body
    recoded = in_utf_8.replace(quote_plus(NAME).encode(), quote_plus(NAME, encoding="gbk").encode())
    alipay.charset = "gb18030"
    in_gbk = alipay.notice(order_no, subject=NAME).body
    other_digits = alipay.notice(order_no, total_amount="１００.００").body
    for body in (
        recoded.replace(b"charset=utf-8", b"charset=GBK"),
        in_gbk.replace(b"%D5%C5", b"%D5%C6"),
        other_digits,
    ):
        assert body not in (in_utf_8, in_gbk)
        refused = Sent("POST", body, {"Content-Type": "application/x-www-form-urlencoded; charset=GBK"})
        assert refused.to(api.send, order_no).status == 400
        assert outcome(order_no) == ("pending", UNPAID, {})
