"""As many demo orders as wanted, over all states, types and months: the same sequence every time, inserted in bulk."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from models.base import database
from models.channel import Channel
from models.ledger import AVAILABLE, Entry, LedgerAccount, Posting
from models.merchant import Merchant
from models.order import BUY, CANCELLED, COMPLETED, CONFIRMED, PAID, PENDING, SELL, History, Order
from models.writer import transaction
from services import administration, fees, ledger, ordering, postings
from services.seeding import DEMO_BALANCE, LINKS, MERCHANTS, START

MONTHS = 10 * 30 * 86_400
SEED = 20_260_101
CHUNK = 5_000

# The states an order passes on its way to each that it may be in, and how often that is.
BUY_PATHS = (
    ((PENDING,), 5),
    ((PENDING, PAID), 2),
    ((PENDING, PAID, CONFIRMED), 3),
    ((PENDING, PAID, CONFIRMED, COMPLETED), 75),
    ((PENDING, CANCELLED), 15),
)
SELL_PATHS = (
    ((PENDING,), 10),
    ((PENDING, CONFIRMED), 8),
    ((PENDING, CONFIRMED, PAID), 2),
    ((PENDING, CONFIRMED, PAID, COMPLETED), 60),
    ((PENDING, CANCELLED), 12),
    ((PENDING, CONFIRMED, CANCELLED), 8),
)


def _order(
    number: int, chance: random.Random, merchants: list[Merchant], channels: dict[int, Channel]
) -> dict[str, Any]:
    """The `number`th order of the sequence, with the path of states that it took."""
    merchant = merchants[0] if chance.random() < 0.9 else merchants[1]
    channel = channels[chance.choice(LINKS[merchant.key])]
    is_buy = chance.random() < 0.8 or merchant.key != "demo"
    paths = BUY_PATHS if is_buy else SELL_PATHS
    path = chance.choices([path for path, _ in paths], [weight for _, weight in paths])[0]
    amount = chance.randint(100, 200_000) if is_buy else chance.randint(100, 50_000)
    quote = fees.quote_buy(amount, merchant) if is_buy else fees.quote_sell(amount, merchant, channel)
    created = START + chance.randrange(MONTHS)
    return asdict(quote) | {
        "path": path,
        "order_no": ordering.day_of(created) + f"{chance.randrange(10**16):016d}",
        "merchant": merchant.id,
        "channel": channel.id,
        "account": None if is_buy else 1,
        "order_type": BUY if is_buy else SELL,
        "status": path[-1],
        "merchant_order_no": f"SEED-{number:07d}",
        "payment_method": chance.choice(channel.pay_methods),
        "expires_at": created + 900 if is_buy else None,
        "createtime": created,
        "updatetime": created + 60 * (len(path) - 1),
    }


def _money(order: Order) -> Iterator[tuple[str, postings.Lines]]:
    """The postings of an order that came this far: purpose, and fen by account."""
    if order.is_buy:
        if order.status == COMPLETED:
            yield "credit", postings.credit(order)
        return
    yield "hold", postings.hold(order)
    if order.status == CANCELLED:
        yield "release", postings.release(order)
    elif order.status == COMPLETED:
        yield "spend", postings.spend(order)


class _Batch:
    """Rows of a few thousand orders, inserted together; ids are counted here, for one transaction holds it all."""

    TABLES = (Order, History, Posting, Entry)

    def __init__(self) -> None:
        self.next_id: dict[Any, int] = {
            table: (table.select().order_by(table.id.desc()).limit(1).scalar() or 0) + 1 for table in self.TABLES
        }
        self.accounts = {(account.kind, account.owner): account.id for account in LedgerAccount.select()}
        self.rows: dict[Any, list[dict[str, Any]]] = {table: [] for table in self.TABLES}
        self.totals: dict[postings.Account, int] = {}

    def _add(self, table: Any, **row: Any) -> int:
        row_id = self.next_id[table]
        self.next_id[table] += 1
        self.rows[table].append({"id": row_id, **row})
        return row_id

    def add(self, order: dict[str, Any]) -> None:
        """An order with its history and postings."""
        path = order.pop("path")
        order_id = self._add(Order, **order)
        for step, (before, after) in enumerate(zip(("", *path), path, strict=False)):
            at = order["createtime"] + 60 * step
            self._add(History, order=order_id, before=before, after=after, who="seed", why="seeded", at=at)
        for purpose, lines in _money(Order(**order)):
            posting = self._add(
                Posting, order=order_id, purpose=purpose, who="seed", memo="", createtime=order["updatetime"]
            )
            for account, fen in lines.items():
                if fen:
                    self._add(Entry, posting=posting, account=self.accounts[account], amount=fen)
                    self.totals[account] = self.totals.get(account, 0) + fen

    def flush(self) -> None:
        """Insert the rows: one statement a table, compiled once."""
        for table in self.TABLES:
            if self.rows[table]:
                fields = {name: table._meta.fields[name] for name in self.rows[table][0]}
                defaults = {
                    field.name: field.default
                    for field in table._meta.sorted_fields
                    if field.default is not None and field.name not in fields
                }
                columns = [field.column_name for field in fields.values()]
                columns += [table._meta.fields[name].column_name for name in defaults]
                names = ", ".join(f'"{column}"' for column in columns)
                marks = ", ".join("?" * len(columns))
                sql = f'INSERT INTO "{table._meta.table_name}" ({names}) VALUES ({marks})'
                tail = tuple(defaults.values())
                database.connection().executemany(sql, [(*row.values(), *tail) for row in self.rows[table]])
                self.rows[table].clear()

    def settle(self) -> None:
        """Move the balances by what the entries say."""
        for (kind, owner), fen in self.totals.items():
            LedgerAccount.update(balance=LedgerAccount.balance + fen).where(
                LedgerAccount.kind == kind, LedgerAccount.owner == owner
            ).execute()


@transaction
def seed_orders(count: int, progress: Callable[[int], None] = lambda done: None) -> int:
    """Make the first `count` orders of the sequence, as far as they are not there; how many were made.

    Args:
        progress: called with the number of orders done since the last call.
    """
    chance = random.Random(SEED)
    merchants = [administration.find_merchant(facts["key"]) for facts in MERCHANTS]
    channels = {channel.id: channel for channel in Channel.select()}
    there = Order.select().where(Order.merchant_order_no.startswith("SEED-")).count()
    batch = _Batch()
    for number in range(1, count + 1):
        order = _order(number, chance, merchants, channels)
        if number > there:
            batch.add(order)
        if number % CHUNK == 0 or number == count:
            batch.flush()
            progress(CHUNK if number % CHUNK == 0 else count % CHUNK)
    batch.settle()
    demo = merchants[0]
    surplus = LedgerAccount.balance_of(AVAILABLE, demo.id) - DEMO_BALANCE
    if count > there and surplus:
        ledger.adjust(
            demo, -surplus, "paid to the shop's bank account", channel=channels[1], who="seed", at=START + MONTHS
        )
    return max(0, count - there)
