"""The page of the OpenAPI document: all of it is there, it links to itself alone, and needs nothing from elsewhere."""

import json
import re
from html.parser import HTMLParser

import pytest

from services.errors import ERRORS


class Page(HTMLParser):
    """What a page names, links to, loads and says."""

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
def answer(http):
    return http("GET", "/docs", headers={"Accept-Language": "en"})


@pytest.fixture
def page(answer):
    return Page(answer.text)


@pytest.fixture
def document(http):
    return http("GET", "/openapi.json").json


def test_every_operation_callback_code_and_field_has_its_place(page, document):
    operations = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert {*operations, *document["webhooks"], *map(str, ERRORS)} <= {*page.ids}
    fields = {name for schema in document["components"]["schemas"].values() for name in schema.get("properties", {})}
    shown = {re.split(r"[.\[\]]+", each)[-1] for each in page.ids}
    assert fields - shown == {"msg", "message"}  # of the envelope, and of what only channels are answered


def test_every_link_leads_to_a_place_on_the_page_or_to_another_page_that_is_there(demo, page, http):
    assert len(page.ids) == len({*page.ids})
    elsewhere = {*page.links} - {f"#{each}" for each in page.ids}
    assert elsewhere >= {"/openapi.json", "/console/"}
    assert all(http("GET", path).status == 200 for path in elsewhere - {"/console/"})


def test_it_loads_its_styles_and_nothing_else(page, answer, http):
    assert {each.partition(",")[0] for each in page.loads if each.startswith("data:")} == {"data:image/svg+xml"}
    files = [each for each in page.loads if not each.startswith("data:")]
    assert [file.rsplit("/", 1)[-1] for file in files] == ["pages.css", "docs.css"]
    assert all(http("GET", file).status == 200 for file in files)
    assert "script" not in page.tags
    assert page.inline == []
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self';")


def test_the_examples_of_bodies_and_answers_are_there_whole(page, document):
    shown = [json.loads(text) for text in page.words if text.startswith("{\n")]
    contents = [
        content["application/json"]
        for methods in document["paths"].values()
        for each in methods.values()
        for content in (
            each.get("requestBody", {}).get("content", {}),
            each["responses"].get("200", {}).get("content", {}),
        )
        if "application/json" in content
    ]
    given = [each["value"] for content in contents for each in content.get("examples", {}).values()]
    assert len(given) > 10
    assert [value for value in given if value not in shown] == []


@pytest.mark.parametrize("settings_of_app", [{"api_prefix": "/api/v1", "site_url": "https://pay.example.com"}])
def test_it_has_the_addresses_of_this_installation(page):
    assert {"https://pay.example.com", "/api/v1/merchant/createOrder"} <= {*page.words}


def test_its_frame_is_in_the_reader_s_language(http):
    assert '<html lang="zh-CN">' in http("GET", "/docs", headers={"Accept-Language": "zh"}).text
    assert '<html lang="en">' in http("GET", "/docs", headers={"Accept-Language": "en"}).text
