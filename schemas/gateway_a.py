"""The additional fields of a gateway_a withdrawal: personal data and the settlement card (docs/orders.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

import regions_data
from schemas.fields import MaxLength, OneOf, Request, Text, filled
from schemas.messages import N_

LONG_TERM, DATED = "1", "0"
CARD_TYPES = ("0", "1", "2", "4")


def date(text: str) -> None:
    """Validate that a text is an existing day, written as YYYYMMDD."""
    try:
        valid = len(text) == 8 and text.isascii() and text.isdigit() and datetime.strptime(text, "%Y%m%d")
    except ValueError:
        valid = False
    if not valid:
        raise ValidationError(N_("Must be a date, YYYYMMDD."))


class PersonalData(Request):
    """`gatewaya_personal_data`."""

    name = Text(required=True, validate=filled(100))
    cert_type = Text(required=True, validate=validate.Regexp(r"[0-9]{2}\Z", error=N_("Must be two digits.")))
    cert_no = Text(required=True, validate=filled(64))
    cert_validity_type = Text(required=True, validate=OneOf([DATED, LONG_TERM]))
    cert_begin_date = Text(required=True, validate=date)
    cert_end_date = Text(validate=date)
    mobile_no = Text(required=True, validate=validate.Regexp(r"\+?[0-9-]{5,20}\Z", error=N_("Must be a phone number.")))
    email = Text(validate=[MaxLength(254), validate.Email()])
    address = Text(validate=MaxLength(255))

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def end_of_a_dated_certificate(self, data: dict[str, Any], sent: dict[str, Any], **kwargs: Any) -> None:
        """Require the end date of a certificate that is not valid permanently."""
        end = data.get("cert_end_date")
        if data.get("cert_validity_type") == DATED and not sent.get("cert_end_date"):
            raise ValidationError(N_("Required when cert_validity_type is 0."), "cert_end_date")
        if end is not None and end < data.get("cert_begin_date", ""):
            raise ValidationError(N_("Must not be before cert_begin_date."), "cert_end_date")


class CardInfo(Request):
    """`gatewaya_card_info`. The certificate's fields are taken from the personal data."""

    card_type = Text(required=True, validate=OneOf(CARD_TYPES))
    card_name = Text(required=True, validate=filled(100))
    card_no = Text(required=True, validate=validate.Regexp(r"[0-9]{8,32}\Z", error=N_("Must be 8 to 32 digits.")))
    prov_id = Text(required=True)
    area_id = Text(required=True)

    @validates_schema(skip_on_field_errors=False)
    def place_is_known(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Require a province in the region data, and a city or district in it as the area."""
        province, area = data.get("prov_id"), data.get("area_id")
        if province is not None and not regions_data.province_exists(province):
            raise ValidationError(N_("Must be a province code from provinceList."), "prov_id")
        if province is not None and area is not None and not regions_data.is_inside(area, province):
            raise ValidationError(N_("Must be a city or district code in the province prov_id."), "area_id")


class GatewayAFields(Request):
    """The two objects, for the schema of a withdrawal to inherit."""

    gatewaya_personal_data = fields.Nested(PersonalData, required=True)
    gatewaya_card_info = fields.Nested(CardInfo, required=True)
