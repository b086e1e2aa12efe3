"""The provinces, cities and districts of China, read once from regions.json, which `regions_data.make` creates."""

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
    """Return the whole set in the shape of `regionData`'s response. All callers share it, so do not change it."""
    return _TREE


def provinces() -> list[Place]:
    """Return all provinces, in the order of their codes; cities and districts have the same order."""
    return [Place(name=name, code=province["val"]) for name, province in _TREE.items()]


def cities(province_name: str) -> list[Place]:
    """Return the cities of a province. Raises KeyError for an unknown name."""
    return [Place(name=name, code=city["val"]) for name, city in _TREE[province_name]["items"].items()]


def districts(province_name: str, city_name: str) -> list[Place]:
    """Return the districts of a city. Raises KeyError for an unknown province, or a city that is not in it."""
    city = _TREE[province_name]["items"][city_name]
    return [Place(name=name, code=code) for name, code in city["items"].items()]


def province_exists(code: str) -> bool:
    return code in _CODES_INSIDE


def is_inside(area_code: str, province_code: str) -> bool:
    """Return whether `area_code` is a city or a district of that province; False for an unknown province."""
    return area_code in _CODES_INSIDE.get(province_code, frozenset())
