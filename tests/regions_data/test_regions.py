"""Guarantees of the region data for callers, and the correction of the package's tables."""

import json

import pytest

import regions_data
from regions_data import make


def all_cities():
    return [city for province in regions_data.tree().values() for city in province["items"].values()]


def names(places):
    return [place["name"] for place in places]


def test_there_are_34_provinces_369_cities_and_3266_districts_and_each_city_has_one():
    assert len(regions_data.provinces()) == 34
    assert len(all_cities()) == 369
    assert sum(len(city["items"]) for city in all_cities()) == 3266
    assert all(city["items"] for city in all_cities())


def test_no_two_siblings_share_a_name():
    def unique(pairs):
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)

    json.loads(make.TARGET.read_text(encoding="utf-8"), object_pairs_hook=unique)


def test_a_municipality_has_a_city_level_and_the_districts_of_november_2025():
    assert {"name": "北京市", "code": "110000"} in regions_data.provinces()
    assert regions_data.cities("北京市") == [{"name": "北京市", "code": "110100"}]
    assert {"name": "东城区", "code": "110101"} in regions_data.districts("北京市", "北京市")
    assert names(regions_data.cities("重庆市")) == ["重庆市", "县"]
    districts = regions_data.districts("重庆市", "重庆市")
    assert {"name": "两江新区", "code": "500157"} in districts
    assert not {"江北区", "渝北区"} & set(names(districts))


def test_a_city_without_districts_has_itself_and_places_of_a_province_have_their_official_name():
    for province, city, code in (
        ("广东省", "东莞市", "441900"),
        ("广东省", "中山市", "442000"),
        ("海南省", "儋州市", "460400"),
        ("甘肃省", "嘉峪关市", "620200"),
    ):
        assert regions_data.districts(province, city) == [{"name": city, "code": code}]
    assert {"name": "仙桃市", "code": "429004"} in regions_data.districts("湖北省", "省直辖县级行政区划")


def test_a_name_that_is_not_listed_is_a_key_error():
    for look_up, *place in (
        (regions_data.cities, "北京"),
        (regions_data.districts, "北京", "北京市"),
        (regions_data.districts, "北京市", "广州市"),
    ):
        with pytest.raises(KeyError):
            look_up(*place)


def test_only_listed_places_are_inside_their_province_which_exists_by_its_code():
    assert regions_data.province_exists("440000")
    assert not any(map(regions_data.province_exists, ["440100", "广东省", "990000", ""]))
    for area in ("440100", "440103"):
        assert regions_data.is_inside(area, "440000")
        assert not any(regions_data.is_inside(area, province) for province in ("110000", "990000"))
    assert not any(regions_data.is_inside(area, "440000") for area in ("440000", "441901", "449999", ""))
    assert not regions_data.is_inside("500105", "500000")


SCRIPT = r"""const areaList = {
    province_list: { 500000: "\u91CD\u5E86\u5E02", 440000: "广东省", 420000: "湖北省", 710000: "台湾省" },
    city_list: { 500100: "重庆市", 440100: "广州市", 441900: "东莞市", 429000: "省直辖县", 710100: "台北市" },
    county_list: {
        500105: "江北区", 500103: "渝中区", 440100: "市辖区", 440103: "荔湾区", 440171: "开发区",
        441901: "中堂镇", 429004: "仙桃市", 710199: "其它区"
    }
};"""


def test_the_package_is_cleaned_by_the_tables():
    tables = make.parse(SCRIPT)
    tree = make.clean(tables["province"], tables["city"], tables["county"])

    assert list(tree) == ["湖北省", "广东省", "重庆市", "台湾省"]
    found = {name: city["items"] for province in tree.values() for name, city in province["items"].items()}
    assert found == {
        "省直辖县级行政区划": {"仙桃市": "429004"},
        "广州市": {"荔湾区": "440103"},
        "东莞市": {"东莞市": "441900"},
        "重庆市": {"渝中区": "500103", "两江新区": "500157"},
        "台北市": {"其它区": "710199"},
    }


def test_a_second_sibling_of_the_same_name_stops_the_cleaning():
    with pytest.raises(ValueError, match="广东省"):
        make.clean({"440000": "广东省", "450000": "广东省"}, {}, {})
