"""The four region endpoints over HTTP: shapes, errors, caching, compression, any origin."""

import gzip
from urllib.parse import urlencode

import pytest

import regions_data

BASE = "/addons/paychannel/channel.gatewaya"
QUERIES = {
    "regionData": {},
    "provinceList": {},
    "cityList": {"province": "广东省"},
    "districtList": {"province": "广东省", "city": "广州市"},
}
EVERY = pytest.mark.parametrize(("operation", "query"), QUERIES.items(), ids=list(QUERIES))


@pytest.fixture
def get(app):
    """`get(operation, query, headers)`: Flask's own response, with its bytes."""
    client = app.test_client()

    def ask(operation, query=None, headers=None, method="GET"):
        return client.open(f"{BASE}/{operation}?{urlencode(query or {})}", method=method, headers=headers)

    return ask


@EVERY
def test_a_response_is_the_envelope_that_any_origin_may_read_and_any_cache_may_store(operation, query, get):
    answer, again = get(operation, query), get(operation, query, {"Origin": "https://shop.example"})
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert list(answer.json) == ["code", "msg", "data"]
    assert (answer.json["code"], answer.json["msg"]) == (1, "success")
    assert (again.data, again.headers["ETag"]) == (answer.data, answer.headers["ETag"])
    assert answer.headers["Access-Control-Allow-Origin"] == again.headers["Access-Control-Allow-Origin"] == "*"
    assert "public" in answer.headers["Cache-Control"]
    assert "max-age=" in answer.headers["Cache-Control"]


def test_a_three_level_selector_finds_every_district_of_the_tree(get):
    def listed(operation, **query):
        places = get(operation, query).json["data"]
        assert places
        assert all(set(place) == {"name", "code"} for place in places)
        return {place["name"]: place["code"] for place in places}

    tree = get("regionData").json["data"]
    assert tree == regions_data.tree()
    assert tree["广东省"]["items"]["广州市"]["items"]["荔湾区"] == "440103"
    provinces = listed("provinceList")
    assert provinces == {name: tree[name]["val"] for name in tree}
    for name in [*provinces][:3]:
        cities = listed("cityList", province=name)
        assert cities == {city: items["val"] for city, items in tree[name]["items"].items()}
        for city in cities:
            assert listed("districtList", province=name, city=city) == tree[name]["items"][city]["items"]
    assert listed("cityList", province="北京市") == {"北京市": "110100"}  # a municipality has a city level


def test_all_missing_names_are_in_one_42200(get):
    for operation, query, missing in (
        ("cityList", {}, {"province"}),
        ("cityList", {"province": ""}, {"province"}),
        ("districtList", {}, {"province", "city"}),
        ("districtList", {"province": "广东省"}, {"city"}),
        ("districtList", {"city": "广州市"}, {"province"}),
        ("districtList", {"province": "广东省", "city": ""}, {"city"}),
    ):
        answer = get(operation, query)
        assert (answer.status_code, answer.json["code"], set(answer.json["data"])) == (422, 42200, missing)
        assert all(messages for messages in answer.json["data"].values())


def test_a_name_that_does_not_match_exactly_is_40402(get):
    for province in ("广东", " 广东省", "440000", "x\x00y"):
        for operation, more in (("cityList", {}), ("districtList", {"city": "广州市"})):
            answer = get(operation, {"province": province} | more)
            assert (answer.status_code, answer.json["code"], answer.json["data"]) == (404, 40402, None)
    for province, city in (("广东省", "广州"), ("北京市", "广州市")):
        assert get("districtList", {"province": province, "city": city}).json["code"] == 40402


@EVERY
def test_gzip_if_the_caller_accepts_it(operation, query, get):
    plain = get(operation, query)
    packed = get(operation, query, {"Accept-Encoding": "br, gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert int(packed.headers["Content-Length"]) == len(packed.data)
    assert packed.headers["ETag"] != plain.headers["ETag"]
    assert all("Accept-Encoding" in answer.headers["Vary"] for answer in (plain, packed))
    for accepted in ("identity", "br", "gzip;q=0", ""):
        answer = get(operation, query, {"Accept-Encoding": accepted})
        assert (answer.data, "Content-Encoding" in answer.headers) == (plain.data, False), accepted


@EVERY
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_matching_etag_is_304_without_a_body(operation, query, encoding, get):
    first = get(operation, query, {"Accept-Encoding": encoding})
    again = get(operation, query, {"Accept-Encoding": encoding, "If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    for name in ("ETag", "Cache-Control", "Vary", "Access-Control-Allow-Origin", "X-Service-Version"):
        assert again.headers[name] == first.headers[name]
    for tag in ('"something else"', 'W/"x"', "nonsense"):
        assert get(operation, query, {"Accept-Encoding": encoding, "If-None-Match": tag}).status_code == 200


def test_any_origin_may_read_an_error_and_no_cache_stores_it(get):
    for query in ({}, {"province": "nowhere"}):
        headers = get("cityList", query).headers
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "public" not in headers.get("Cache-Control", "")


def test_the_message_is_in_the_callers_language_and_each_language_has_a_tag_of_its_own(get):
    english, chinese = ("success", "region not found"), ("成功", "地区不存在")
    tags = {}
    for language, expected in (("en-GB", english), ("zh-CN,zh;q=0.9", chinese), ("fr", english)):
        headers = {"Accept-Language": language}
        answer, refused = get("provinceList", headers=headers), get("cityList", {"province": "nowhere"}, headers)
        assert (answer.json["msg"], refused.json["msg"]) == expected
        assert "Accept-Language" in answer.headers["Vary"]
        tags[expected] = answer.headers["ETag"]
    assert tags[english] != tags[chinese]


@EVERY
def test_other_methods_are_40500(operation, query, get):
    for method in ("POST", "PUT", "DELETE"):
        answer = get(operation, query, method=method)
        assert (answer.status_code, answer.json["code"]) == (405, 40500)
        assert "GET" in answer.headers["Allow"]


def test_head_is_the_headers_of_get(get):
    head, whole = get("regionData", method="HEAD"), get("regionData")
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["ETag"] == whole.headers["ETag"]
    assert int(head.headers["Content-Length"]) == len(whole.data)
