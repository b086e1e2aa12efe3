"""alipay: a channel's config; each mistake is named when the channel is added."""

import pytest

from tests.upstreams.alipay import Alipay, curved
from tests.upstreams.loopback import key_pair

OURS, THEIRS, CURVED = key_pair("alipay application")[1], key_pair("alipay")[1], curved("E", 7)
GATEWAY = "https://openapi.alipay.com/gateway.do"


@pytest.fixture
def alipay(web_server):
    return Alipay(web_server)


def add(config):
    pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
    return ("channel", "add", "--category", "gateway_b", "--driver", "alipay", "--name", "Alipay", *pairs)


def bare(pem):
    """A key as consoles show it: base64 without its first and last line."""
    return "".join(pem.splitlines()[1:-1])


# The mistake, its mode, and the named fields. "-" leaves a field out.
WRONG = {
    "no application": ("key", {"app_id": "-"}, ["app_id"]),
    "an application's name": ("key", {"app_id": "my shop"}, ["app_id"]),
    "no merchant": ("key", {"seller_id": "-"}, ["seller_id"]),
    "a merchant's login": ("key", {"seller_id": "me@example.com"}, ["seller_id"]),
    "an application for a merchant": ("key", {"seller_id": "2021000000000001"}, ["seller_id"]),
    "no private key": ("key", {"private_key": "-"}, ["private_key"]),
    "an empty private key": ("key", {"private_key": ""}, ["private_key"]),
    "a public key for a private one": ("key", {"private_key": THEIRS}, ["private_key"]),
    "no key of Alipay's": ("key", {"alipay_public_key": "-"}, ["alipay_public_key"]),
    "text for a key": ("key", {"alipay_public_key": "MIIB"}, ["alipay_public_key"]),
    "our own key for Alipay's": ("key", {"alipay_public_key": OURS}, ["alipay_public_key"]),
    "an address by http": ("key", {"base_url": "http://openapi.alipay.com/gateway.do"}, ["base_url"]),
    "an address with a query": ("key", {"base_url": GATEWAY + "?charset=utf-8"}, ["base_url"]),
    "a field that is not there": ("key", {"key": "1"}, ["key"]),
    "both modes": ("certificate", {"alipay_public_key": THEIRS},
                   ["app_certificate", "alipay_certificate", "alipay_root_certificates"]),
    "one certificate": ("certificate", {"app_certificate": "", "alipay_certificate": "-"},
                        ["app_certificate", "alipay_certificate"]),
    "no roots": ("certificate", {"alipay_root_certificates": "-"}, ["alipay_root_certificates"]),
    "roots that don't count": ("certificate", {"alipay_root_certificates": CURVED}, ["alipay_root_certificates"]),
    "a key for a certificate": ("certificate", {"app_certificate": THEIRS}, ["app_certificate"]),
    "a certificate without an RSA key": ("certificate", {"alipay_certificate": CURVED}, ["alipay_certificate"]),
    "a certificate of another key": ("certificate", {"private_key": key_pair("alipay")[0]},
                                     ["app_certificate", "alipay_certificate"]),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_are_named_when_the_channel_is_added(wrong, alipay, refuses):
    mode, changed, named = WRONG[wrong]
    config = {name: value for name, value in (alipay.config(mode) | changed).items() if value != "-"}
    message = refuses(*add(config))
    said = message.removeprefix("Error: ").removeprefix("config: ").strip()
    assert {part.split(": ")[0] for part in said.split("; ")} == set(named)


def test_alipays_own_address_is_the_default(alipay, flask_json):
    config = alipay.config("key")
    del config["base_url"]
    assert flask_json(*add(config))["pay_method"] == "alipay"


def test_files_from_the_console_are_accepted_unchanged(api, alipay, flask, flask_json, tmp_path):
    """Bare base64 for the key; a chain for Alipay's certificate; roots of which some can't be parsed."""
    texts = alipay.certificates | {"private_key": bare(alipay.app_private)}
    files = {name: tmp_path / name for name in texts}
    for name, file in files.items():
        file.write_text(texts[name])
    number = flask_json(*add(alipay.config("certificate") | {name: f"@{file}" for name, file in files.items()}))["id"]
    flask("channel", "link", number, "demo")
    order_no = api.buy(channel=number, paychannel_paymethod="alipay").data["order_no"]
    assert order_no in alipay.codes


def test_a_channel_can_change_to_certificates(api, alipay, add_channel, flask, refuses):
    number = add_channel("alipay", alipay.config("key"))
    pairs = [part for name, text in alipay.certificates.items() for part in ("--config", f"{name}={text}")]
    assert "Leave this field or alipay_public_key empty" in refuses("channel", "set", number, *pairs)
    flask("channel", "set", number, *pairs, "--config", "alipay_public_key=")
    flask("account", "add", "demo", "--card-number", "payee@example.com", "--real-name", "张三")
    assert api.buy(channel=number, paychannel_paymethod="alipay").code == 1
    assert api.sell(channel=number, paychannel_paymethod="alipay").code == 1


def test_no_list_shows_a_key(alipay, add_channel, flask):
    number = add_channel("alipay", alipay.config("key"))
    shown = flask("channel", "list", "--json").output + flask("channel", "list").output
    assert f'"id": {number}' in shown
    assert not [name for name in (bare(alipay.app_private)[:40], "private_key", "PRIVATE KEY") if name in shown]
