"""The one form for a new merchant: fees, key, channels, epay gateway and payment page, and what it shows once."""

import re

import pytest

from models.tables.merchant import PaymentPage
from tests.blueprints.console.setting_up.filling import Page
from tests.blueprints.console.setting_up.test_pictures import png
from tests.epay_shop import Shop
from tests.support import Api

ROW = {"deposit": "buy_rate", "withdrawal": "sell_rate"}


@pytest.fixture
def merchants(flask_json):
    """`merchants()`: the merchants by key."""
    return lambda: {row["key"]: row for row in flask_json("merchant", "list")}


def test_the_fees_are_those_of_the_newest_merchant_until_others_are_entered(typed, fill, merchants):
    assert [typed("merchant/new")[name] for name in ROW.values()] == ["0.80", "0.50"]
    fill("merchant/new", name="First", buy_rate="1.2")
    assert [merchants()["first"][name] for name in ROW.values()] == ["1.20", "0.50"]
    assert [typed("merchant/new")[name] for name in ROW.values()] == ["1.20", "0.50"]


def test_no_fee_is_only_charged_if_0_is_entered(wrong, fill, merchants):
    before = merchants()
    errors = wrong("merchant/new", name="Free", buy_rate="", sell_rate=" ")
    assert errors == dict.fromkeys(ROW.values(), "Must be a percentage with at most two decimals.")
    assert merchants() == before
    fill("merchant/new", name="Free", buy_rate="0", sell_rate="0")
    assert [merchants()["free"][name] for name in ROW.values()] == ["0.00", "0.00"]


def test_an_empty_key_follows_from_the_name(fill, merchants):
    names = ["Corner Shop & Co.", "小店", "Corner  shop co", "new", "店 24"]
    keys = [re.search(r'<code id="key">([^<]+)', fill("merchant/new", name=name).text)[1] for name in names]
    assert [merchants()[key]["name"] for key in keys] == names
    fits = ("corner-shop-co", "m[0-9a-f]{8}", "corner-shop-co-[0-9a-f]{4}", "new-[0-9a-f]{4}", "m[0-9a-f]{8}")
    assert all(re.fullmatch(pattern, key) for pattern, key in zip(fits, keys, strict=True)), keys


@pytest.mark.parametrize("name", ["Corner Shop", "小店"])
def test_a_form_that_is_sent_twice_adds_one_merchant_and_leads_to_it(fill, merchants, page, name):
    before = merchants()
    fill("merchant/new", name=name)
    (key,) = merchants().keys() - before.keys()
    again = fill("merchant/new", name=name)
    assert again.status_code == 422
    assert f'href="/console/merchant/{key}"' in again.text
    assert "Rotate the secret there if it was lost." in again.text
    assert merchants().keys() - before.keys() == {key}
    fill("merchant/new", name=name, key="second")
    assert merchants()["second"]["name"] == name


def test_a_few_channels_are_preselected_and_many_are_not(typed, flask, fill, flask_json):
    flask("channel", "set", 4, "--disabled")
    assert typed("merchant/new").getlist("channels") == ["1", "2", "3"]
    fill("merchant/new", key="shop", name="Shop")
    assert flask_json("merchant", "show", "shop")["channels"] == [1, 2, 3]
    for number in range(3):
        flask("channel", "add", "--category", "gateway_b", "--driver", "manual", "--name", f"More {number}")
    assert typed("merchant/new").getlist("channels") == []
    assert "the merchant has no channel" in fill("merchant/new", key="alone", name="Alone").text


def test_the_epay_gateway_is_enabled_with_the_merchant_and_its_values_are_shown_once(
    fill, shown, http, web_server, audited, page
):
    answer = fill("merchant/new", name="Plug-in", epay=True, hosts="shop.example, localhost")
    values = shown(answer)
    assert "The API secret and the MD5 key for the epay plug-in are shown only once." in answer.text
    assert 'href="/console/merchant/plug-in/epay#keys"' in answer.text
    assert values["pid"] == "1001"
    shop = Shop(http, web_server, {"pid": values["pid"], "key": values["epay_key"]})
    assert shop.mapi(return_url=None)["code"] == 1
    assert Api(http, "plug-in", values["secret"]).call("getPayChannels").code == 1
    assert audited()[-1].startswith("demo add merchant merchant plug-in name: - -> Plug-in; ")
    assert audited()[-1].endswith("; hosts: - -> shop.example,localhost")
    read = "\n".join([page("merchant/plug-in").html, page("merchant/plug-in/epay").html, *audited()])
    assert not [name for name in ("secret", "callback_secret", "epay_key") if values[name] in read]


