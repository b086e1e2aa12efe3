"""Create regions.json from the npm package `@vant/area-data` 2.1.0 (MIT licence), corrected by the tables below.

Run `python -m regions_data.make [version]` after a change of the divisions; it needs the `npm` client. This file does
not import the loader, so `python regions_data/make.py` does the same if regions.json is missing or broken.
"""

import argparse
import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "@vant/area-data"
VERSION = "2.1.0"
DATA_FILE = "package/dist/index.js"
TARGET = Path(__file__).with_name("regions.json")

Names = dict[str, str]  # six-digit code -> name

# Entries that mean "the districts of this city" and are not places.
PLACEHOLDERS = {"市辖区"}

# The statistics office gives these endings to development zones, which are not county-level units ...
ZONE_ENDINGS = {*range(71, 80), *range(90, 100)}
# ... but the package numbers the towns of Taiwan with them.
PROVINCES_WITHOUT_ZONES = {"710000"}

# Cities with no county level: the package lists their towns, or only zones. Each gets one district, itself.
UNDIVIDED_CITIES = {
    "441900",  # 东莞市
    "442000",  # 中山市
    "460400",  # 儋州市
    "620200",  # 嘉峪关市
}

# Listed by the package, but not, or no longer, a county-level unit.
DROPPED_DISTRICTS = {
    "232761",  # 加格达奇区, like the next three: governed by 大兴安岭地区 itself, not in the national list
    "232762",  # 松岭区
    "232763",  # 新林区
    "232764",  # 呼中区
    "320112",  # 江北新区, a development zone with the code of a district
    "320611",  # 港闸区, merged into 崇川区
    "321150",  # 镇江新区, a development zone with the code of a district
    "350402",  # 梅列区, merged into 三元区
    "370634",  # 长岛县, merged into 蓬莱区
    "500105",  # 江北区, merged into 两江新区 (below) in November 2025
    "500112",  # 渝北区, likewise
    "632857",  # 大柴旦行政委员会, a committee
}

# Newer than the package.
NEW_DISTRICTS = {"500157": "两江新区"}  # Chongqing, November 2025

# The package shortens the official name for places that a province governs directly; 659000 has its own already.
RENAMED_CITIES = dict.fromkeys(("419000", "429000", "469000"), "省直辖县级行政区划")


def parse(script: str) -> dict[str, Names]:
    """Return the package's three tables by level: `province`, `city`, `county`. Raises ValueError if one is not plain
    data."""
    tables = re.findall(r"(\w+)_list: (\{.*?\})", script, re.DOTALL)
    return {level: json.loads(re.sub(r"(\d{6}):", r'"\1":', table)) for level, table in tables}


def clean(provinces: Names, cities: Names, districts: Names) -> dict[str, Any]:
    """Return the tree of the `regionData` response, in the order of the codes.

    Raises ValueError if two siblings share a name, KeyError if a place is in no listed city or province.
    """
    undivided = {code: cities[code] for code in UNDIVIDED_CITIES & cities.keys()}
    kept = {code: name for code, name in districts.items() if is_district(code, name)}
    tree: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}  # the code of a province or city -> its contents
    for code, name in sorted(provinces.items()):
        inside[code] = {}
        add(tree, name, {"val": code, "items": inside[code]})
    for code, name in sorted(cities.items()):
        inside[code] = {}
        add(inside[province_of(code)], RENAMED_CITIES.get(code, name), {"val": code, "items": inside[code]})
    for code, name in sorted((kept | undivided | NEW_DISTRICTS).items()):
        add(inside[city_of(code)], name, code)
    return tree


def is_district(code: str, name: str) -> bool:
    """Return whether the package's entry is a present county-level unit."""
    is_zone = int(code[4:]) in ZONE_ENDINGS and province_of(code) not in PROVINCES_WITHOUT_ZONES
    is_listed_out = code in DROPPED_DISTRICTS or name in PLACEHOLDERS or city_of(code) in UNDIVIDED_CITIES
    return not (is_zone or is_listed_out)


def province_of(code: str) -> str:
    return code[:2] + "0000"


def city_of(code: str) -> str:
    return code[:4] + "00"


def add(siblings: dict[str, Any], name: str, value: Any) -> None:
    """Add a place. Names are the keys of the response, so a second place of one name would hide the first."""
    if name in siblings:
        raise ValueError(f"two siblings are named {name}: {siblings[name]} and {value}")
    siblings[name] = value


def fetch(version: str) -> str:
    """Return the package's script with the data; npm verifies the download."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--loglevel=error", f"{PACKAGE}@{version}"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        [tarball] = Path(folder).glob("*.tgz")
        with tarfile.open(tarball) as archive:
            archive.extract(DATA_FILE, folder, filter="data")
        return Path(folder, DATA_FILE).read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Remake regions.json from the npm package.")
    parser.add_argument("version", nargs="?", default=VERSION, help=f"of {PACKAGE}, {VERSION} where not given")
    tables = parse(fetch(parser.parse_args().version))
    tree = clean(tables["province"], tables["city"], tables["county"])
    TARGET.write_text(json.dumps(tree, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    main()
