"""Additional data of withdrawals through channels of the category `gateway_a`; rules in docs/orders.md."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PersonalData:
    """The payee. `repr` omits numbers, so that logs do not show them."""

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
    """The payee's card; its certificate is that of `PersonalData`."""

    card_type: str  # "0" corporate, "1" legal person, "2" other individual, "4" corporate, holder named differently
    card_name: str
    card_no: str = field(repr=False)
    prov_id: str  # `code` of `Client.provinces()`
    area_id: str  # `code` of `Client.cities()` or `Client.districts()` in that province
