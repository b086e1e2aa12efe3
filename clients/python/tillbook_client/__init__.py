"""Client of Tillbook: signed calls, safe retries, verified callbacks.

Names and units are those of the service's documentation: a `Decimal` is in yuan or percent, an `int` in fen or basis
points, a time in Unix seconds.
"""

from tillbook_client.answers import (
    Account,
    Balance,
    BuyOrder,
    Channel,
    Order,
    OrderPage,
    Refund,
    RefundPage,
    Region,
    SellOrder,
    Statement,
    StatementDay,
    StatementLine,
)
from tillbook_client.callbacks import BadSignature, Event, Return, verify, verify_return
from tillbook_client.client import Client
from tillbook_client.details import CardInfo, PersonalData
from tillbook_client.errors import (
    BadRequest,
    ChannelRefused,
    InsufficientBalance,
    Invalid,
    KeyReused,
    NoPayoutAccount,
    NotAuthorized,
    NotFound,
    NotRefundable,
    OrdersError,
    OutcomeUnknown,
    Refused,
    TooManyRequests,
)
from tillbook_client.money import fen, yuan
from tillbook_client.retrying import Retry

__all__ = [
    "Account",
    "BadRequest",
    "BadSignature",
    "Balance",
    "BuyOrder",
    "CardInfo",
    "Channel",
    "ChannelRefused",
    "Client",
    "Event",
    "InsufficientBalance",
    "Invalid",
    "KeyReused",
    "NoPayoutAccount",
    "NotAuthorized",
    "NotFound",
    "NotRefundable",
    "Order",
    "OrderPage",
    "OrdersError",
    "OutcomeUnknown",
    "PersonalData",
    "Refund",
    "RefundPage",
    "Refused",
    "Region",
    "Retry",
    "Return",
    "SellOrder",
    "Statement",
    "StatementDay",
    "StatementLine",
    "TooManyRequests",
    "fen",
    "verify",
    "verify_return",
    "yuan",
]
