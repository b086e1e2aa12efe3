"""Texts in a given language, also outside of requests: translations, and times in words."""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Any

from babel.dates import format_timedelta
from babel.messages.mofile import read_mo

from runtime import clock, settings

CATALOGS = settings.ROOT / "blueprints" / "translations"
_VALUE = re.compile(r"%\((\w+)\)s")
_LEAST = 6  # letters of a text with values, apart from these, that make it unmistakable


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
        return self._catalog.ngettext(one, many, num) % {"num": f"{num:,}", **values}

    @cached_property
    def _with_values(self) -> list[tuple[str, str, re.Pattern[str]]]:
        """Each text with values, those with the most letters first: its beginning, the text, its pattern."""
        path = CATALOGS / self.name / "LC_MESSAGES" / "messages.mo"
        with path.open("rb") as file:
            texts = [message.id for message in read_mo(file) if isinstance(message.id, str) and "%(" in message.id]
        found = []
        for text in texts:
            fixed, names = _VALUE.split(text)[::2], _VALUE.findall(text)
            letters = sum(char.isalpha() for part in fixed for char in part)
            if letters >= _LEAST and len(set(names)) == len(names):
                groups = [f"(?P<{name}>.+)" for name in names]
                parts = [each for pair in zip(map(re.escape, fixed), [*groups, ""], strict=True) for each in pair]
                found.append((letters, fixed[0], text, re.compile("".join(parts), re.DOTALL)))
        return [each[1:] for each in sorted(found, key=lambda each: -each[0])]

    def known(self, text: str, called: Callable[[str, str], str] = lambda name, value: value) -> str:
        """Translate a text that the service wrote in English and stored, such as a driver's; return others unchanged.

        Args:
            called: returns the displayed form of a value, by its name and the value.
        """
        if self.name == "en" or not text:
            return text
        if (translated := self.gettext(text)) != text and " " in text:
            return translated
        if (found := self._of_pattern(text)) is None:
            return text
        template, values = found
        return self.gettext(template, **{name: called(name, self.known(value)) for name, value in values.items()})

    @lru_cache(maxsize=4096)  # noqa: B019  as many as there are languages
    def _of_pattern(self, text: str) -> tuple[str, dict[str, str]] | None:
        for beginning, template, pattern in self._with_values:
            if text.startswith(beginning) and (found := pattern.fullmatch(text)):
                return template, found.groupdict()
        return None

    def ago(self, at: int | None) -> str:
        """Return the time since then in words: "3 hours"."""
        now = clock.now()
        text = format_timedelta(max(0, now - (at or now)), granularity="second", threshold=1.2, locale=self.name)
        return re.sub(r"(?<=\d)(?=[^\d\s])", " ", text)  # as in all other Chinese texts

    def sentences(self, *texts: str) -> str:
        """Join sentences; Chinese has no space between them."""
        return ("" if self.name == "zh" else " ").join(filter(None, texts))


language_of = cache(Language)
