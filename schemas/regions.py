"""The parameters of the region endpoints (docs/regions.md)."""

from schemas.fields import Request, Text


class CityQuery(Request):
    """Which province's cities."""

    province = Text(required=True)


class DistrictQuery(CityQuery):
    """Which city's districts."""

    city = Text(required=True)
