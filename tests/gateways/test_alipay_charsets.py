"""alipay: responses and notices in GBK, although UTF-8 was requested. What is signed are the bytes, not the text."""

from urllib.parse import quote_plus

import pytest
from werkzeug import Response

from tests.upstreams.loopback import Sent

START = 1_000_000
PAID, UNPAID = (START + 9_940, 0), (START, 0)
# The second byte of 乗 is a backslash in GBK, that of 亇 a brace.
NAME = "张三的小店 乗亇"
NAMES = ["gbk", "GBK", "gb2312", "GB18030", '"gbk"']


@pytest.fixture
def channel(add_channel, alipay):
    return add_channel("alipay", alipay.config("key"))


@pytest.fixture
def buy(api, channel):
    """`buy()` creates a deposit on the channel; returns the whole response."""
    return lambda: api.buy(channel=channel, paychannel_paymethod="alipay")


@pytest.fixture
def order_no(buy):
    """A new deposit."""
    return buy().data["order_no"]


@pytest.fixture
def in_gbk(alipay):
    """`in_gbk(name)`: from now on Alipay sends GBK, and names the charset so; not at all without a name."""

    def change(name="GBK"):
        alipay.charset = "gb18030"
        alipay.content_type = f"text/html;charset={name}" if name else "text/html"

    return change


@pytest.fixture
def last(api, order_details):
    """`last()`: the newest order's status and the reason in its last line of history."""

    def read():
        order = api.listed().data["list"][0]
        return order["status"], order_details(order["order_no"])["history"][-1]["why"]

    return read


# --- responses


def test_the_bytes_of_the_shops_name_look_like_json():
    assert b"\\" in NAME.encode("gbk")
    assert b"}" in NAME.encode("gbk")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("signed", [True, False])
def test_the_reason_of_an_error_in_gbk_is_readable(signed, name, alipay, in_gbk, buy, last):
    in_gbk(name)
    alipay.errs("40004", "ACQ.TOTAL_FEE_EXCEED", signed)
    assert buy().code == 50201
    assert last() == ("cancelled", "Rejected: 业务处理失败 (40004 ACQ.TOTAL_FEE_EXCEED)")


@pytest.mark.parametrize("name", ["GBK", ""])
def test_a_wrong_key_is_reported_in_plain_words_by_the_check(name, alipay, in_gbk, channel, refuses):
    in_gbk(name)
    alipay._wrong_request = lambda path, fields: "invalid-signature"
    assert "unsigned error: 验签出错" in refuses("channel", "check", channel)


@pytest.mark.parametrize("written", ["plain", "pretty", "tricky", "escaped"])
def test_a_payment_is_found_by_a_status_check_in_gbk(written, alipay, in_gbk, order_no, api, later, balances):
    in_gbk()
    alipay.written = written
    alipay.pay(order_no)
    alipay.trades[order_no]["store_name"] = NAME
    later(60)
    assert (api.status(order_no), balances()) == ("completed", PAID)


@pytest.mark.parametrize("name", ["", "utf-8", "UTF-8", "utf8"])
def test_a_response_in_utf_8_is_read_with_and_without_its_name(name, alipay, order_no, api, later):
    alipay.content_type = f"text/html;charset={name}" if name else "text/html"
    alipay.pay(order_no)
    alipay.trades[order_no]["store_name"] = NAME
    later(60)
    assert api.status(order_no) == "completed"


@pytest.mark.parametrize("name", ["utf-8", "utf-7", "utf-16", "idna", "latin-1", "no-such-charset"])
def test_a_response_with_another_charset_than_it_names_credits_nothing(
    name, alipay, in_gbk, order_no, api, later, balances, exceptions
):
    in_gbk(name)
    alipay.pay(order_no)
    alipay.trades[order_no]["store_name"] = NAME
    later(60)
    assert (api.status(order_no), balances(), exceptions()) == ("pending", UNPAID, {order_no: "unknown_outcome"})