def test_the_gateway_uses_the_host_of_the_callback_url_or_asks_for_one(fill, wrong, page, merchants):
    fill("merchant/new", name="Hooks", epay=True, callback_url="https://hooks.example:8443/paid")
    assert "hooks.example" in page("merchant/hooks/epay").html
    before = merchants()
    for hosts in ("", "no host!"):
        assert wrong("merchant/new", name="Another", epay=True, hosts=hosts).keys() == {"hosts"}
    assert merchants() == before


def test_all_errors_are_shown_at_once_each_at_its_field(fill, wrong, merchants):
    fill("merchant/new", name="Taken")
    before = merchants()
    entered = {"name": "Another", "key": "taken", "allowed_addresses": "10.0.0", "epay": True}
    errors = wrong("merchant/new", **entered, callback_url="shop.example/paid", buy_rate="x")
    assert errors.keys() == {"key", "buy_rate", "callback_url", "allowed_addresses"}, "hosts follow from the URL"
    assert errors["key"] == "Merchant taken already exists. Choose another key."
    assert errors["callback_url"] == "Enter a URL, such as https://shop.example/paid."
    errors = wrong("merchant/new", **entered, callback_url="shop.example/paid", hosts="no host!")
    assert errors.keys() == {"key", "callback_url", "hosts", "allowed_addresses"}
    assert merchants() == before


def test_everything_is_copied_at_once(fill, shown):
    answer = fill("merchant/new", name="Copied", epay=True, hosts="shop.example")
    texts, values = dict(re.findall(r'(?s)<pre id="([^"]+)" hidden>(.*?)</pre>', answer.text)), shown(answer)
    assert texts["all-secrets"].splitlines()[1:] == [
        "api_key: copied",
        f"api_secret: {values['secret']}",
        f"callback_secret: {values['callback_secret']}",
    ]
    assert texts["all-epay"].splitlines()[1:] == [
        f"Merchant number (pid): {values['pid']}",
        f"Merchant key (MD5): {values['epay_key']}",
    ]
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_payment_page_has_a_brand_from_the_beginning(fill, wrong, merchants, typed):
    before = merchants()
    errors = wrong("merchant/new", name="Brand", color="blue", logo=png())
    assert errors == {"color": "Must be a color such as #1677ff.", "logo": "Select the file again."}
    assert "not a PNG, JPEG or WebP image" in wrong("merchant/new", name="Brand", logo=b"GIF89a")["logo"]
    assert merchants() == before
    assert not PaymentPage.select().where(PaymentPage.contact == "Ask us").exists()
    fill("merchant/new", name="Brand", color="#1677FF", contact="Ask us", logo=png(more=bytes(90_000)))
    settings = typed("merchant/brand/page")
    assert (settings["color"].lower(), settings["contact"]) == ("#1677ff", "Ask us")
    assert PaymentPage.get(PaymentPage.contact == "Ask us").logo_type == "image/png"


def test_an_error_keeps_what_was_entered(fill):
    entered = {
        "name": "Kept",
        "callback_url": "ftp://wrong",
        "buy_rate": "0.75",
        "channels": ["2"],
        "epay": True,
        "hosts": "shop.example",
        "contact": "Ask us",
    }
    answer = fill("merchant/new", **entered)
    assert answer.status_code == 422
    again = Page(answer.text).form().sent
    shown = {name: again.getlist(name) if name == "channels" else again[name] for name in entered}
    assert shown == entered | {"epay": "y"}
    assert 'details class="more" open' in answer.text


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api"}])
def test_the_address_for_developers_has_the_prefix_of_the_merchant_endpoints(fill):
    address = re.search(r'<code id="address">([^<]+)', fill("merchant/new", name="First").text)[1]
    assert address.endswith("/api")
