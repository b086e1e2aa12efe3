"""A channel's pages: the choice of a driver, a form with its fields, secrets, and the check."""

import pytest

from gateways import registry
from gateways.config import PrivateKey, is_secret
from runtime import clock
from runtime.clock import in_china
from tests.blueprints.console.setting_up.filling import Page
from tests.upstreams.alipay import Alipay
from tests.upstreams.epay import KEY, EpayPlatform
from tests.upstreams.loopback import key_pair
from tests.upstreams.wechatpay import WechatPay

CHANNEL = {"name": "New", "category": "gateway_b", "merchants": ["1"]}
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def upstream(web_server):
    """`upstream("epay 2")`: a driver's name, and a config for its loopback upstream."""
    configs = {
        "trial": lambda: {"secret": "a-secret-of-the-simulator", "open": "accept"},
        "manual": lambda: {"payee": "Payee Ltd.", "account": "6222 0200", "note": HOSTILE},
        "epay 1": lambda: EpayPlatform(web_server).config("1"),
        "epay 2": lambda: EpayPlatform(web_server).config("2", proxy="http://me:my-password@127.0.0.1:3128"),
        "wechatpay": lambda: WechatPay(web_server).config("both"),
        "alipay key": lambda: Alipay(web_server).config("key"),
        "alipay certificate": lambda: Alipay(web_server).config("certificate"),
    }
    return lambda name: (name.split()[0], configs[name]())


UPSTREAMS = ("trial", "manual", "epay 1", "epay 2", "wechatpay", "alipay key", "alipay certificate")


@pytest.fixture
def new(fill, console):
    """`new("epay", config)`: the number of a channel that the form created."""

    def add(driver, config, **more):
        fields = {f"config_{name}": value for name, value in config.items()}
        answer = fill(f"channel/new?driver={driver}", **CHANNEL | fields | more)
        assert answer.status_code == 303, Page(answer.text).problems
        return int(answer.headers["Location"].rsplit("/", 1)[1])

    return add


def test_every_driver_can_be_chosen_and_its_form_has_each_field_of_its_config(demo, page):
    text = page("channel/new").text
    assert page("channel/new?driver=nope").text == text
    for name, driver in registry.DRIVERS.items():
        assert driver.title in text
        assert driver.about in text
        shown, specs = page(f"channel/new?driver={name}"), driver.config_schema().fields
        form = Page(shown.html).form()
        assert {f"config_{field}" for field in specs} <= set(form.sent) | set(form.boxes)
        assert all(spec.metadata["label"] in shown.text for spec in specs.values())
        assert all(is_secret(spec) for spec in specs.values() if isinstance(spec, PrivateKey))
    for number in ("99", "99999999999999999999"):
        page(f"channel/{number}", status=404)


@pytest.mark.parametrize("name", UPSTREAMS)
def test_a_channel_of_each_driver_is_added_by_its_form(
    name, upstream, new, fill, page, typed, everywhere, api, audited
):
    driver, config = upstream(name)
    number = new(driver, config)
    path = f"channel/{number}"
    shown, form = page(path), typed(path)
    specs = registry.DRIVERS[driver].config_schema().fields
    secret = [value for field, value in config.items() if is_secret(specs[field])]
    for field, value in config.items():
        given = form[f"config_{field}"].strip()
        assert given == "" if value in secret else given.replace("\r", "").startswith(value.strip()[:40])
    assert shown.html.count("Leave empty to keep the current value") == len(secret)
    read = everywhere(path, f"channel/new?driver={driver}", "merchant/demo").replace("\r", "")
    assert not [value for value in secret if value.strip().splitlines()[-2 if "\n" in value.strip() else 0] in read]
    assert number in [row["id"] for row in api.call("getPayChannels").data["list"]]
    before = audited()
    assert (fill(path).status_code, audited()) == (303, before), "an unchanged form changes nothing"


def test_a_secret_is_replaced_or_removed_and_never_shown(new, upstream, fill, page, audited):
    number = new(*upstream("epay 1"), config_proxy="http://me:my-password@127.0.0.1:3128")
    fill(f"channel/{number}", config_key="another-key", config_proxy_remove=True)
    recorded = audited()[-1]
    assert ("proxy: (set) -> -" in recorded, "key: (set) -> (another)" in recorded) == (True, True)
    assert "another-key" not in recorded
    assert fill(f"channel/{number}", "/try").status_code == 303
    assert "Problem" in page(f"channel/{number}").text
    fill(f"channel/{number}", config_key=KEY)
    fill(f"channel/{number}", "/try")
    assert "The channel responds and accepts your keys." in page(f"channel/{number}").text


