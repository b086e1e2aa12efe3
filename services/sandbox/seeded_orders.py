"""Demo orders of the last ten months: always the same sequence, inserted in bulk; open ones have a next step."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from gateways.registry import DRIVERS
from models import renumbering, schema
from models.db.hash_chain import Chain, Facts
from models.db.writer import transaction
from models.queries import order_range, search
from models.tables.channel import Channel
from models.tables.ledger import AVAILABLE, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import BUY, CANCELLED, COMPLETED, CONFIRMED, PAID, PENDING, SELL, History, Order
from runtime import clock
from runtime.clock import in_china
from services.ledger import accounts as ledger
from services.ledger import day_sums, fees, postings
from services.merchants import merchant_setup
from services.orders.reasons import Why
from services.sandbox.seeding import DEMO_BALANCE, LINKS, MERCHANTS

MONTHS = 10 * 30 * 86_400  # seconds over which the orders are spread
LONGEST = 300  # seconds that an order takes at most, so that no order ends in the future
SEED = 20_260_101
CHUNK = 1_000
ROWS_A_STATEMENT = 500

# The statuses that lead to each final one, and their frequency.
BUY_PATHS = {
    (PENDING,): 5,
    (PENDING, PAID): 2,
    (PENDING, PAID, CONFIRMED): 3,
    (PENDING, PAID, CONFIRMED, COMPLETED): 75,
    (PENDING, CANCELLED): 15,
}
SELL_PATHS = {
    (PENDING,): 10,
    (PENDING, CONFIRMED): 8,
    (PENDING, CONFIRMED, PAID, COMPLETED): 62,
    (PENDING, CANCELLED): 12,
    (PENDING, CONFIRMED, CANCELLED): 8,
}
# How an open order of an earlier day ended, unless it waits for an operator.
ENDED = {
    (BUY, PENDING): (PENDING, CANCELLED),
    (BUY, PAID): (PENDING, PAID, CANCELLED),
    (BUY, CONFIRMED): (PENDING, PAID, CONFIRMED, COMPLETED),
    (SELL, CONFIRMED): (PENDING, CONFIRMED, PAID, COMPLETED),
}


def _own_number(number: int) -> str:
    """Return the merchant's own number of the `number`th order of the sequence."""
    return f"SEED-{number:07d}"


def _offset(number: int) -> int:
    """Return the seconds from the beginning of the ten months to the `number`th order of the sequence."""
    return crc32(b"%d" % number) % MONTHS


def _order(number: int, beginning: int, merchants: list[Merchant], channels: dict[int, Channel]) -> dict[str, Any]:
    """Return the `number`th order of the sequence, with the statuses that it passed."""
    chance = random.Random(SEED + number)
    merchant = merchants[0] if chance.random() < 0.9 else merchants[1]
    channel = channels[chance.choice(LINKS[merchant.key])]
    is_buy = chance.random() < 0.8 or merchant.key != "demo"
    paths = BUY_PATHS if is_buy else SELL_PATHS
    (path,) = chance.choices(list(paths), list(paths.values()))
    kind = (BUY if is_buy else SELL, path[-1])
    is_due = kind in ENDED and not (kind in ((BUY, PAID), (SELL, CONFIRMED)) and DRIVERS[channel.driver].by_hand)
    if is_due and _offset(number) < MONTHS - 86_400:
        path, is_due = ENDED[kind], False
    amount = int(100 + chance.random() * (200_000 if is_buy else 50_000))
    created = beginning + _offset(number)
    order_no = f"{in_china(created):%Y%m%d}{int(chance.random() * 10**16):016d}"
    method = chance.choice(channel.pay_methods)
    quote = fees.quote_buy(amount, merchant, channel, method) if is_buy else fees.quote_sell(amount, merchant, channel)
    return vars(quote) | {
        "path": path,
        "order_no": order_no,
        "merchant": merchant.id,
        "channel": channel.id,
        "account": None if is_buy else 1,
        "order_type": BUY if is_buy else SELL,
        "status": path[-1],
        "merchant_order_no": _own_number(number),
        "payment_method": method,
        "expires_at": created + 900 if is_buy else None,
        "due_at": created + 900 if is_due else None,
        "createtime": created,
        "updatetime": created + 60 * (len(path) - 1),
        "completedtime": created + 60 * (len(path) - 1) if path[-1] == COMPLETED else None,
    }


def _money(order: Any) -> Iterator[tuple[str, postings.Lines]]:
    """Yield the postings of an order with these statuses: purpose, and fen by account."""
    if order.order_type == BUY:
        if order.status == COMPLETED:
            yield "credit", postings.credit(order)
        return
    yield "hold", postings.hold(order)
    if order.status == CANCELLED:
        yield "release", postings.release(order)
    elif order.status == COMPLETED:
        yield "spend", postings.spend(order)


