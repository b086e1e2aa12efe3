"""Redelivery of several callbacks at once: what a filter or a selection finds, and the action that was confirmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from models.queries import keyset
from models.tables.merchant import Merchant
from models.tables.outbox import DEAD, WAITING, Callback
from services.callbacks import delivery, epay_notices
from services.callbacks.outbox import REFUND_RESULTS
from services.console import lists, record_lists
from services.errors import N_, OperatorError
from services.merchants import merchant_setup
from services.security import audit
from services.security.audit import Actor

MOST = 5_000  # callbacks of one redelivery
AT_ONCE = 500  # callbacks of one statement
NONE = N_("No callbacks to resend.")
# The types of callbacks.
EVENTS = (*map(merchant_setup.event_name, merchant_setup.EVENTS), *REFUND_RESULTS, epay_notices.TYPE)


class Resendable(record_lists.Callbacks):
    """Callbacks that an operator may want to resend, by the filters of their list.

    Delivered ones only if `state` selects them. Those that wait for their first attempt are queued already.
    """

    @property
    def states(self) -> tuple[str, ...]:
        """The wanted state, or the states of what was not delivered."""
        return super().states if "state" in self.wanted else (WAITING, DEAD)

    def conditions(self) -> list[Any]:
        """The same, and that it is not queued already."""
        return [*super().conditions(), (Callback.state != WAITING) | (Callback.attempts > 0)]


@dataclass(frozen=True)
class Preview:
    """What a redelivery would send.

    Args:
        ids: the callbacks by their present state, oldest first.
        merchants: each with the number of its callbacks, the most first.
        refused: reasons why others cannot be sent, each with their number.
        more: whether further callbacks match, which are newer.
    """

    ids: dict[str, list[int]]
    merchants: list[tuple[Merchant, int]]
    refused: list[tuple[str, int]]
    more: bool

    @property
    def count(self) -> int:
        """The number of callbacks that it would send."""
        return sum(map(len, self.ids.values()))


def count(wanted: dict[str, Any]) -> int:
    """Return how many callbacks `of_filter` finds; MOST + 1 for more than MOST."""
    browse = Resendable(wanted)
    few = browse.few()
    if few is not None:
        return min(len(few), MOST + 1)
    found = keyset.summary(browse.lines(None, None), {}, MOST, lists.MOST_CHECKED)
    return found.count + found.more


def of_filter(wanted: dict[str, Any]) -> Preview:
    """Return what resending the callbacks that match the filters of their list would send; at most the oldest MOST."""
    browse = Resendable(wanted)
    page = lists.Cursor(up=True).page(browse, browse.few(), MOST)
    return _preview(page.ids, page.more)


def of_selection(webhook_ids: Iterable[str]) -> Preview:
    """Return what resending these callbacks would send, whatever their state."""
    chosen = Callback.select(Callback.id).where(Callback.webhook_id.in_(list(webhook_ids)[:MOST]))
    return _preview([number for (number,) in chosen.order_by(Callback.id).tuples()], more=False)


def _preview(numbers: list[int], more: bool) -> Preview:
    ids: dict[str, list[int]] = {}
    merchants, refused = Counter[Merchant](), Counter[str]()
    for some in _batches(numbers):
        columns = (Callback.id, Callback.type, Callback.state, Callback.merchant, Callback.order)
        rows = {row.id: row for row in lists.add_owners(list(Callback.select(*columns).where(Callback.id.in_(some))))}
        for callback in (rows[number] for number in some if number in rows):
            if why := delivery.why_unsent(callback):
                refused[why] += 1
            else:
                ids.setdefault(callback.state, []).append(callback.id)
                merchants[callback.merchant] += 1
    return Preview(ids, merchants.most_common(), refused.most_common(), more)


def _batches(numbers: list[int]) -> Iterable[list[int]]:
    return (numbers[start : start + AT_ONCE] for start in range(0, len(numbers), AT_ONCE))


def resend(shown: dict[str, list[int]], actor: Actor) -> int:
    """Queue the callbacks that an operator confirmed; return how many.

    One whose state changed since is left as it is: another operator resent it, or the merchant received it.

    Args:
        shown: the ids by state, as in `Preview`.

    Raises:
        OperatorError: all have changed.
    """
    if not any(shown.values()):
        raise OperatorError(NONE)
    detail = ", ".join(f"{len(ids)} {state}" for state, ids in shown.items() if ids)
    return audit.act(actor, "resend callbacks", "callbacks", "", lambda: _resend(shown), detail)


def _resend(shown: dict[str, list[int]]) -> int:
    done = 0
    for state, ids in shown.items():
        for some in _batches(ids):
            done += delivery.due_again(Callback.id.in_(some), Callback.state == state)
    if not done:
        raise OperatorError(NONE)
    return done
