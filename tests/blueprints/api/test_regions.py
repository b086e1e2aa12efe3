"""The four region endpoints over HTTP: shapes, errors, caching, compression, any origin."""

import gzip
import json
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
def test_a_response_is_the_envelope_without_a_time(operation, query, get):
    answer = get(operation, query)
    assert answer.status_code == 200
    assert answer.mimetype == "application/json"
    assert list(answer.json) == ["code", "msg", "data"]
    assert (answer.json["code"], answer.json["msg"]) == (1, "success")


@pytest.mark.parametrize("operation", ["provinceList", "cityList", "districtList"])
def test_a_list_is_of_names_and_codes_as_texts(operation, get):
    data = get(operation, QUERIES[operation]).json["data"]
    assert data
    assert all(set(place) == {"name", "code"} for place in data)
    assert all(isinstance(text, str) for place in data for text in place.values())


def test_the_tree_is_keyed_by_name_and_ends_in_codes(get):
    tree = get("regionData").json["data"]
    assert len(tree) == 34
    for province in tree.values():
        assert set(province) == {"val", "items"}
        for city in province["items"].values():
            assert set(city) == {"val", "items"}
            assert all(len(code) == 6 and code.isdigit() for code in city["items"].values())
    assert tree == regions_data.tree()
    assert tree["广东省"]["items"]["广州市"]["items"]["荔湾区"] == "440103"


def test_a_three_level_selector_finds_every_district_of_the_tree(get):
    tree = get("regionData").json["data"]
    provinces = get("provinceList").json["data"]
    assert {place["name"]: place["code"] for place in provinces} == {name: tree[name]["val"] for name in tree}
    for province in provinces[:3]:
        name = province["name"]
        for city in get("cityList", {"province": name}).json["data"]:
            assert tree[name]["items"][city["name"]]["val"] == city["code"]
            districts = get("districtList", {"province": name, "city": city["name"]}).json["data"]
            assert tree[name]["items"][city["name"]]["items"] == {place["name"]: place["code"] for place in districts}


def test_a_municipality_has_a_city_level_of_its_own(get):
    assert get("cityList", {"province": "北京市"}).json["data"] == [{"name": "北京市", "code": "110100"}]
    districts = get("districtList", {"province": "北京市", "city": "北京市"}).json["data"]
    assert {"name": "东城区", "code": "110101"} in districts


@pytest.mark.parametrize(
    ("operation", "query", "missing"),
    [
        ("cityList", {}, {"province"}),
        ("cityList", {"province": ""}, {"province"}),
        ("districtList", {}, {"province", "city"}),
        ("districtList", {"province": "广东省"}, {"city"}),
        ("districtList", {"city": "广州市"}, {"province"}),
        ("districtList", {"province": "广东省", "city": ""}, {"city"}),
    ],
)
def test_all_missing_names_are_in_one_42200(operation, query, missing, get):
    answer = get(operation, query)
    assert (answer.status_code, answer.json["code"]) == (422, 42200)
    assert set(answer.json["data"]) == missing
    assert all(messages for messages in answer.json["data"].values())


@pytest.mark.parametrize(
    ("operation", "query"),
    [
        ("cityList", {"province": "广东"}),
        ("cityList", {"province": " 广东省"}),
        ("cityList", {"province": "440000"}),
        ("cityList", {"province": "x\x00y"}),
        ("districtList", {"province": "广东", "city": "广州市"}),
        ("districtList", {"province": "广东省", "city": "广州"}),
        ("districtList", {"province": "北京市", "city": "广州市"}),
    ],
)
def test_a_name_that_does_not_match_exactly_is_40402(operation, query, get):
    answer = get(operation, query)
    assert (answer.status_code, answer.json["code"], answer.json["data"]) == (404, 40402, None)


@EVERY
def test_the_same_request_gets_the_same_bytes(operation, query, get):
    first, second = get(operation, query), get(operation, query)
    assert first.data == second.data
    assert first.headers["ETag"] == second.headers["ETag"]


@EVERY
def test_gzip_if_the_caller_accepts_it(operation, query, get):
    plain = get(operation, query)
    packed = get(operation, query, {"Accept-Encoding": "br, gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert int(packed.headers["Content-Length"]) == len(packed.data)
    assert packed.headers["ETag"] != plain.headers["ETag"]
    assert all("Accept-Encoding" in answer.headers["Vary"] for answer in (plain, packed))


@pytest.mark.parametrize("accepted", ["identity", "br", "gzip;q=0", ""])
def test_plain_if_the_caller_does_not_accept_gzip(accepted, get):
    answer = get("provinceList", headers={"Accept-Encoding": accepted})
    assert "Content-Encoding" not in answer.headers
    assert json.loads(answer.data)["code"] == 1


@EVERY
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_matching_etag_is_304_without_a_body(operation, query, encoding, get):
    first = get(operation, query, {"Accept-Encoding": encoding})
    again = get(operation, query, {"Accept-Encoding": encoding, "If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    for name in ("ETag", "Cache-Control", "Vary", "Access-Control-Allow-Origin", "X-Service-Version"):
        assert again.headers[name] == first.headers[name]


@pytest.mark.parametrize("tag", ['"something else"', 'W/"x"', "nonsense"])
def test_another_etag_gets_the_whole_response(tag, get):
    assert get("provinceList", headers={"If-None-Match": tag}).status_code == 200


@EVERY
def test_any_origin_may_read_it_and_any_cache_may_store_it(operation, query, get):
    headers = get(operation, query, {"Origin": "https://shop.example"}).headers
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "public" in headers["Cache-Control"]
    assert "max-age=" in headers["Cache-Control"]


@pytest.mark.parametrize("query", [{}, {"province": "nowhere"}])
def test_any_origin_may_read_an_error_and_no_cache_stores_it(query, get):
    headers = get("cityList", query).headers
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "public" not in headers.get("Cache-Control", "")


@pytest.mark.parametrize(
    ("language", "success", "not_found"),
    [
        ("en-GB", "success", "region not found"),
        ("zh-CN,zh;q=0.9", "成功", "地区不存在"),
        ("fr", "success", "region not found"),
    ],
)
def test_the_message_is_in_the_callers_language(language, success, not_found, get):
    headers = {"Accept-Language": language}
    answer = get("provinceList", headers=headers)
    assert answer.json["msg"] == success
    assert "Accept-Language" in answer.headers["Vary"]
    assert get("cityList", {"province": "nowhere"}, headers).json["msg"] == not_found


def test_each_language_has_a_tag_of_its_own(get):
    tags = {get("provinceList", headers={"Accept-Language": language}).headers["ETag"] for language in ("en", "zh")}
    assert len(tags) == 2


@EVERY
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_40500(operation, query, method, get):
    answer = get(operation, query, method=method)
    assert (answer.status_code, answer.json["code"]) == (405, 40500)
    assert "GET" in answer.headers["Allow"]


def test_head_is_the_headers_of_get(get):
    head, whole = get("regionData", method="HEAD"), get("regionData")
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["ETag"] == whole.headers["ETag"]
    assert int(head.headers["Content-Length"]) == len(whole.data)
