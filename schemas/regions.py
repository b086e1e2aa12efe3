"""The parameters of the region endpoints (docs/regions.md)."""

from schemas.fields import Request, Text


class CityQuery(Request):
    """The province whose cities are requested."""

    province = Text(required=True)


class DistrictQuery(CityQuery):
    """The city whose districts are requested."""

    city = Text(required=True)
