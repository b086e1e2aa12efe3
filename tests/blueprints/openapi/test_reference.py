"""The reference page: it has all of the OpenAPI document, in both languages, and loads nothing from elsewhere."""

import html
import json
import re
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from blueprints.openapi import webhooks
from services.callbacks.delivery import RETRY_SECONDS, TIMEOUT
from services.errors import ACTIONS, ERRORS
from tests.support import ROOT


class Page(HTMLParser):
    """The ids, links, loaded files, tags and texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads, self.tags, self.inline, self.words = [], [], [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.add(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.loads += [value for name, value in attrs if name in ("src", "srcset") or (tag, name) == ("link", "href")]
        self.inline += [name for name in given if name == "style" or name.startswith("on")]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def response(http):
    return http("GET", "/docs", headers={"Accept-Language": "en"})


@pytest.fixture
def page(response):
    return Page(response.text)


@pytest.fixture
def document(http):
    return http("GET", "/openapi.json").json


def test_every_operation_callback_code_and_field_has_its_place(page, response, document):
    operations = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert {*operations, *document["webhooks"], *map(str, ERRORS)} <= {*page.ids}
    fields = {name for schema in document["components"]["schemas"].values() for name in schema.get("properties", {})}
    shown = {re.split(r"[.\[\]]+", each)[-1] for each in page.ids}
    assert fields - shown == {"msg", "message"}  # of the envelope, and of responses to channels only
    names = re.findall(r"<h3>Response: <span>(.*?)</span></h3>", response.text)
    assert {"A merchant's balance", "One page of orders", "A new deposit"} <= {html.unescape(name) for name in names}
    assert "The result." not in response.text


def test_every_link_leads_to_a_place_on_the_page_or_to_another_page(demo, page, http):
    assert len(page.ids) == len({*page.ids})
    elsewhere = {*page.links} - {f"#{each}" for each in page.ids}
    assert elsewhere >= {"/openapi.json", "/console/", "/docs/signing", "/docs/clients/merchant.py", "/docs/zh"}
    assert {path for path in elsewhere - {"/console/"} if http("GET", path).status != 200} == set()


def test_it_loads_its_own_files_and_nothing_else(page, response, http):
    files = [file.rsplit("/", 1)[-1] for file in page.loads]
    assert files == ["mark.svg", "pages.css", "developer.css", "docs.css", "docs.md", "docs.js"]
    assert all(http("GET", file).status == 200 for file in page.loads)
    assert page.inline == []
    policy = "default-src 'none'; style-src 'self'; script-src 'self';"
    assert response.headers["Content-Security-Policy"].startswith(policy)


def test_each_request_is_shown_in_six_languages_of_which_one_is_chosen(response):
    groups = re.findall(r'<div class="tabs"[^>]*>(.*?)</div>\n\n', response.text, re.DOTALL)
    names = {re.search(r'name="sample-([^"]+)"', group)[1].partition("-")[0] for group in groups}
    signed = {"createOrder", "orderQueryDetail", "orderQueryList", "getPayChannels", "balanceQuery"}
    signed |= {"statementQuery", "createRefund", "refundQueryDetail", "refundQueryList"}
    assert names >= signed | {"regionData", "provinceList", "cityList", "districtList"}
    assert {(group.count("<input"), group.count(" checked")) for group in groups} == {(6, 1)}


def test_each_error_of_an_operation_has_its_action(page, response):
    order = response.text.partition('<section id="createOrder">')[2].partition("</section>")[0]
    shown = re.findall(r'href="#(\d+)">\d+</a></td>.*?class="action ([\w-]+)">([^<]+)<', order)
    actions = {int(code): action for code, action, _ in shown}
    assert {(action, label) for _, action, label in shown} == {
        ("same-key", "Retry with the same key"),
        ("new-key", "Retry with a new key"),
        ("no-retry", "Do not retry"),
    }
    assert actions[50201] == "new-key"
    assert actions[42201] == "no-retry"
    assert actions.items() <= {(int(code), action.value) for code, action in ACTIONS.items()}


def test_the_actions_of_a_refund_are_about_its_own_number(response):
    refund = response.text.partition('<section id="createRefund">')[2].partition("</section>")[0]
    shown = dict(re.findall(r'href="#(\d+)">\d+</a></td>.*?class="action [\w-]+">([^<]+)<', refund))
    assert shown["40901"] == shown["50000"] == "Retry with the same merchant_refund_no"
    assert shown["50201"] == "Retry with a new merchant_refund_no"
    assert {shown["40904"], shown["42201"]} == {"Do not retry"}


def test_the_rule_its_example_and_the_key_of_callbacks_are_on_the_page(response, http):
    chinese = http("GET", "/docs", headers={"Accept-Language": "zh"}).text
    for text in (response.text, chinese):
        assert "43168fa615bf51853022d6c422a6d3e668eaa810f5939e2041e73843bb8a6f32" in text
        assert "<code>whsec_</code>" in text
        assert "api_key=demo\ncny_amount=100.00\n" in text
        assert text.partition('<section id="signing"')[2].partition("</section>")[0].count("<li>") >= 8


@pytest.mark.parametrize(("language", "words"), [("en", "returns to your shop"), ("zh", "返回商户网站")])
def test_it_says_where_payers_go_after_the_payment_and_with_which_fields(language, words, http):
    text = http("GET", "/docs", headers={"Accept-Language": language}).text
    section = text.partition('<section id="returning"')[2].partition("</section>")[0]
    assert words in section
    assert {f"<code>{name}</code>" for name in ("order_no", "status", "timestamp", "signature")} <= {
        *re.findall(r"<code>\w+</code>", section)
    }
    assert words in http("GET", "/docs/zh.md" if language == "zh" else "/docs.md").text


def test_the_examples_of_regions_are_what_the_service_returns(document, http):
    for name, example in (("provinceList", "广东省"), ("cityList", "广州市"), ("districtList", "天河区")):
        path = f"/addons/paychannel/channel.gatewaya/{name}"
        operation = document["paths"][path]["get"]
        (shown,) = operation["responses"]["200"]["content"]["application/json"]["examples"].values()
        asked = {
            each["name"]: each["schema"]["examples"][0] for each in operation["parameters"] if each["in"] == "query"
        }
        returned = http("GET", f"{path}?{urlencode(asked)}").json["data"]
        assert [each["name"] for each in shown["value"]["data"]] == [example]
        assert shown["value"]["data"][0] in returned


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_fields_of_regions_have_the_example_of_their_endpoint(language, http):
    text = http("GET", "/docs", headers={"Accept-Language": language}).text
    for name, *examples in (
        ("provinceList", "广东省", "440000"),
        ("cityList", "广州市", "440100"),
        ("districtList", "天河区", "440106"),
    ):
        section = text.partition(f'<section id="{name}"')[2].partition("</section>")[0]
        fields = section.partition("<code>[].name</code>")[2]
        assert re.findall(r"</b> <code>(\D+|\d{6})</code></span>", fields) == examples, name


def test_the_response_on_the_page_about_regions_is_the_one_that_its_command_gets(http):
    page = (ROOT / "docs/regions.md").read_text("utf-8")
    province = re.search(r"cityList --data-urlencode 'province=(\w+)'", page)[1]
    response = http("GET", f"/addons/paychannel/channel.gatewaya/cityList?{urlencode({'province': province})}")
    assert json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1]) == response.json


def test_the_examples_of_bodies_and_responses_are_complete(page, document):
    shown = [json.loads(text) for text in page.words if text.startswith("{\n")]
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    sides = [each.get("requestBody", {}) for each in operations]
    sides += [each["responses"].get("200", {}) for each in operations]
    contents = [side["content"]["application/json"] for side in sides if "application/json" in side.get("content", {})]
    given = [each["value"] for content in contents for each in content.get("examples", {}).values()]
    assert len(given) > 10
    assert [value for value in given if value not in shown] == []


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1", "site_url": "https://pay.example.com"}])
def test_it_has_the_addresses_of_this_installation(page):
    assert {"https://pay.example.com", "/api/v1/merchant/createOrder"} <= {*page.words}


def test_it_is_in_the_readers_language_unless_the_address_fixes_one(http):
    def language(path, accepted):
        response = http("GET", path, headers={"Accept-Language": accepted})
        assert response.headers["Vary"] == "Accept-Language"
        return re.search(r'<html lang="([\w-]+)">', response.text)[1]

    assert [language("/docs", each) for each in ("zh", "en")] == ["zh-CN", "en"]
    assert language("/docs/", "zh") == "zh-CN"
    assert [language(path, "zh") for path in ("/docs/en", "/docs/zh")] == ["en", "zh-CN"]


def test_the_introduction_to_callbacks_has_the_schedule():
    units = ((3600, "h"), (60, "min"), (1, "s"))
    spans = [
        next(f"{seconds // size} {name}" for size, name in units if seconds % size == 0) for seconds in RETRY_SECONDS
    ]
    assert f" within {TIMEOUT:.0f} s " in webhooks.ABOUT
    assert f" after {', '.join(spans)}, " in webhooks.ABOUT


def test_it_is_served_as_markdown(http, document):
    response = http("GET", "/docs.md")
    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    operations = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert re.findall(r"^### (\w+)$", response.text, re.MULTILINE) == operations
    assert re.search(r"^\| 50201 \| .* \| Retry with a new key \|$", response.text, re.MULTILINE)
    assert 'call("createOrder", {' in response.text
    assert "&#" not in response.text
    chinese = http("GET", "/docs/zh.md").text
    assert chinese.startswith("# 接口参考\n")
    assert re.findall(r"^### (\w+)$", chinese, re.MULTILINE) == operations
