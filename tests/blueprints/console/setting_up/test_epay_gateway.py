"""A merchant's page of the epay gateway: the values for its shop, its settings, its keys."""

import pytest

from tests.blueprints.console.setting_up.filling import Page
from tests.epay_shop import Shop, number_in

PAGE = "merchant/demo/epay"
CONFLICT = "Someone else changed this in the meantime"
ROWS = [f"type_{channel}_{method}" for channel in (1, 2, 3) for method in ("wxpay", "alipay", "bank")]


@pytest.fixture
def settings_of_app():
    """The shop's server has a private address."""
    return {"private_callbacks": True}


@pytest.fixture
def enabled(fill, shown):
    """The values on the page that follows once the gateway is enabled."""
    return shown(fill(PAGE, hosts="127.0.0.1, localhost"))


@pytest.fixture
def shop_with(http, web_server):
    """`shop_with(values)`: a shop whose owner pasted these values."""
    return lambda values: Shop(http, web_server, values)


@pytest.fixture
def settings(flask_json):
    """`settings()`: the merchant's settings, as the command shows them."""
    return lambda: flask_json("epay", "show", "demo")


def own(**types):
    """What a person enters to select channels; the fields of the others are emptied."""
    return {"types": ["own"], **dict.fromkeys(ROWS, ""), **types}


def test_the_gateway_is_off_and_explained(page, viewer, send):
    assert "Off. Shops with an epay" in page("merchant/demo").text
    assert "off until you enable it" in page(PAGE).text
    assert [form for form in Page(page(PAGE, client=viewer).html).forms if not form.action] == []
    page("merchant/nobody/epay", status=404)
    for act in ("disable", "enable", "rotate/md5", "rotate/rsa"):
        assert send(f"{PAGE}/{act}").status_code == 404, act


def test_the_values_and_the_key_are_shown_once_and_work_in_the_shop(fill, shown, everywhere, shop_with, audited, page):
    answer = fill(PAGE, hosts="127.0.0.1, localhost")
    values = shown(answer)
    assert (values["api_url"], values["pid"], len(values["key"])) == ("http://127.0.0.1:8000/", "1001", 32)
    assert values["submit_url"] == "http://127.0.0.1:8000/submit.php"
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    assert audited()[-1] == (
        "demo enable epay gateway merchant demo hosts: - -> 127.0.0.1,localhost; types: - -> by payment method; "
        "webhooks: - -> no"
    )
    assert values["key"] not in everywhere("merchant/demo", PAGE, "audit/")
    assert "demo enabled the epay gateway of Demo Shop" in page("audit/").text
    assert shop_with(values).submit(type="bank").status == 303


def test_everyone_can_copy_the_values_under_the_names_of_shop_plug_ins(enabled, page, console, viewer, fill):
    for client in (console, viewer):
        shown = page(PAGE, client=client)
        for text, is_there in (("接口地址 http://127.0.0.1:8000/", True), ("商户ID 1001", True), ("平台公钥", False)):
            assert (text in shown.text) is is_there, text
        assert bool([form for form in Page(shown.html).forms if "epay" in form.action]) is (client is console)
    console.set_cookie("console_language", "zh", path="/console")
    assert "商户ID（pid） 1001" in page(PAGE).text
    console.set_cookie("console_language", "en", path="/console")
    shown = page("merchant/demo")
    assert "Merchant number (pid) 1001" in shown.text
    assert shown.links["Settings for the shop"] == f"/console/{PAGE}"
    fill("merchant/demo", name='"><script>alert(1)</script>')
    shown = page(PAGE)
    assert shown.tags.count("script") == shown.html.count("<script src=")


WRONG = [
    ({"hosts": ""}, "hosts", "Enter the host name of the shop, such as shop.example."),
    ({"hosts": "a.example, b/c"}, "hosts", "b/c is not a host name such as shop.example or *.shop.example."),
    (own(), "types", "Enter a type for at least one channel."),
    (
        own(type_2_wxpay="we.chat"),
        "types",
        "we.chat is not a type. A type has up to 32 letters, digits, _ or -, such as alipay.",
    ),
]


def test_an_invalid_setting_is_reported_at_its_field_and_not_recorded(fill, wrong, audited, flask, settings):
    for number in ("0", "-1", "1.5", "x", "1000000000"):
        assert list(wrong(PAGE, hosts="shop.example", pid=number)) == ["pid"], number
    for typed, field, words in WRONG:
        assert wrong(PAGE, **{"hosts": "shop.example"} | typed) == {field: words}
    assert not [line for line in audited() if "epay" in line]
    flask("epay", "enable", "other", "--host", "shop.example", "--pid", 88)
    assert wrong(PAGE, hosts="shop.example", pid="88") == {"pid": "Merchant number 88 is taken."}
    fill(PAGE, hosts="shop.example", pid="89")
    assert settings()["pid"] == "89"
    for typed, field, words in WRONG:
        assert wrong(PAGE, **{"hosts": "shop.example"} | typed) == {field: words}


def test_settings_are_changed_and_recorded(enabled, fill, settings, audited, page):
    changes = {"hosts": "Shop.example、*.shop.example", "webhooks": True, **own(type_2_wxpay="wxpay, qqpay")}
    assert fill(PAGE, **changes).status_code == 303
    assert {name: settings()[name] for name in ("hosts", "types", "webhooks")} == {
        "hosts": "shop.example,*.shop.example",
        "types": "wxpay=2:wxpay,qqpay=2:wxpay",
        "webhooks": True,
    }
    assert audited()[-1] == (
        "demo set epay gateway merchant demo hosts: 127.0.0.1,localhost -> shop.example,*.shop.example; "
        "types: by payment method -> wxpay=2:wxpay,qqpay=2:wxpay; webhooks: no -> yes"
    )
    assert "demo changed the epay gateway of Demo Shop" in page("audit/").text
    fill(PAGE, types=["methods"])
    assert settings()["types"] == "by payment method"


