"""An order's fees: pure arithmetic in fen and basis points, rounded half up."""

from __future__ import annotations

from dataclasses import dataclass

from models.tables.channel import Channel
from models.tables.merchant import Merchant


def apply_rate(fen: int, basis_points: int) -> int:
    """Return `basis_points` of `fen`, rounded half up (away from zero for a rebate)."""
    product = fen * abs(basis_points)
    rounded = (product + 5_000) // 10_000
    return rounded if basis_points >= 0 else -rounded


def cost_of(fen: int, basis_points: int) -> int:
    """Return what a channel is expected to keep of a deposit: never all of it, so that the channel owes the rest."""
    return min(apply_rate(fen, basis_points), fen - 1)


@dataclass(frozen=True)
class Quote:
    """The rates (basis points) and amounts (fen) that are stored on an order when it is created."""

    amount: int
    service_rate: int
    service_amount: int
    merchant_actual_amount: int
    deposit_amount: int
    passage_rate: int = 0
    passage_amount: int = 0
    deposit_rate: int = 0
    channel_amount: int = 0
    cost_amount: int = 0


def quote_buy(amount: int, merchant: Merchant, channel: Channel, method: str) -> Quote:
    """Quote a deposit: the merchant is credited the amount less the service fee; the operator bears the cost."""
    fee, cost = apply_rate(amount, merchant.buy_rate), cost_of(amount, channel.cost_rate(method))
    return Quote(amount, merchant.buy_rate, fee, amount - fee, deposit_amount=amount, cost_amount=cost)


def quote_sell(amount: int, merchant: Merchant, channel: Channel) -> Quote:
    """Quote a withdrawal: the merchant pays the amount, the service fee and the channel fee."""
    fee = apply_rate(amount, merchant.sell_rate)
    surcharge = apply_rate(amount, channel.passage_rate)
    return Quote(
        amount,
        merchant.sell_rate,
        fee,
        amount + fee + surcharge,
        deposit_amount=apply_rate(amount, channel.deposit_rate),
        passage_rate=channel.passage_rate,
        passage_amount=surcharge,
        deposit_rate=channel.deposit_rate,
        channel_amount=apply_rate(amount, channel.commission_rate),
    )
