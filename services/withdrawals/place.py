"""Create withdrawals. Each holds its amount in the commit that creates it; no channel is called before its approval."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from models.db.writer import grouped
from models.tables.channel import Channel
from models.tables.order import Order
from models.tables.payout_account import PayoutAccount
from runtime import clock
from services.channels.calls import account_details
from services.errors import ApiError, Code
from services.ledger import accounts, fees, postings
from services.orders.new import MERCHANT, New, Placed, Source, insert_all, owner, prepared
from services.security import replay, second_operator, vault
from services.security.replay import Call


def place(call: Call, channel: Channel, wanted: dict[str, Any], source: Source = MERCHANT) -> Placed:
    """Create a withdrawal and reserve its amount, fees and deposit (docs/orders.md).

    Args:
        wanted: the loaded fields; `cny_amount` in fen.

    Raises:
        ApiError: Code.INSUFFICIENT_BALANCE, Code.NO_PAYOUT_ACCOUNT, or a code of `replay`.
    """
    amount = wanted["cny_amount"]
    by_rule = amount <= channel.auto_accept_max and not second_operator.is_above(amount)
    quote = fees.quote_sell(amount, call.merchant, channel)
    due_at = clock.now() if by_rule else None
    try:
        # No channel is called yet, so the outcome is known.
        return Placed(_hold(prepared(source, call, channel, wanted, quote, outcome=1, due_at=due_at)))
    except ApiError as refusal:
        if refusal.code in (Code.INSUFFICIENT_BALANCE, Code.NO_PAYOUT_ACCOUNT):
            # The order was rolled back with its transaction; the nonce and the response for retries are stored.
            replay.record([(call, None, refusal.code)])
        raise


@grouped(owner)
def _hold(placed: list[New]) -> list[Order]:
    """Insert withdrawals and reserve their amounts."""
    orders = insert_all([replace(new, columns={**new.columns, "account": _account(new)}) for new in placed])
    moves = [(order, postings.hold(order), new.source.who) for order, new in zip(orders, placed, strict=True)]
    accounts.post_each("hold", moves)
    return orders


def _account(new: New) -> int:
    """Return the id of the payout account: of the card in the request (gateway_a), or of the account on file.

    Raises:
        ApiError: Code.NO_PAYOUT_ACCOUNT, there is no account on file.
    """
    if "gatewaya_card_info" not in new.wanted:
        account = PayoutAccount.of(new.call.merchant)
        if account is None:
            raise ApiError(Code.NO_PAYOUT_ACCOUNT)
        return int(account.id)
    card = new.wanted["gatewaya_card_info"]
    details = {
        "bank": "",
        "sub_bank": "",
        "card_number": card["card_no"],
        "real_name": card["card_name"],
        "gatewaya_card_info": card,
        "gatewaya_personal_data": new.wanted["gatewaya_personal_data"],
    }
    return PayoutAccount.add(
        merchant=new.call.merchant.id,
        on_file=False,
        details=vault.encrypt(json.dumps(details, ensure_ascii=False)),
        createtime=clock.now(),
    )


def payee_of(account: PayoutAccount) -> dict[str, Any]:
    """Return a payout account, decrypted for an operator; nested fields by their path."""
    details = account_details(account.details)
    nested = {
        f"{outer}.{name}": value
        for outer, inner in details.items()
        if isinstance(inner, dict)
        for name, value in inner.items()
    }
    return {name: value for name, value in details.items() if not isinstance(value, dict)} | nested
