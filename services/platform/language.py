"""Texts in a given language, also outside of requests: translations, and times in words."""

from __future__ import annotations

import gettext
from functools import cache
from typing import Any

from babel.dates import format_timedelta

from runtime import clock, settings

CATALOGS = settings.ROOT / "blueprints" / "translations"


class Language:
    """The translations into one language: `en` or `zh`."""

    def __init__(self, name: str):
        self.name = name
        self._catalog = gettext.translation("messages", CATALOGS, [name], fallback=True)

    def gettext(self, text: str, /, **values: Any) -> str:
        """Translate a text and fill in its values."""
        said = self._catalog.gettext(text) if text else ""
        return said % values if values else said

    def ngettext(self, one: str, many: str, num: int, **values: Any) -> str:
        """Translate the form of a text for this number and fill in its values."""
        return self._catalog.ngettext(one, many, num) % {"num": num, **values}

    def ago(self, at: int | None) -> str:
        """Return the time since then in words: "3 hours"."""
        now = clock.now()
        return format_timedelta(max(0, now - (at or now)), granularity="second", threshold=1.2, locale=self.name)

    def sentences(self, *texts: str) -> str:
        """Join sentences; Chinese has no space between them."""
        return ("" if self.name == "zh" else " ").join(filter(None, texts))


language_of = cache(Language)
