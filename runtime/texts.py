"""Texts to translate: their mark, and codes with a text."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

N_ = str


class Coded(StrEnum):
    """Codes, as the database stores them, each with its text in English."""

    template: str

    def __new__(cls, code: str, template: str = "") -> Self:
        """Make the member of this code."""
        member = str.__new__(cls, code)
        member._value_, member.template = code, template
        return member
