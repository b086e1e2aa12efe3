"""The content of a notification: a subject, and a line for each finding. It has no personal data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from runtime import settings
from runtime.state import current
from services.errors import N_
from services.platform.language import language_of

NEW, WORSE, RESOLVED, EASED, OPEN = ("new", "worse", "resolved", "eased", "open")
FINDINGS, DIGEST, TEST = ("findings", "digest", "test")
# How a finding's sentence is shown, by its change.
FORMS = {
    NEW: N_("New: %(text)s"),
    WORSE: N_("Now urgent: %(text)s"),
    RESOLVED: N_("Resolved: %(text)s"),
    EASED: N_("No longer urgent: %(text)s"),
    OPEN: N_("Open: %(text)s"),
}


@dataclass(frozen=True)
class Message:
    """One message. `id` is the same on every attempt; `lines` are objects of change, kind, severity, text, page.

    `page` is a path in the console, or empty.
    """

    id: str
    event: str
    lines: list[dict[str, str]]
    language: str
    at: int

    @property
    def url(self) -> str:
        """The address of the console's overview."""
        return f"{current().settings.public_url}/console/"

    @property
    def subject(self) -> str:
        """One line with the site and the number of changes or findings."""
        words, count = language_of(self.language), len(self.lines)
        if self.event == TEST:
            summary = words.gettext("Test notification")
        elif self.event == DIGEST:
            summary = words.ngettext("Daily digest: %(num)s finding", "Daily digest: %(num)s findings", count)
        else:
            summary = words.ngettext("%(num)s change", "%(num)s changes", count)
        return f"[{words.gettext(settings.NAME)} {urlsplit(self.url).netloc}] {summary}"

    def text(self, limit: int) -> str:
        """Return the whole message as text, at most `limit` bytes in UTF-8. Lines that do not fit are counted."""
        words = language_of(self.language)
        forms = [FORMS[line["change"]] for line in self.lines]
        lines = [
            " ".join(filter(None, (words.gettext(form, text=line["text"]), self._address(line))))
            for form, line in zip(forms, self.lines, strict=True)
        ]
        if self.event == TEST:
            lines = [words.gettext("Notifications to this destination work.")]
        elif not lines:
            lines = [words.gettext("Nothing needs attention.")]
        shown = len(lines)
        while True:
            more = [words.gettext("%(count)s more in the console.", count=len(lines) - shown)]
            whole = "\n".join([self.subject, *lines[:shown], *(more if shown < len(lines) else ()), self.url])
            if not shown or len(whole.encode()) <= limit:
                return whole
            shown -= 1

    @property
    def data(self) -> dict[str, Any]:
        """The content as JSON, for programs: each finding has the `url` of its page."""
        names = ("change", "kind", "severity", "text")
        findings = [
            {name: line[name] for name in names} | {"url": self._address(line) or self.url} for line in self.lines
        ]
        return {"subject": self.subject, "findings": findings, "url": self.url}

    def _address(self, line: dict[str, str]) -> str:
        """Return the address of a finding's own page; "" if it has none. Messages of older versions have none."""
        return f"{self.url}{page}" if (page := line.get("page", "")) else ""
