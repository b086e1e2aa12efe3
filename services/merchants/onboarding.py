"""The steps from a new merchant to its first order."""

from __future__ import annotations

from models.tables.channel import ChannelLink
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from models.tables.operator import AuditEntry
from models.tables.order import Order


def steps(merchant: Merchant) -> dict[str, bool]:
    """Return each step, in order, and whether it is done: secrets, callback_url, link, test, order.

    A shop with an epay plug-in needs no callback URL, because it gets notices instead.
    """
    by_plugin = EpayAccount.select().where(EpayAccount.merchant == merchant, EpayAccount.enabled).exists()
    own = (AuditEntry.about == "merchant") & (AuditEntry.key == merchant.key)
    return {
        "secrets": True,
        "callback_url": bool(merchant.callback_url) or by_plugin,
        "link": ChannelLink.select().where(ChannelLink.merchant == merchant).exists(),
        "test": (by_plugin and not merchant.callback_url)
        or AuditEntry.select().where(own, AuditEntry.action == "test callback").exists(),
        "order": Order.select().where(Order.merchant == merchant).exists(),
    }
