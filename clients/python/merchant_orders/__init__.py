"""Client of the merchant order service: signed calls, safe retries, verified callbacks.

Names and units are those of the service's documentation: a `Decimal` is in yuan or percent, an `int` in fen or basis
points, a time in Unix seconds.
"""

from merchant_orders.answers import Account, BuyOrder, Channel, Order, OrderPage, Region, SellOrder
from merchant_orders.callbacks import BadSignature, Event, Return, verify, verify_return
from merchant_orders.client import Client
from merchant_orders.details import CardInfo, PersonalData
from merchant_orders.errors import (
    BadRequest,
    ChannelRefused,
    InsufficientBalance,
    Invalid,
    KeyReused,
    NoPayoutAccount,
    NotAuthorized,
    NotFound,
    OrdersError,
    OutcomeUnknown,
    Refused,
    TooManyRequests,
)
from merchant_orders.money import fen, yuan
from merchant_orders.retrying import Retry

__all__ = [
    "Account",
    "BadRequest",
    "BadSignature",
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
    "Order",
    "OrderPage",
    "OrdersError",
    "OutcomeUnknown",
    "PersonalData",
    "Refused",
    "Region",
    "Retry",
    "Return",
    "SellOrder",
    "TooManyRequests",
    "fen",
    "verify",
    "verify_return",
    "yuan",
]
