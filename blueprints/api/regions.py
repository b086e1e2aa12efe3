"""Region look-ups (docs/regions.md): responses are cached in memory and available to any origin."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from babel import Locale
from flask import Blueprint, Response, request
from marshmallow import EXCLUDE
from werkzeug.http import parse_accept_header

import regions_data
from blueprints.api.envelope import language, ok
from schemas.queries import CityQuery, DistrictQuery
from services.errors import ApiError, Code

regions = Blueprint("regions", __name__, url_prefix="/addons/paychannel/channel.gatewaya")

ONE_DAY = 86_400
# Unknown parameters are ignored: cache busters and trackers add their own.
_city_query, _district_query = CityQuery(unknown=EXCLUDE), DistrictQuery(unknown=EXCLUDE)


@dataclass(frozen=True)
class Prepared:
    """A response in one encoding: body, headers and ETag."""

    body: bytes
    headers: list[tuple[str, str]]
    tag: str


# `language` is part of the cache key because the envelope has a translated text.
@lru_cache(maxsize=2048)
def _prepare(language: Locale, packed: bool, look_up: Any, names: tuple[str, ...]) -> Prepared:
    try:
        body = ok(look_up(*names)).get_data()
    except KeyError:
        raise ApiError(Code.REGION_NOT_FOUND) from None
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}{"-gzip" if packed else ""}"'
    headers = [
        ("Content-Type", "application/json"),
        ("Cache-Control", f"public, max-age={ONE_DAY}"),
        ("Vary", "Accept-Encoding, Accept-Language"),
        ("ETag", tag),
    ]
    if not packed:
        return Prepared(body, headers, tag)
    return Prepared(gzip.compress(body, 9, mtime=0), [*headers, ("Content-Encoding", "gzip")], tag)


@lru_cache(maxsize=256)
def _takes_gzip(accept_encoding: str) -> bool:
    return parse_accept_header(accept_encoding)["gzip"] > 0


def _answer(look_up: Any, *names: str) -> Response:
    headers = request.headers
    packed = _takes_gzip(headers.get("Accept-Encoding", ""))
    prepared = _prepare(language(), packed, look_up, names)
    known = headers.get("If-None-Match")
    if known == prepared.tag:  # the form that browsers send; Werkzeug's comparison takes twice as long
        return Response(status=304, headers=prepared.headers[1:])
    response = Response(prepared.body, headers=prepared.headers)
    if known:
        response.make_conditional(request)
    return response


@regions.after_request
def _any_origin(response: Response) -> Response:
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response


@regions.get("/regionData")
def region_data() -> Response:
    """Return all provinces with their cities and districts."""
    return _answer(regions_data.tree)


@regions.get("/provinceList")
def province_list() -> Response:
    """Return all provinces."""
    return _answer(regions_data.provinces)


@regions.get("/cityList")
def city_list() -> Response:
    """Return the cities of a province."""
    query = _city_query.load(request.args.to_dict())
    return _answer(regions_data.cities, query["province"])


@regions.get("/districtList")
def district_list() -> Response:
    """Return the districts of a city."""
    query = _district_query.load(request.args.to_dict())
    return _answer(regions_data.districts, query["province"], query["city"])
