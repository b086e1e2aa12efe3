"""The search of the header."""

from datetime import datetime

import pytest

from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import Order, PaymentException
from models.tables.refund import Refund
from runtime.clock import CHINA
from runtime.money import hundredths
from services.console import search
from tests.refunds import allow, refunded
from tests.services import walks
from tests.support import completed

MANUAL = 3
CHINESE = (
    "199元19：15",
    "199 19点15",
    "199 19点15分",
    "199 块 19:15",
    "今天 199 19:15",
    "199 今天19:15",
    "￥ 199 19:15",
    "199 晚上7点一刻",
    "199下午七点15分",
)
CHINESE_TIMES = {
    "199 2点半": "02:30",
    "199 下午2点": "14:00",
    "199 下午 2点半": "14:30",
    "今天 199 下午两点": "14:00",
    "199 十一点三刻": "11:45",
    "199 中午十二点": "12:00",
    "199 中午11点半": "11:30",
    "199 凌晨12点半": "00:30",
    "199 19点": "19:00",
}


@pytest.fixture
def opened(console):
    """`opened("A-1")`: the address to which a search redirects, None if it shows results."""
    return lambda text: console.get("/console/search/", query_string={"q": text}).location


@pytest.fixture
def found(page):
    """`found("A-1")`: the page of results."""
    return lambda text: page(f"search/?q={text}")


def number(api, **fields):
    return api.buy(**fields).data["order_no"]


def test_a_number_opens_its_only_order_and_otherwise_all_that_have_or_contain_it_are_shown(api, other, opened, found):
    order_no, longer = number(api, merchant_order_no="A-7431"), number(api, merchant_order_no="A-74310")
    for text in (f" {order_no} ", "A-7431"):
        assert opened(text) == f"/console/order/{order_no}"
    none, same = number(api, merchant_order_no="A-9"), number(other, merchant_order_no="A-7431")
    assert opened("A-7431") is None
    for text, shown in (("A-7431", [order_no, same]), ("743", [order_no, longer, same])):
        assert [each for each in (order_no, longer, none, same) if each in found(text).text] == shown
    assert found("zz").links["Search parts of merchant order numbers"] == "/console/orders/?search=zz"
    assert "No results" in found("nothing like it").text


def test_an_amount_shows_its_orders_and_says_how_far_it_searched(api, found, monkeypatch):
    order_no, none = number(api, cny_amount="77.50"), number(api, cny_amount="77.51")
    for text in ("77.50", "¥77.50", "77.5"):
        shown = found(text)
        assert (order_no in shown.text, none in shown.text) == (True, False)
        assert "among the latest 100,000 orders" in shown.text
        assert shown.links["Search all orders of ¥77.50"] == "/console/orders/?flt_least=77.50&flt_most=77.50"
    monkeypatch.setattr(search, "RECENT", 1)
    assert order_no not in found("77.50").text


def test_the_end_of_any_number_finds_its_order_refund_or_exception(api, found, monkeypatch):
    allow()
    order_no, other = completed(api), number(api, merchant_order_no="SHOP-2026-88431")
    wrong = number(api, cny_amount="70.00")
    api.play(wrong, "wrong_amount")
    refund = Refund.get(Refund.refund_no == refunded(api, order_no, "40.00"))
    Refund.update(merchant_refund_no="BACK-7-9913", channel_reference="CR-55127").execute()
    reference = Order.get(Order.order_no == order_no).channel_reference
    for text, row in (
        (order_no[-5:], order_no),
        ("8431", other),
        ("26-88431", other),
        ("*8431", other),
        (reference[-6:].lower(), order_no),
        (refund.refund_no[-6:], refund.refund_no),
        ("9913", refund.refund_no),
        ("5127", refund.refund_no),
        (PaymentException.get().reference[-6:], wrong),
    ):
        assert row in found(text).text, text
    (row,) = (row for row in found(reference[-6:]).rows if "Type" in row)
    assert reference in row["Order"], "the number that was found is shown"
    assert "among the latest 100,000 orders" in found("8431").text
    assert other not in found("431_").text
    monkeypatch.setattr(search, "RECENT", 1)
    assert order_no not in found(reference[-6:]).text


def test_orders_of_an_amount_show_type_method_and_status_and_unpaid_deposits_first(api, found):
    unpaid = number(api, cny_amount="100.00")
    done, withdrawal = completed(api), api.sell("100.00").data["order_no"]
    rows = [row for row in found("100").rows if "Type" in row]
    assert [row["Order"].split()[0] for row in rows] == [unpaid, withdrawal, done]
    assert [row["Status"] for row in rows] == ["Awaiting payment", "Needs review", "Completed"]
    assert rows[0]["Type"].split()[0] == "Deposit"
    assert rows[0]["Type"] != rows[1]["Type"]


