"""Compare the earnings with a plain sum over all postings, and with the balances of the operator's own accounts."""

from collections.abc import Iterator
from datetime import date
from itertools import combinations
from typing import Any

from models.db.base import database
from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, FEES, HELD, LedgerAccount
from runtime.clock import in_china
from services.ledger import earnings
from services.ledger.earnings import Earned
from services.ledger.postings import BILL_COSTS

POSTINGS = """SELECT posting.id, posting.purpose, posting.createtime, "order".merchant_id, "order".channel_id,
    "order".payment_method, "order".order_type, "order".amount, ledger_account.kind, ledger_account.owner, entry.amount
    FROM posting JOIN entry ON entry.posting_id = posting.id JOIN ledger_account ON ledger_account.id = entry.account_id
    LEFT JOIN "order" ON "order".id = posting.order_id"""


def _postings() -> Iterator[tuple[dict[str, Any], bool, Earned]]:
    """Each posting that concerns the operator: its groups, whether it is an adjustment, and what it brought."""
    postings: dict[int, tuple[tuple[Any, ...], dict[str, int], list[int]]] = {}
    for number, *facts, kind, owner, fen in database.execute_sql(POSTINGS).fetchall():
        _, moved, through = postings.setdefault(number, (tuple(facts), {}, []))
        moved[kind] = moved.get(kind, 0) + fen
        through += [owner] if kind == CLEARING else []
    for (purpose, at, merchant, channel, method, order_type, amount), moved, through in postings.values():
        if not moved.keys() & {FEES, COMMISSION, CLEARING}:
            continue
        word, fees = purpose.split(" ")[0], moved.get(FEES, 0)
        sums = Earned(fees=fees, costs=-moved.get(COMMISSION, 0))
        kept = moved.get(AVAILABLE, 0) + moved.get(HELD, 0)
        sign = -1 if word in ("return", "refund_return") else 1
        is_adjustment = False
        if word == "credit" or (word == "exception" and order_type == 1):
            sums += Earned(deposits=1, deposited=kept + fees)
        elif word in ("spend", "spend_again", "return", "exception"):
            sums += Earned(withdrawals=sign, withdrawn=sign * amount)
        elif word in ("refund", "refund_return"):
            sums += Earned(refunds=sign, refunded=moved[CLEARING], given_back=-fees)
        elif word == BILL_COSTS:
            (channel,) = through
            sums += Earned(corrections=sums.costs)
        else:
            is_adjustment = True
        groups = {"day": in_china(at).date(), "merchant": merchant, "channel": channel, "method": method or None}
        yield dict.fromkeys(groups) | {"day": groups["day"]} if is_adjustment else groups, is_adjustment, sums


def check() -> Earned:
    """Fail unless the earnings are those of the postings, in every grouping; return those of all time."""
    postings = list(_postings())
    for size in range(len(earnings.GROUPS) + 1):
        for by in combinations(earnings.GROUPS, size):
            expected: dict[Any, Earned] = {}
            for groups, is_adjustment, sums in postings:
                key = (*(groups[name] if name in by else None for name in earnings.GROUPS), is_adjustment)
                expected[key] = expected.get(key, Earned()) + sums
            found = earnings.lines(None, None, by)
            keys = [(line.day, line.merchant, line.channel, line.method, line.is_adjustment) for line in found]
            assert len(set(keys)) == len(keys)
            assert dict(zip(keys, (line.sums for line in found), strict=True)) == {
                key: sums for key, sums in expected.items() if sums != Earned()
            }
    total = earnings.total(earnings.lines(None, None))
    assert total.fees == LedgerAccount.balance_of(FEES, 0)
    assert -total.costs == LedgerAccount.balance_of(COMMISSION, 0)
    days = {groups["day"] for groups, _, _ in postings}
    for day in days:
        assert earnings.total(earnings.lines(day, day)) == sum(
            (sums for groups, _, sums in postings if groups["day"] == day), Earned()
        )
    assert sum(earnings.by_day(min(days, default=date.min), date.max).values(), Earned()) == total
    return total
