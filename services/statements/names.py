"""The orders that the note of a payment names: certainly, by a whole number in it, or possibly."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from models.queries import search
from models.tables.channel import Channel
from models.tables.merchant import Merchant
from models.tables.order import BUY, PAID, PENDING, Order
from models.tables.payout_batch import PayoutBatchLine
from services.statements.book_side import chunks

MOST_NAMED = 500  # orders that a part of an order number may name
LEAST = 6  # characters of a merchant's number that identifies, and of a part of a number that may name an order
LEAST_OF_OURS = 12  # characters of a part of an order number: the first eight are its date

_OURS = re.compile(r"(?=(20[0-9]{22}))")
# An order number or a mistyped one: a date and 16 digits.
_LIKE_OURS = re.compile(r"(?<![0-9])20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{16}(?![0-9])")
_DATE = re.compile(r"20[0-9]{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12][0-9]|3[01])")
_WORD = re.compile(r"[a-z0-9_\-]+")
_PART = re.compile(rf"[a-z0-9]{{{LEAST},}}")
_RUN = re.compile(rf"[A-Za-zＡ-Ｚａ-ｚ]{{{search.LEAST},}}|[0-9]{{{search.LEAST},}}|[０-９]{{{search.LEAST},}}")
_PAYOUT = re.compile(r"(?<![a-z0-9])p([0-9]{1,12})-([0-9]{1,6})(?![0-9])")


def folded(text: str) -> str:
    """Return the text in lower case, with ASCII characters for full-width ones."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def compact(text: str) -> str:
    """Return the folded text without blanks and punctuation, which banks and payers add or leave out."""
    return re.sub(r"[\W_]+", "", folded(text))


class Names:
    """Finds the orders that the notes of one file name, among all orders of the channel, open or ended.

    `open` are the channel's open deposits, oldest first. An order number of this service is found in any channel.
    """

    def __init__(self, channel: Channel, notes: Iterable[str]):
        self.channel = channel
        waiting = (Order.order_type == BUY, Order.status.in_((PENDING, PAID)))
        self.open: list[Order] = sorted(_select(channel, *waiting), key=lambda order: int(order.id))
        self._searched: dict[str, list[Order] | None] = {}
        self._compact = {order.id: compact(order.merchant_order_no) for order in self.open}
        notes = set(notes)
        ours = {number for note in notes for number in _ours(note)}
        self._by_order_no = {
            order.order_no: order for part in chunks(ours) for order in Order.select().where(Order.order_no.in_(part))
        }
        self._by_number: dict[str, list[Order]] = defaultdict(list)
        for part in chunks({spelling for note in notes for spelling in _spellings(note)}):
            for order in _select(channel, Order.merchant_order_no.in_(part)):
                self._by_number[folded(order.merchant_order_no)].append(order)
        for order in self.open:  # in any spelling
            if order.merchant_order_no and order not in self._by_number[folded(order.merchant_order_no)]:
                self._by_number[folded(order.merchant_order_no)].append(order)

    def ours(self, note: str) -> list[Order]:
        """Return the orders whose own number is in the note, also if blanks or punctuation split it."""
        return [self._by_order_no[number] for number in _ours(note) if number in self._by_order_no]

    def theirs(self, note: str) -> dict[str, list[Order]]:
        """Return the channel's orders whose merchant's number is a whole word of the note, by the folded number."""
        words = {word: None for text in (folded(note), compact(note)) for word in _words(text)}
        return {word: list(self._by_number[word]) for word in words if self._by_number.get(word)}

    def with_number(self, number: str) -> list[Order] | None:
        """Return the channel's orders with this merchant's number in any spelling; None if this is uncertain."""
        found = {order.id: order for order in self._by_number.get(folded(number), [])}
        alike = self._alike(number)
        if alike is None:
            return None
        found |= {order.id: order for order in alike if folded(order.merchant_order_no) == folded(number)}
        return list(found.values())

    def possible(self, note: str) -> list[Order] | None:
        """Return the orders that the note may name: by a number that is joined to other text, or by a part of one.

        Returns None if this is uncertain, because too many orders have such a number, or an order number is mistyped.
        """
        text, joined = folded(note), compact(note)
        if not self._by_order_no.keys() >= {*_LIKE_OURS.findall(text), *_LIKE_OURS.findall(joined)}:
            return None
        parts = {*_PART.findall(text), *_PART.findall(joined), *re.findall(r"[0-9]{6,}", text)}
        found = {order.id: order for order in self.ours(note)}
        found |= {order.id: order for orders in self.theirs(note).values() for order in orders}
        found |= {order.id: order for order in _paid_out(text)}
        for part in parts:
            if part.isdecimal() and LEAST_OF_OURS <= len(part) < 24 and part.startswith("20"):
                within = Order.order_no.between(part.ljust(24, "0"), part.ljust(24, "9"))
                found |= {order.id: order for order in Order.select().where(within).limit(MOST_NAMED)}
            found |= {order.id: order for order in self.open if order.order_no.endswith(part)}
        alike = self._alike(note)
        if alike is None:
            return None
        for order in (*self.open, *alike):
            if order.id not in found and _may_have(text, joined, order.merchant_order_no):
                found[order.id] = order
        return list(found.values())

    def longer(self, word: str, amount: int) -> list[Order]:
        """Return the open deposits of this amount whose merchant's number begins with the word and continues."""
        start = compact(word)
        alike = [order for order in self.open if order.amount == amount and self._compact[order.id].startswith(start)]
        return [order for order in alike if folded(order.merchant_order_no) != word]

    def _alike(self, text: str) -> list[Order] | None:
        """Return the channel's orders whose merchant's number contains a run of letters or digits of the text.

        Returns None if more orders than the index lists contain a run that may be a number.
        """
        found: dict[int, Order] = {}
        words = [each for spelling in (text, folded(text)) for each in (*_RUN.findall(spelling), *spelling.split())]
        for run in dict.fromkeys(word for word in words if len(word) >= search.LEAST):
            candidates = self._containing(run)
            if candidates is None and run.isdecimal() and len(run) >= LEAST:
                return None
            found |= {order.id: order for order in candidates or ()}
        return list(found.values())

    def _containing(self, run: str) -> list[Order] | None:
        if run not in self._searched:
            found = search.named(run)
            if found is None:
                self._searched[run] = None
            else:
                ids, reached = found
                orders = [order for part in chunks(ids) for order in Order.select().where(Order.id.in_(part))]
                orders.extend(Order.select().where(Order.id > reached, Order.merchant_order_no.contains(run)))
                self._searched[run] = [order for order in orders if order.channel_id == self.channel.id]
        return self._searched[run]


