"""Compare every monthly statement of a merchant with the ledger's entries and balances."""

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, time

from peewee import fn

from models.tables.ledger import AVAILABLE, HELD, Entry, LedgerAccount, Posting
from models.tables.merchant import Merchant
from models.tables.order import Order
from runtime.clock import CHINA
from services.ledger import accounts, day_sums
from services.ledger import monthly_statement as statement
from services.ledger.monthly_statement import Line, Statement, Sums


def statements_of(merchant: Merchant) -> list[Statement]:
    """The statements of all months, oldest first."""
    return [statement.of(merchant, month) for month in reversed(statement.months_of(merchant))]


def check(merchant: Merchant) -> None:
    """Fail unless opening balances, lines, days and closing balances of all months agree with the ledger."""
    months = statements_of(merchant)
    balances, before = accounts.balances_of(merchant), 0
    for each in months:
        assert (each.opening, each.held) == (before, _held(merchant, each.month))
        before = each.closing
        _check_lines(each)
    assert (before, months[-1].held) == (balances["available"] + balances["held"], balances["held"])
    numbers = [line.order_no + line.purpose + str(line.at) for each in months for line in statement.lines(each)]
    assert len(numbers) == _movements(merchant)


def _check_lines(each: Statement) -> None:
    lines = list(statement.lines(each))
    assert sum(line.amount for line in lines) == each.sums.change
    assert sum(line.fees for line in lines) == each.sums.fees
    assert [line.balance for line in lines[-1:]] == [each.closing] * bool(lines)
    assert vars(each.counts) == _counts(lines)
    assert Sums(*(sum(column) for column in zip(*(vars(day.sums).values() for day in each.days), strict=True))) == (
        each.sums if each.days else Sums()
    )
    assert not each.days or each.days[-1].balance == each.closing
    for day in each.days:
        of_day = list(statement.lines(each, day.day))
        assert (sum(line.amount for line in of_day), of_day[-1].balance) == (day.sums.change, day.balance)
        assert vars(day.counts) == _counts(of_day)
    for line in lines:
        if line.purpose in ("credit", "spend"):  # its amount before fees is what the payer paid or the payee received
            order = Order.get(Order.order_no == line.order_no)
            fees = order.service_amount + order.passage_amount
            assert (line.gross, line.fees) == (order.received if order.is_buy else -order.amount, -fees)


def _counts(lines: Iterable[Line]) -> dict[str, int]:
    """The numbers of lines by group."""
    groups = (statement.GROUP_OF.get(day_sums.kind_of(line.purpose), statement.ADJUSTMENTS) for line in lines)
    return dict.fromkeys(statement.GROUPS, 0) | Counter(groups)


def _held(merchant: Merchant, month: date) -> int:
    """The reserved amount at the end of a month in China, by the ledger's entries."""
    end = datetime.combine(statement.next_month(month), time(), CHINA).timestamp()
    own = Entry.select(fn.COALESCE(fn.SUM(Entry.amount), 0)).join(Posting).switch(Entry).join(LedgerAccount)
    own = own.where(LedgerAccount.owner == merchant.id, LedgerAccount.kind == HELD, Posting.createtime < end)
    return int(own.scalar())


def _movements(merchant: Merchant) -> int:
    """The number of postings that changed the merchant's balance."""
    own = Entry.select(Posting.id, Entry.amount).join(Posting).switch(Entry).join(LedgerAccount)
    own = own.where(LedgerAccount.owner == merchant.id, LedgerAccount.kind.in_([AVAILABLE, HELD]))
    sums: dict[int, int] = {}
    for posting, amount in own.tuples():
        sums[posting] = sums.get(posting, 0) + amount
    return sum(1 for amount in sums.values() if amount)
