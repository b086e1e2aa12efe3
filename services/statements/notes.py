"""Notes on differences: codes with arguments, as results are stored, and their texts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self

from runtime.clock import CHINA
from services.errors import N_


class Remark(StrEnum):
    """All codes with their text in English."""

    template: str

    def __new__(cls, code: str, template: str = "") -> Self:
        """Make the member of this code."""
        member = str.__new__(cls, code)
        member._value_, member.template = code, template
        return member

    OTHER_CHANNEL = "other_channel", N_("an order of channel %(channel)s")
    NO_NUMBER = "no_number", N_("no order number")
    MOVED = "moved", N_("moved here at %(time)s")
    REVERSED = "reversed", N_("reported here as reversed at %(time)s")
    CREDITED_AS = "credited_as", N_("credited as %(kind)s; told of here at %(time)s")
    COMPLETED_WITH = "completed_with", N_("completed with %(kind)s; told of here at %(time)s")
    AT_EDGE = "at_edge", N_("at the edge of the day: it may stand in the statement of %(day)s")
    PAID_TWICE = "paid_twice", N_("paid more than once")
    OTHER_DAY = "other_day", N_("paid more than once, or booked on another day: %(day)s")
    FROZEN = "frozen", N_("the channel holds the money back: ask its staff why, and until when")
    UNSIZED = (
        "unsized",
        N_("some of it went back there, and the statement does not say how much; here nothing did"),
    )
    NOT_BOOKED = "not_booked", N_("the money moved there and is not booked here")
    REFUND_OPEN = "refund_open", N_("the exception about what went back is open")
    BACK_BOOKED = "back_booked", N_("the money went back there and is booked here")
    BACK_OPEN = "back_open", N_("the money went back there and is in an open exception here")
    BACK_HELD = "back_held", N_("the money went back there and is held here")
    FAILED_BOOKED = "failed_booked", N_("the money did not move there and is booked here")
    FAILED_OPEN = "failed_open", N_("the money did not move there and is in an open exception here")
    FAILED_HELD = "failed_held", N_("the money did not move there and is held here")
    COMPARED_WITH = "compared_with", N_("compared with what %(kind)s recorded")


@dataclass(frozen=True)
class Note:
    """A remark with its arguments, which are texts."""

    code: Remark
    values: dict[str, str]

    def __str__(self) -> str:
        return self.code.template % self.values if self.values else self.code.template


def note(code: Remark, **values: str) -> Note:
    """Return a remark with its arguments."""
    return Note(code, values)


def time_of(at: int) -> str:
    """Return a time in China, as the arguments of notes have it."""
    return f"{datetime.fromtimestamp(at, CHINA):%Y-%m-%d %H:%M:%S}"