def _may_have(text: str, joined: str, number: str) -> bool:
    """Return whether a folded and a compact note may have a merchant's number: its beginning or end, or a short one."""
    bare = compact(number)
    if len(bare) >= LEAST:
        return bare[:LEAST] in joined or bare[-LEAST:] in joined
    return bool(bare) and re.search(rf"(?<![a-z0-9]){re.escape(folded(number))}(?![a-z0-9])", text) is not None


def is_whole(word: str, note: str) -> bool:
    """Return whether the word can identify an order: ASCII characters, not few, and not a part of a longer word.

    A word without digits or a date can be in the note of any payment.
    """
    is_number = re.search("[0-9]", word) and not _DATE.fullmatch(word)
    return bool(is_number) and len(word) >= LEAST and word in _WORD.findall(folded(note))


def without(note: str, word: str) -> list[str]:
    """Return the parts of a folded note before, between and after a whole word."""
    return re.split(rf"(?<![a-z0-9_\-]){re.escape(word)}(?![a-z0-9_\-])", folded(note))


def _select(channel: Channel, *conditions: Any) -> Any:
    """Select orders of the channel, by an index that begins with the merchant."""
    return Order.select().where(Order.merchant.in_(Merchant.select(Merchant.id)), *conditions, Order.channel == channel)


def _ours(note: str) -> list[str]:
    """Return the possible order numbers in a note, whatever separates their digits."""
    return list(dict.fromkeys(number for text in (folded(note), compact(note)) for number in _OURS.findall(text)))


def _words(text: str) -> list[str]:
    """Return the words of a text that may be numbers, longest kinds first."""
    kinds = (r"[A-Za-z0-9_\-]+", r"[A-Za-z0-9]+", r"[0-9]+")
    found = [text, *text.split(), *(word for kind in kinds for word in re.findall(kind, text))]
    return list(dict.fromkeys(word for word in found if word))


def _spellings(note: str) -> Iterator[str]:
    """Yield the words of a note as merchants may have written them."""
    for text in (note.strip(), folded(note), compact(note)):
        for word in _words(text):
            yield from {word, word.upper(), word.lower()}


def _paid_out(text: str) -> Iterator[Order]:
    """Yield the withdrawals whose codes in a payout file are in the text: a bank may return their money with it."""
    for batch, line in _PAYOUT.findall(text):
        rows = PayoutBatchLine.select(PayoutBatchLine, Order).join(Order)
        yield from (
            row.order for row in rows.where(PayoutBatchLine.batch == int(batch), PayoutBatchLine.line == int(line))
        )
