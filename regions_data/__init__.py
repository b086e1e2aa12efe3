"""The provinces, cities and districts of China, read once from regions.json; `regions_data.make` remakes the file."""

import json
from pathlib import Path
from typing import TypedDict


class City(TypedDict):
    val: str
    items: dict[str, str]  # district name -> code


class Province(TypedDict):
    val: str
    items: dict[str, City]  # by city name


class Place(TypedDict):
    name: str
    code: str


_TREE: dict[str, Province] = json.loads(Path(__file__).with_name("regions.json").read_text(encoding="utf-8"))


def _codes_inside(province: Province) -> frozenset[str]:
    cities = province["items"].values()
    return frozenset(code for city in cities for code in (city["val"], *city["items"].values()))


_CODES_INSIDE = {province["val"]: _codes_inside(province) for province in _TREE.values()}


def tree() -> dict[str, Province]:
    """The whole set, shaped as `regionData` answers it. It is shared by all callers: read it, do not change it."""
    return _TREE


def provinces() -> list[Place]:
    """All provinces, in the order of their codes, as are cities and districts."""
    return [Place(name=name, code=province["val"]) for name, province in _TREE.items()]


def cities(province_name: str) -> list[Place]:
    """The cities of a province; KeyError where its name is not listed exactly so."""
    return [Place(name=name, code=city["val"]) for name, city in _TREE[province_name]["items"].items()]


def districts(province_name: str, city_name: str) -> list[Place]:
    """The districts of a city; KeyError where the province, or this city in it, is not listed exactly so."""
    city = _TREE[province_name]["items"][city_name]
    return [Place(name=name, code=code) for name, code in city["items"].items()]


def province_exists(code: str) -> bool:
    return code in _CODES_INSIDE


def is_inside(area_code: str, province_code: str) -> bool:
    """Whether `area_code` is a city or a district of that province; False too where the province is unknown."""
    return area_code in _CODES_INSIDE.get(province_code, frozenset())
