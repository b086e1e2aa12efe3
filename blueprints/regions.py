"""Region look-ups (docs/regions.md): answers made once and served from memory, to any origin."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flask import Blueprint, Response, request
from flask_babel import get_locale
from marshmallow import EXCLUDE

import regions_data
from blueprints.envelope import ok
from schemas.regions import CityQuery, DistrictQuery
from services.errors import Refused

regions = Blueprint("regions", __name__, url_prefix="/addons/paychannel/channel.gatewaya")

ONE_DAY = 86_400
# A cache-buster or a tracker's parameter does no harm here.
_city_query, _district_query = CityQuery(unknown=EXCLUDE), DistrictQuery(unknown=EXCLUDE)


@dataclass(frozen=True)
class Prepared:
    """One answer, plain and compressed, with the tag of each."""

    plain: bytes
    packed: bytes
    tag: str


# `language` is part of the key, for the envelope's text is in it.
@lru_cache(maxsize=2048)
def _prepare(language: str, look_up: Any, names: tuple[str, ...]) -> Prepared:
    try:
        body = ok(look_up(*names)).get_data()
    except KeyError:
        raise Refused(40402) from None
    return Prepared(body, gzip.compress(body, 9, mtime=0), hashlib.sha256(body).hexdigest()[:32])


def _answer(look_up: Any, *names: str) -> Response:
    prepared = _prepare(str(get_locale()), look_up, names)
    packed = request.accept_encodings["gzip"] > 0
    response = Response(prepared.packed if packed else prepared.plain, mimetype="application/json")
    if packed:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Cache-Control"] = f"public, max-age={ONE_DAY}"
    response.headers["Vary"] = "Accept-Encoding, Accept-Language"
    response.set_etag(prepared.tag + ("-gzip" if packed else ""))
    return response.make_conditional(request)


@regions.after_request
def _any_origin(response: Response) -> Response:
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response


@regions.get("/regionData")
def region_data() -> Response:
    """The full tree."""
    return _answer(regions_data.tree)


@regions.get("/provinceList")
def province_list() -> Response:
    """All provinces."""
    return _answer(regions_data.provinces)


@regions.get("/cityList")
def city_list() -> Response:
    """One province's cities."""
    query = _city_query.load(request.args.to_dict())
    return _answer(regions_data.cities, query["province"])


@regions.get("/districtList")
def district_list() -> Response:
    """One city's districts."""
    query = _district_query.load(request.args.to_dict())
    return _answer(regions_data.districts, query["province"], query["city"])
