"""A number that rises with every change of merchants, channels and what belongs to them, in any process."""

from typing import Any

from peewee import IntegerField

from models.db.base import Table
from models.db.compiled import compiled
from models.db.writer import transaction
from models.tables.channel import Channel, ChannelHealth, ChannelLink, ChannelMember
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant, PaymentPage


class SetupVersion(Table):
    """One row, raised by triggers."""

    number = IntegerField()

    class Meta:
        table_name = "revision"


_TABLES = (Merchant, Channel, ChannelLink, EpayAccount, PaymentPage, ChannelMember, ChannelHealth)
OF_TABLES = tuple(table._meta.table_name for table in _TABLES)
REVISED = tuple(
    f'CREATE TRIGGER {name}_{verb.lower()}_revised AFTER {verb} ON "{name}" '
    "BEGIN UPDATE revision SET number = number + 1; END"
    for name in OF_TABLES
    for verb in ("INSERT", "UPDATE", "DELETE")
)


@compiled
def _number() -> Any:
    return SetupVersion.select(SetupVersion.number)


@transaction
def raise_version() -> None:
    """Write the unchanged number, to find out whether the database can be written."""
    SetupVersion.update(number=SetupVersion.number).execute()


def current_version() -> int:
    """Return the current number."""
    return int(_number.first().number)
