"""Operators' notes on orders, for the next shift. Merchants and payers never see them."""

from __future__ import annotations

from models.db.writer import transaction
from models.tables.order import InternalNote, Order
from runtime import clock
from services.console import privacy
from services.errors import N_, OperatorError
from services.security import audit
from services.security.audit import Actor

MOST_CHARACTERS = 500


@transaction
def write(order: Order, typed: str, who: str, actor: Actor) -> None:
    """Write a note. The audit log records that, without the text, which can be erased.

    Args:
        who: of the note, such as `operator alice`.

    Raises:
        OperatorError: the text is empty, too long, or has control characters.
    """
    text = typed.replace("\r\n", "\n").strip()
    if not text:
        raise OperatorError(N_("Enter a note."), "text")
    if len(text) > MOST_CHARACTERS or not text.replace("\n", "").isprintable():
        raise OperatorError(N_("A note has at most %(most)s characters of text."), "text", most=str(MOST_CHARACTERS))
    privacy.examine_again(order)
    InternalNote.add(order=order.id, who=who, text=text, createtime=clock.now())
    audit.record(actor, "write note", "order", order.order_no)