class _Batch:
    """Rows of a few thousand orders, inserted together; ids are counted here, because one transaction inserts all."""

    TABLES = (Order, History, Posting, Entry)

    def __init__(self) -> None:
        self.next_id = {
            table: (table.select(table.id).order_by(table.id.desc()).limit(1).scalar() or 0) + 1
            for table in self.TABLES
        }
        accounts = list(LedgerAccount.select())
        self.accounts = {(account.kind, account.owner): account.id for account in accounts}
        self.chains = {
            account.id: Chain(account.kind, account.owner, account.entries, account.head) for account in accounts
        }
        self.rows: dict[Any, list[dict[str, Any]]] = {table: [] for table in self.TABLES}
        self.totals: dict[int, int] = {}
        self.last: dict[int, int] = {}

    def _add(self, table: Any, row: dict[str, Any]) -> int:
        row["id"] = row_id = self.next_id[table]
        self.next_id[table] += 1
        self.rows[table].append(row)
        return row_id

    def add(self, order: dict[str, Any]) -> None:
        """Add an order with its history and postings."""
        merchant, path = order["merchant"], order.pop("path")
        order["seq"] = self.last[merchant] = self.last.get(merchant) or order_range.newest(merchant)[0] + 1
        self.last[merchant] += 1
        order_id = self._add(Order, order)
        created, changed = order["createtime"], order["updatetime"]
        steps = ("", *path)
        for step, after in enumerate(path):
            told = {"who": "seed", "code": Why.SEEDED.value, "at": created + 60 * step}
            self._add(History, {"order": order_id, "before": steps[step], "after": after, **told})
        for purpose, lines in _money(
            SimpleNamespace(**order, merchant_id=merchant, channel_id=order["channel"], received=order["amount"])
        ):
            posted = {"order": order_id, "purpose": purpose, "who": "seed", "createtime": changed}
            posting = self._add(Posting, posted)
            facts = Facts(posting, order["order_no"], purpose, "seed", "", changed)
            for account, fen in lines.items():
                if fen:
                    row = self.accounts[account]
                    link = self.chains[row].append(fen, facts)
                    self._add(Entry, {"posting": posting, "account": row, "amount": fen, **link})
                    self.totals[row] = self.totals.get(row, 0) + fen

    def insert(self) -> None:
        """Insert the rows, and move the account balances by the entries."""
        for table, rows in self.rows.items():
            for start in range(0, len(rows), ROWS_A_STATEMENT):
                table.add_all(rows[start : start + ROWS_A_STATEMENT])
        schema.continue_ids()
        for account, fen in self.totals.items():
            chain = self.chains[account]
            moved = {"balance": LedgerAccount.balance + fen, "entries": chain.number, "head": chain.head}
            LedgerAccount.update(moved).where(LedgerAccount.id == account).execute()


@transaction
def _insert(
    numbers: list[int], beginning: int, merchants: list[Merchant], channels: dict[int, Channel], *, last: bool
) -> None:
    batch = _Batch()
    for number in numbers:
        batch.add(_order(number, beginning, merchants, channels))
    batch.insert()
    if last and (surplus := LedgerAccount.balance_of(AVAILABLE, merchants[0].id) - DEMO_BALANCE):
        memo = "paid to the shop's bank account"
        ledger.adjust(merchants[0], -surplus, memo, channel=channels[1], who="seed", at=beginning + MONTHS)


def seed_orders(count: int, progress: Callable[[int], None] = lambda done: None) -> int:
    """Insert the missing ones of the first `count` orders of the sequence; return their number.

    Args:
        progress: called with the number of orders inserted since the last call.
    """
    merchants = [merchant_setup.find_merchant(facts["key"]) for facts in MERCHANTS]
    channels = {channel.id: channel for channel in Channel.select()}
    own = Order.select(Order.merchant_order_no, Order.createtime).where(Order.merchant_order_no.startswith("SEED-"))
    seeded = dict(own.tuples().iterator())
    # The ten months end now, or at the end that earlier runs chose.
    earlier = [at - _offset(int(number[5:])) for number, at in seeded.items() if re.fullmatch(r"SEED-[0-9]{7}", number)]
    beginning = min([clock.now() // 3600 * 3600 - LONGEST - MONTHS, *earlier])
    in_time = sorted((number for number in range(1, count + 1) if _own_number(number) not in seeded), key=_offset)
    for start in range(0, len(in_time), CHUNK):
        chunk = in_time[start : start + CHUNK]
        _insert(chunk, beginning, merchants, channels, last=start + CHUNK >= len(in_time))
        progress(len(chunk))
    renumbering.renumber()
    while search.index_more(CHUNK):
        pass
    day_sums.complete()
    return len(in_time)