def test_a_selected_channel_serves_the_types_of_its_field(enabled, fill, shop_with, page):
    shop = shop_with(enabled)
    fill(PAGE, **own(type_2_wxpay="qqpay"))
    shown = page(f"order/{number_in(shop.mapi(type='qqpay')['payurl'])}")
    assert shown.links["Sandbox B"] == "/console/channel/2"
    assert "Method WeChat Pay" in shown.text


def test_unchanged_settings_keep_the_order_of_the_channels(flask, fill, settings, audited):
    flask("epay", "enable", "demo", "--host", "shop.example", "--type", "wxpay=2", "--type", "wxpay=1")
    before = audited()
    fill(PAGE)
    assert audited() == before
    fill(PAGE, hosts="new.example")
    assert settings()["types"] == "wxpay=2:wxpay,wxpay=1:wxpay"


def test_a_channel_that_is_disabled_for_a_while_keeps_its_types(enabled, flask, fill, settings, page):
    fill(PAGE, **own(type_2_wxpay="wxpay", type_1_alipay="alipay"))
    flask("channel", "set", 2, "--disabled")
    fill(PAGE, type_1_alipay="alipay, ali")
    assert settings()["types"] == "alipay=1:alipay,ali=1:alipay,wxpay=2:wxpay"
    for channel in (1, 2, 3):
        flask("channel", "unlink", channel, "demo")
    assert "Payers cannot pay yet: the merchant has no channel." in page(PAGE).text


def test_an_outdated_form_changes_nothing(console, fill, page, shown, settings, audited):
    form = Page(page(PAGE).html).form()
    answers = [console.post(f"/console/{PAGE}", data=form.fill({"hosts": host})) for host in ("a.example",) * 2]
    other = console.post(f"/console/{PAGE}", data=form.fill({"hosts": "b.example"}))
    assert ["key" in shown(answer) for answer in (*answers, other)] == [True, False, False], "one account, one key"
    assert CONFLICT in other.text
    stale = Page(page(PAGE).html).form().fill({"hosts": "mine.example"})
    fill(PAGE, hosts="theirs.example")
    assert CONFLICT in console.post(f"/console/{PAGE}", data=stale).text
    assert settings()["hosts"] == "theirs.example"
    assert CONFLICT in audited()[-1]


def test_a_disabled_gateway_refuses_the_shop_until_it_is_enabled_again(enabled, fill, shop_with, page, audited):
    shop = shop_with(enabled)
    assert fill(PAGE, "/epay/disable").status_code == 303
    assert (shop.mapi(type="bank")["code"], audited()[-1][:26]) == (-3, "demo disable epay gateway ")
    assert "The epay gateway is disabled" in page(PAGE).text
    assert fill(PAGE, "/epay/enable").status_code == 303
    assert (shop.submit(type="bank").status, audited()[-1][:25]) == (303, "demo enable epay gateway ")


def test_a_new_md5_key_is_shown_once_and_the_old_one_stays_valid_for_some_time(
    enabled, fill, shown, shop_with, ahead, everywhere, page, audited
):
    new = shown(fill(PAGE, "/rotate/md5", keep_hours="2"))
    shops = shop_with(enabled), shop_with(new)
    assert [shop.api("query")["code"] for shop in shops] == [1, 1]
    assert "The old key is valid until" in page(PAGE).text
    assert audited()[-1] == "demo rotate epay MD5 key merchant demo the old one stays valid for 2 hours"
    ahead(2 * 3_600 + 1)
    assert [shop.api("query")["code"] for shop in shops] == [-3, 1]
    assert not [key for key in (new["key"], enabled["key"]) if key in everywhere("merchant/demo", PAGE, "audit/")]


def test_rsa_keys_are_created_and_replaced(enabled, fill, shown, shop_with, page, everywhere, audited):
    assert "Replace RSA keys" not in page(PAGE).text
    first = shown(fill(PAGE, "/rotate/rsa"))
    second = shown(fill(PAGE, "/rotate/rsa", keep_hours="1"))
    assert first["platform_public_key"] == second["platform_public_key"]
    for keys in (first, second):
        assert shop_with(enabled | keys).v2("merchant/info")["code"] == 0
    assert first["platform_public_key"] in page(PAGE).text
    assert not [keys for keys in (first, second) if keys["private_key"] in everywhere("merchant/demo", PAGE, "audit/")]
    assert [line.partition("merchant demo ")[2] for line in audited()[-2:]] == [
        "",
        "the old one stays valid for 1 hours",
    ]


@pytest.mark.parametrize("kind", ["md5", "rsa"])
def test_a_rotation_sent_twice_or_with_invalid_hours_replaces_the_key_once_or_not(
    kind, enabled, fill, shop_with, console, page, shown
):
    form = Page(page(PAGE).html).form(f"/rotate/{kind}")
    if kind == "md5":
        for hours in ("", "-1", "721", "1.5"):
            assert fill(PAGE, "/rotate/md5", keep_hours=hours).status_code == 303
            assert "a number of hours from 0 to 720" in page(PAGE).text, hours
        assert shop_with(enabled).api("query")["code"] == 1
    first, second = (console.post(form.action, data=form.sent) for _ in range(2))
    assert (shown(first)["pid"], second.status_code) == ("1001", 303)
    assert "This secret was replaced in the meantime" in page(PAGE).text
