"""The demo content: the same merchants, channels and balances every time."""

from __future__ import annotations

from typing import Any

from models.db.base import database
from models.db.writer import transaction
from models.tables.channel import LARGEST_AMOUNT, Channel
from models.tables.merchant import AUTOMATIC, Merchant, PaymentPage
from models.tables.operator import ADMINISTRATOR, VIEWER, Operator
from services.channels import channel_setup
from services.errors import OperatorError
from services.ledger import accounts
from services.merchants import links, merchant_setup
from services.security import operators

START = 1_767_196_800  # 2026-01-01 00:00 in China
DEMO_BALANCE = 1_000_000  # fen
INBOX = "/sandbox/inbox"
PAGE = {"return_url": "/sandbox/return", "new_order_url": "/", "contact": "help@shop.example"}

REFUNDS: dict[str, Any] = {"refund_mode": AUTOMATIC, "refund_auto_max": LARGEST_AMOUNT}
MERCHANTS: tuple[dict[str, Any], ...] = (
    {"key": "demo", "name": "Demo Shop 演示商户", "secret": "demo-secret", "buy_rate": 60, "sell_rate": 30},
    {"key": "other", "name": "Other Shop 另一商户", "secret": "other-secret", "buy_rate": 80, "sell_rate": 50},
)
CALLBACK_SECRETS = {
    "demo": "whsec_ZGVtby1jYWxsYmFjay1zZWNyZXQtMDAwMDAwMDAwMDA=",
    "other": "whsec_b3RoZXItY2FsbGJhY2stc2VjcmV0LTAwMDAwMDAwMDA=",
}
ALL = "wxpay,alipay,bank"
COSTS = {"wxpay": 60, "alipay": 55}
CHANNELS: tuple[dict[str, Any], ...] = (
    {"category": "gateway_a", "driver": "sandbox", "name": "Sandbox A", "passage_rate": 10, "cost_rates": COSTS},
    {"category": "gateway_b", "driver": "sandbox", "name": "Sandbox B", "pay_method": ALL, "passage_rate": -10},
    {"category": "gateway_c", "driver": "manual", "name": "Manual C", "pay_method": ALL, "commission_rate": 5},
    {
        "category": "gateway_b",
        "driver": "sandbox",
        "name": "Sandbox D",
        "pay_method": "alipay",
        "cost_rates": {"alipay": 55},
    },
)
CONFIGS = {
    "sandbox": {"secret": "sandbox-notice-secret"},
    "manual": {
        "payee": "Demo Shop Ltd.",
        "bank": "Demo Bank",
        "account": "6222 0200 0000 0000 001",
        "note": "{order_no}",
        "qr_wxpay": "wxp://f2f0-demo-shop",
    },
}
LINKS = {"demo": (1, 2, 3), "other": (2, 4)}
OPERATORS = (("demo", "demo-password", ADMINISTRATOR), ("viewer", "viewer-password", VIEWER))
ACCOUNT: dict[str, Any] = {
    "bank": "Demo Bank",
    "sub_bank": "Main Street",
    "card_number": "6222020000000000017",
    "real_name": "张三",
}


@transaction
def seed_operators() -> None:
    """Create the console's demo accounts if it has none."""
    database.advisory_lock("seeding")
    # Hashing the passwords takes half a second in the transaction, but only in a new database.
    if not Operator.select().exists():
        for name, password, role in OPERATORS:
            operators.seed(name, password, role, at=START)


@transaction
def seed_base() -> bool:
    """Create the demo merchants and channels in an empty database; return False if they exist.

    Raises:
        OperatorError: the database has real merchants.
    """
    database.advisory_lock("seeding")
    if Merchant.any_demo():
        return False
    if Merchant.select().exists() or Channel.select().exists():
        raise OperatorError("the database has merchants or channels of your own: demo content needs an empty database")
    stamps: dict[str, Any] = {"createtime": START, "updatetime": START}
    for facts in MERCHANTS:
        facts = facts | REFUNDS | {"callback_secret": CALLBACK_SECRETS[facts["key"]]}
        made, _ = merchant_setup.add_merchant(**facts, **stamps, demo=True, callback_url=INBOX)
        PaymentPage.create(merchant=made, updatetime=START, **PAGE)
    for facts in CHANNELS:
        channel_setup.add_channel(**facts, config=CONFIGS[facts["driver"]], **stamps)
    for key, ids in LINKS.items():
        for channel_id in ids:
            links.link(Channel.get_by_id(channel_id), merchant_setup.find_merchant(key))
    demo = merchant_setup.find_merchant("demo")
    merchant_setup.add_account(demo, **ACCOUNT, createtime=START)
    accounts.adjust(demo, DEMO_BALANCE, "demo balance", channel=Channel.get_by_id(1), who="seed", at=START)
    return True
