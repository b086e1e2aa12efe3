"""The driver of a group of channels: it makes no calls, because each deposit belongs to a member of the group."""

from __future__ import annotations

from collections.abc import Sequence

from marshmallow import Schema, fields, validate

from gateways.base import Driver, Finding, Payment
from gateways.config import texts
from runtime.texts import N_


class GroupConfig(Schema):
    """`mode`: how the group chooses a member for each deposit."""

    mode = fields.String(
        load_default="priority",
        validate=validate.OneOf(("priority", "weight"), (N_("By priority"), N_("By weight"))),
        metadata=texts(
            N_("Mode"),
            N_(
                "priority: the first member that can take the deposit gets it. weight: the members share the deposits "
                "by their weights."
            ),
        ),
    )


class GroupDriver(Driver):
    """A group of channels for deposits. The services choose a member, and call the member's driver."""

    name = "group"
    title = N_("Channel group")
    about = N_("Several channels with one ID. If one of them cannot take a deposit, the next one does. No withdrawals.")
    config_schema = GroupConfig

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        return [Finding("keys", None, N_("A channel group makes no calls. Test its members."))]