def test_keys_can_be_uploaded_as_files(upstream, new, page, wrong):
    driver, config = upstream("epay 2")
    keys = {f"config_{name}_file": config.pop(name).encode() for name in ("private_key", "platform_key")}
    path = f"channel/{new(driver, config, **keys)}"
    assert "BEGIN PUBLIC KEY" in page(path).html
    no_text = "The file must be text in PEM or base64 format."
    assert wrong(path, config_platform_key_file=b"\xff\xfe") == {"": no_text}
    no_key = "Must be an RSA public key of 1024 bits or more."
    assert wrong(path, config_platform_key_file=b"what is this") == {"config_platform_key": no_key}


EPAY = {"base_url": "https://pay.example", "pid": "1"}
WECHATPAY = {"appid": "wx1", "mchid": "1", "serial_no": "AB", "apiv3_key": "k" * 32, "private_key": key_pair("x")[0]}
ALIPAY = {"app_id": "20210000", "seller_id": "2088000000000001", "private_key": key_pair("x")[0]}
MISSING, PROXY = "Missing data for required field.", "http://127.0.0.1:3128 or http://user:password@host:port."
NO_KEY = "Must be an RSA private key of 1024 bits or more, without a password."
NEEDED = "Required, unless platform_certificates is set."
# A driver, its config, and the messages by field.
WRONG = [
    ("epay", {}, {"base_url": MISSING, "pid": MISSING}),
    ("epay", EPAY | {"base_url": "ftp://x", "key": "k"}, {"base_url": "Must look like https://pay.example.com/."}),
    ("epay", EPAY | {"pid": "1 2", "key": "k"}, {"pid": "Must be the number from the provider's console."}),
    ("epay", EPAY, {"key": "Required for this version."}),
    ("epay", EPAY | {"version": "2"}, dict.fromkeys(("private_key", "platform_key"), "Required for this version.")),
    ("epay", EPAY | {"key": "k", "clientip": "here"}, {"clientip": "Must be an IP address."}),
    ("epay", EPAY | {"key": "k", "proxy": "socks5://x"}, {"proxy": f"Must look like {PROXY}"}),
    ("wechatpay", WECHATPAY, dict.fromkeys(("public_key", "public_key_id"), NEEDED)),
    ("wechatpay", WECHATPAY | {"serial_no": "?"}, {"serial_no": "Must be the certificate's serial number in hex."}),
    ("wechatpay", WECHATPAY | {"apiv3_key": "short"}, {"apiv3_key": "Must be 32 ASCII characters."}),
    ("wechatpay", WECHATPAY | {"private_key": "x"}, {"private_key": NO_KEY}),
    ("alipay", ALIPAY, {"alipay_public_key": "Enter this key or all three certificates."}),
    (
        "alipay",
        ALIPAY | {"alipay_public_key": key_pair("x")[1]},
        {"alipay_public_key": "This is your application's key. Enter Alipay's public key."},
    ),
    ("trial", {"secret": "short"}, {"secret": "Shorter than minimum length 8."}),
    ("manual", {"note": "x" * 301}, {"note": "Longer than maximum length 300."}),
]


def test_errors_of_a_drivers_schema_are_shown_at_its_fields_without_a_typed_secret(wrong, fill, flask_json):
    before = flask_json("channel", "list")
    for driver, config, errors in WRONG:
        fields = {f"config_{name}": value for name, value in config.items()}
        found = wrong(f"channel/new?driver={driver}", **CHANNEL, **fields)
        assert found == {f"config_{name}": text for name, text in errors.items()}
    key = key_pair("somebody")[0]
    config = {"config_version": "2", "config_private_key": key, "config_key": "typed-key"}
    answer = fill("channel/new?driver=epay", **CHANNEL, **config)
    assert (answer.status_code, "typed-key" in answer.text, key.splitlines()[1] in answer.text) == (422, False, False)
    assert Page(answer.text).form().sent["name"] == "New"
    assert flask_json("channel", "list") == before


COLUMNS = [
    ("name", "", "This field is required."),
    ("min_amount", "0", "Must be greater than 0."),
    ("max_amount", "1.005", "Must have at most two decimals."),
    ("min_amount", "1000000.01", "The minimum amount is above the maximum."),
    ("passage_rate", "-100.01", "Must be a percentage from -100 to 100."),
    ("commission_rate", "-1", "Must be a percentage from 0 to 100."),
    ("deposit_rate", "x", "Must be a percentage with at most two decimals."),
    ("cost_wxpay", "100.01", "Must be a percentage from 0 to 100."),
    ("cost_bank", "0.001", "Must be a percentage with at most two decimals."),
    ("settlement_days", "366", "Must be from 0 to 365."),
    ("hours", "9 to 5", "Enter hours such as 09:00-21:00, or nothing for the whole day."),
    ("auto_accept_max", "-1", "Must be greater than 0."),
]