@pytest.fixture
def resent(alipay, monkeypatch):
    """`resent(change)`: the bytes of Alipay's responses are changed on their way."""

    def put(change):
        genuine = alipay.answer

        def answer(path, request):
            made = genuine(path, request)
            return Response(change(made.get_data()), made.status, content_type=made.content_type)

        monkeypatch.setattr(alipay, "answer", answer)

    return put


CHANGES = {
    "the text in UTF-8": (lambda body: body.decode("gb18030").encode(), "utf-8"),
    "one character": (lambda body: body.replace("张".encode("gbk"), "李".encode("gbk")), "GBK"),
    "a byte that is none": (lambda body: body.replace("张".encode("gbk"), b"\xff\xff"), "GBK"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_signature_is_that_of_the_bytes(change, alipay, in_gbk, resent, order_no, api, later, balances, exceptions):
    how, name = CHANGES[change]
    in_gbk(name)
    alipay.pay(order_no)
    alipay.trades[order_no]["store_name"] = NAME
    resent(how)
    later(60)
    assert (api.status(order_no), balances(), exceptions()) == ("pending", UNPAID, {order_no: "unknown_outcome"})


# --- notices


@pytest.fixture
def paid(order_no, alipay):
    alipay.pay(order_no)
    return order_no


@pytest.mark.parametrize("named", ["GBK", "gbk", "utf-8", "", "no-such-charset"])
def test_a_notice_signed_in_gbk_counts_whatever_its_charset_is_called(named, paid, alipay, in_gbk, api, balances):
    in_gbk()
    notice = alipay.notice(paid, subject=NAME, buyer_logon_id="张*", charset=named)
    assert notice.to(api.send, paid).text == "success"
    assert (api.status(paid), balances()) == ("completed", PAID)


@pytest.mark.parametrize("charset", ["utf-8", "gb18030"])
def test_a_notice_counts_with_its_text_as_plain_bytes(charset, paid, alipay, api):
    alipay.charset = charset
    notice = alipay.notice(paid, subject=NAME)
    plain = notice.body.replace(quote_plus(NAME, encoding=charset).encode(), NAME.replace(" ", "+").encode(charset))
    assert plain != notice.body
    assert Sent("POST", plain, notice.headers).to(api.send, paid).text == "success"
    assert api.status(paid) == "completed"


def test_a_notice_with_half_a_character_counts(paid, alipay, api):
    alipay.charset = "latin-1"  # one character for each byte
    cut = NAME.encode("gbk")[:3].decode("latin-1")
    assert alipay.notice(paid, subject=cut, memo="").to(api.send, paid).text == "success"
    assert api.status(paid) == "completed"


def recoded(notice):
    """The notice with its text in GBK, and the signature of the text in UTF-8."""
    body = notice.body.replace(quote_plus(NAME).encode(), quote_plus(NAME, encoding="gbk").encode())
    return body.replace(b"charset=utf-8", b"charset=GBK")


def with_another_byte(notice):
    return notice.body.replace(b"%D5%C5", b"%D5%C6")


@pytest.mark.parametrize(("charset", "forged"), [("utf-8", recoded), ("gb18030", with_another_byte)])
def test_a_notice_whose_bytes_were_not_signed_is_refused(charset, forged, paid, alipay, api, balances):
    alipay.charset = charset
    notice = alipay.notice(paid, subject=NAME)
    body = forged(notice)
    assert body != notice.body
    refused = Sent("POST", body, {"Content-Type": "application/x-www-form-urlencoded; charset=GBK"})
    assert refused.to(api.send, paid).status == 400
    assert (api.status(paid), balances()) == ("pending", UNPAID)


def test_digits_of_another_script_are_not_an_amount(paid, alipay, in_gbk, api, balances):
    in_gbk()
    assert alipay.notice(paid, total_amount="１００.００").to(api.send, paid).status == 400
    assert (api.status(paid), balances()) == ("pending", UNPAID)