def test_an_amount_with_a_time_finds_orders_created_or_claimed_about_then(world, sign_in, page, time_machine):
    def at(*clock):
        """Set the clock, and return the search of an operator in China, who signs in then: numbers, and the page."""
        time_machine.move_to(datetime(2026, 11, *clock, tzinfo=CHINA))
        client = sign_in("demo")
        client.set_cookie("console_zone", "Asia/Shanghai")

        def searched(text):
            shown = page(f"search/?q={text}", client=client)
            return [row["Order"].split()[0] for row in shown.rows if "Type" in row], shown

        return searched

    at(26, 19, 10)
    created, other = number(world.api, cny_amount="199.00"), number(world.api, cny_amount="199.50")
    slow = number(world.api, cny_amount="199.00", channel=MANUAL)
    searched = at(26, 19, 50)
    walks.claim(world, slow)
    for text in (
        "199 19:15",
        "¥199.00 19：15",
        "199元 今天 19:15",
        "19:15 199",
        "199 7:15pm",
        "7:15 PM ¥199",
        *CHINESE,
    ):
        numbers, shown = searched(text)
        assert numbers == [slow, created], text
        assert "Orders of ¥199.00 around 2026-11-26 19:15" in shown.text
        link = shown.links["Search all orders of ¥199.00"]
        assert "flt_since=2026-11-26T19:00&flt_until=2026-11-26T19:30" in link.replace("%3A", ":")
    assert searched("199 19:40")[0] == [slow], "it was claimed then"
    numbers, shown = searched("199 19:30")
    assert numbers == [slow, created], "those at other times"
    assert "none of ¥199.00 was created, completed or changed up to 15 minutes before or after 2026-11-26 19:30" in (
        shown.text
    )
    assert "Orders of ¥199.00 at other times" in shown.text
    assert "flt_since" not in shown.links["Search all orders of ¥199.00"]
    for text, time in CHINESE_TIMES.items():
        assert f"2026-11-26 {time}" in searched(text)[1].text, text
    for text in (
        "199.50 11-26 19:00",
        "199块5 19:00",
        "199元50分 19点00分",
        "199.5元 11月26日 19:00",
        "11.26 199.50 19:00",
    ):
        assert searched(text)[0] == [other], text

    searched = at(27, 9, 0)
    for text in (
        "199 19:15",
        "199 昨天 19:15",
        "199 yesterday 19:15",
        "199 11-26 19:15",
        "199 2026-11-26 19:15",
        "昨天 199 晚上七点一刻",
    ):
        assert searched(text)[0] == [slow, created], text
    for text in ("199 today 19:15", "199 09:00", "199 11-25 19:15"):
        assert "Orders of ¥199.00 at other times" in searched(text)[1].text, text
    for text in (
        "199 24:15",
        "199 25:99",
        "25:99 199",
        "199 02-30 19:15",
        "199 02-29 19:15",
        "199 晚上0点",
        "199 晚上2点半",
        "199 晚上12点",
        "199 9999-12-31 23:59",
        "199 0001-01-01 00:00",
    ):
        numbers, shown = searched(text)
        assert numbers == [slow, created], text
        assert f"There is no valid date and time in “{text}”." in shown.text
    assert searched("x 19:15")[0] == []


def test_an_open_claim_is_found_by_the_whole_name_of_its_payer(api, found, page, viewer, claimed):
    named, other = claimed("20.00", customer_name="张三丰"), claimed("30.00", customer_name="John Smith")
    pending = number(api, customer_name="张三丰", channel=MANUAL)
    for text in ("张三丰", "张 三丰"):
        shown = found(text).text
        assert ("Claims of this payer" in shown, named in shown, pending in shown) == (True, True, False)
    assert other in found("smith").text
    for text in ("张三", "smit", "王五"):
        assert "Claims of this payer" not in found(text).text, "a name can't be guessed letter by letter"
    assert "Claims of this payer" not in page("search/?q=张三丰", client=viewer).text, "viewers see no names"


def test_a_number_that_is_an_amount_too_shows_both(api, opened, found):
    order_no, same = number(api, merchant_order_no="1234"), number(api, cny_amount="1234.00")
    assert opened("1234") is None
    shown = found("1234").text
    assert (order_no in shown, same in shown) == (True, True)


def test_transaction_ids_exceptions_merchants_and_channels_are_found(api, found, order_details):
    order_no, wrong = completed(api), number(api, cny_amount="70.00")
    assert order_no in found(order_details(order_no)["channel_reference"]).text
    api.play(wrong, "wrong_amount")
    exception = PaymentException.get()
    for text in (exception.reference, hundredths(exception.amount)):
        shown = found(text).text
        assert (wrong in shown, "Exceptions" in shown) == (True, True)
    merchant, channel = Merchant.get(Merchant.key == "demo"), Channel.get_by_id(2)
    assert found(merchant.name[:4].lower()).links[merchant.name] == "/console/merchant/demo"
    assert found(channel.name).links[channel.name] == "/console/channel/2"


def test_pages_are_found_in_both_languages_by_those_who_can_use_them(found, page, viewer):
    for text in ("balan", "余额"):
        assert "/console/ledger/" in found(text).links.values()
    assert found("payment link").links["New payment link"] == "/console/new-order/", "not in the menu"
    assert "New merchant" in found("new merchant").links
    assert "New merchant" not in page("search/?q=new merchant", client=viewer).links


def test_any_text_gets_a_page(console):
    for text in ("", "   ", "\u202e", "\x00", "%", "_", "'", '"', "<b>", "x" * 400, "1" * 300):
        assert console.get("/console/search/", query_string={"q": text}).status_code == 200, text