@pytest.mark.parametrize(
    ("path", "more"), [("channel/new?driver=manual", {"category": "gateway_b"}), ("channel/2", {})]
)
def test_an_invalid_value_is_reported_at_its_field(wrong, flask_json, path, more):
    before = flask_json("channel", "list")
    for field, value, words in COLUMNS:
        assert set(wrong(path, **{"name": "New", field: value} | more).values()) == {words}, (field, value)
    assert wrong(path, name="New", pay_method=[], **more)
    assert flask_json("channel", "list") == before
    if more:
        assert list(wrong(path, name="New", category="gateway_d")) == ["category"]
        taken = "A channel with this name already exists. Choose another name."
        assert wrong(path, name="Sandbox A", **more) == {"name": taken}


def test_a_change_takes_effect_immediately_and_is_recorded(fill, flask_json, audited, api, other):
    fill("channel/2", name="Renamed", max_amount="20", pay_method=["wxpay"], merchants=["1"], passage_rate="-0.5")
    row = next(row for row in flask_json("channel", "list") if row["id"] == 2)
    assert (row["name"], row["max"], row["pay_method"], row["merchants"]) == ("Renamed", "20.00", "wxpay", "demo")
    assert (api.buy("20.01").code, other.buy("10.00").code, api.buy("20.00").code) == (42200, 40403, 1)
    assert audited()[-1] == (
        "demo set channel channel 2 name: Sandbox B -> Renamed; pay_method: wxpay,alipay,bank -> wxpay; "
        "max_amount: 1000000.00 -> 20; passage_rate: -0.10 -> -0.5; merchants: 1,2 -> 1"
    )


def test_hours_and_a_stop_of_new_orders_are_set_and_shown(fill, page, audited, api, flask):
    now = in_china(clock.now()).hour
    later = f"{(now + 2) % 24:02}:00-{(now + 3) % 24:02}:00"
    for changed, state in (
        ({"hours": later}, "Outside its hours"),
        ({"hours": "", "takes_orders": False}, "No new orders"),
        ({"enabled": False}, "Disabled"),
    ):
        fill("channel/2", **changed)
        assert state in page("channel/2").text
        assert next(row for row in page("channels/").rows if row["Channel"] == "Sandbox B")["Status"] == state
    fill("channel/2", takes_orders=True, enabled=True)
    assert next(row for row in page("channels/").rows if row["Channel"] == "Sandbox B")["Status"] == "Enabled"
    assert audited()[-1] == "demo set channel channel 2 takes_orders: no -> yes; enabled: no -> yes"
    assert audited()[-3] == f"demo set channel channel 2 hours: {later} -> -; takes_orders: yes -> no"


def test_a_group_has_only_the_settings_that_its_channels_do_not_decide(fill, flask, page, typed):
    answer = fill("channel/new?driver=group", name="All", category="gateway_b", merchants=["1"], settlement_days="1")
    assert answer.status_code == 303
    path = answer.location.removeprefix("/console/")
    number = path.rpartition("/")[2]
    fields = typed(path)
    assert not {"pay_method", "min_amount", "cost_wxpay", "passage_rate", "auto_accept_max"} & set(fields)
    assert (fields["settlement_days"], fields["config_mode"]) == ("1", "priority")
    assert "Test connection" not in page(path).text
    fill("channel/2", settlement_days="1")
    flask("group", "add", number, "2")
    assert page("channel/2").links["All"] == f"/console/channel/{number}"
    listed = next(row for row in page("channels/").rows if row["Channel"] == "All")
    assert (listed["Methods"], listed["Minimum (¥)"]) == ("WeChat Pay, Alipay, Bank transfer", "0.01")


def test_the_costs_of_deposits_are_set_by_payment_method(new, upstream, fill, typed, audited):
    fill("channel/2", cost_wxpay="0.6", cost_alipay="0.38")
    form = typed("channel/2")
    assert [form[f"cost_{method}"] for method in ("wxpay", "alipay", "bank")] == ["0.60", "0.38", "0.00"]
    assert audited()[-1] == "demo set channel channel 2 cost_wxpay: 0.00 -> 0.6; cost_alipay: 0.00 -> 0.38"
    fill("channel/2", cost_alipay="0")
    assert typed("channel/2")["cost_alipay"] == "0.00"
    of_one_method = typed(f"channel/{new(*upstream('wechatpay'), cost_wxpay='0.6')}")
    assert {name: value for name, value in of_one_method.items() if name.startswith("cost")} == {"cost_wxpay": "0.60"}


