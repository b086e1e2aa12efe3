"""What a withdrawal through a channel of the category `gateway_a` carries besides; rules in docs/orders.md."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PersonalData:
    """The person who is paid. Numbers are left out of `repr`, so that they stand in no log."""

    name: str
    cert_no: str = field(repr=False)
    cert_begin_date: str  # YYYYMMDD
    mobile_no: str = field(repr=False)
    cert_type: str = "00"  # identity card
    cert_validity_type: str  # "1" long-term, "0" until cert_end_date
    cert_end_date: str = ""
    email: str = field(default="", repr=False)
    address: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class CardInfo:
    """The card that is paid to; its certificate is that of `PersonalData`."""

    card_type: str  # "0" corporate, "1" legal person, "2" other individual, "4" corporate, holder named differently
    card_name: str
    card_no: str = field(repr=False)
    prov_id: str  # `code` of `Client.provinces()`
    area_id: str  # `code` of `Client.cities()` or `Client.districts()` in that province
