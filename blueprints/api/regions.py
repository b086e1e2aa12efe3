"""Region look-ups (docs/regions.md): answers made once and served from memory, to any origin."""

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
from schemas.regions import CityQuery, DistrictQuery
from services.errors import ApiError, Code

regions = Blueprint("regions", __name__, url_prefix="/addons/paychannel/channel.gatewaya")

ONE_DAY = 86_400
# A cache-buster or a tracker's parameter does no harm here.
_city_query, _district_query = CityQuery(unknown=EXCLUDE), DistrictQuery(unknown=EXCLUDE)


@dataclass(frozen=True)
class Prepared:
    """One answer in one encoding: its bytes and all its headers."""

    body: bytes
    headers: list[tuple[str, str]]
    tag: str


# `language` is part of the key, for the envelope's text is in it.
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
    if known == prepared.tag:  # as browsers send it; Werkzeug takes twice as long to see that
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