def test_another_account_is_refused_while_orders_are_open_unless_it_is_the_same(
    new, upstream, fill, wrong, api, page, console, audited
):
    number = new(*upstream("epay 1"))
    assert "same account" not in page(f"channel/{number}").text
    api.buy(channel=number)
    errors = wrong(f"channel/{number}", config_pid="2002")
    assert "Orders are still in progress at the current account" in errors["same_account"]
    form = Page(fill(f"channel/{number}", config_pid="2002").text).form()
    assert form.sent["config_pid"] == "2002"
    answer = console.post(f"/console/channel/{number}", data=form.fill({"same_account": True}))
    assert answer.status_code == 303
    assert audited()[-1].endswith("pid: (set) -> (another); the same account")


def test_checking_a_channel_reports_the_result(new, upstream, fill, page, audited):
    fill("channel/2", "/try")
    assert " OK The channel responds and accepts your keys." in page("channel/2").text
    assert audited()[-1] == "demo try channel channel 2 "
    assert "no automatic status check" in page("channel/3").text
    number = new(*upstream("epay 2"), config_proxy="")
    fill(f"channel/{number}", "/try")
    assert "The channel responds and accepts your keys." in page(f"channel/{number}").text


@pytest.mark.parametrize(
    ("language", "method", "why"), [("en", "WeChat Pay", "was rejected"), ("zh", "微信支付", "平台拒绝了")]
)
def test_checking_a_channel_shows_each_finding_including_bad_ones(
    language, method, why, new, fill, page, web_server, console
):
    platform = EpayPlatform(web_server)
    platform.barred.add("127.0.0.1")
    platform.pays_out = False
    console.environ_base |= {"HTTP_ACCEPT_LANGUAGE": language}

    def finding(number):
        fill(f"channel/{number}", "/try")
        return page(f"channel/{number}").text

    shown = finding(new("epay", platform.config("2")))
    assert all(text in shown for text in (method, why, "你今天已无法再发起支付，请明天再试", "商户未开启代付API接口"))
    if language == "zh":
        shown = finding(new("epay", platform.config("1", key="another-key"), name="Rejected keys"))
        assert all(text in shown for text in ("渠道有响应。", "渠道拒绝了请求：", "请检查商户号和密钥。", "时钟"))


TROUBLES = {
    "typing error": ({"base_url": "https://no-such-host.invalid"}, "no-such-host.invalid does not exist."),
    "nothing listens": ({"base_url": "http://127.0.0.1:9"}, "127.0.0.1 was not reached."),
    "another site": ({"base_url": "%(site)s/nothing"}, "HTTP 500 from localhost, which is not a response"),
    "no proxy": ({"proxy": "http://127.0.0.1:9"}, "The proxy did not connect."),
    "no TLS": ({"base_url": "%(tls)s"}, "has no valid TLS certificate."),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_failed_check_reports_the_reason_and_the_remedy(trouble, new, fill, page, web_server):
    changed, text = TROUBLES[trouble]
    site = web_server.url_for("").rstrip("/")
    values = {"site": site, "tls": site.replace("http:", "https:")}
    config = EpayPlatform(web_server).config("2") | {name: value % values for name, value in changed.items()}
    number = new("epay", config)
    fill(f"channel/{number}", "/try")
    shown = page(f"channel/{number}").text
    assert text in shown
    assert "Correct the settings and save them, then test again." in shown
    assert "Not tested, because there is no connection." in shown
    assert " OK " not in shown  # also the public key in the text can have these letters


def test_a_channels_name_is_escaped_and_its_secrets_are_not_shown_to_viewers(new, page, viewer):
    shown = page("channel/2", client=viewer)
    assert ("sandbox-notice-secret" in shown.html, "Test connection" in shown.text) == (False, False)
    number = new("manual", {"payee": HOSTILE, "bank": HOSTILE}, name=HOSTILE)
    for path in (f"channel/{number}", "merchant/demo", "merchant/new", "merchant/demo/adjust"):
        shown = page(path)
        assert shown.tags.count("script") == shown.html.count("<script src=")


def test_a_channel_without_status_checks_says_so_at_all_times(new, upstream, page):
    number = new(*upstream("epay 1"), config_no_status_checks="y")
    text = "This channel has no status checks. Unpaid deposits expire by time. If a notice is lost"
    tested = "Queries a nonexistent order, which works only with the correct address, merchant number and keys."
    shown = page(f"channel/{number}").text
    assert (text in shown, tested in shown) == (True, False)
    shown = page(f"channel/{new(*upstream('epay 1'), name='Another')}").text
    assert (text in shown, tested in shown) == (False, True)
