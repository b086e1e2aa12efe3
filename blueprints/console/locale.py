"""The reader's language and time zone, and formats for amounts, times and untrusted texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import flask_babel
from babel import Locale
from flask import Flask, Response, redirect, request
from flask_babel import format_datetime, gettext
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from blueprints.api import envelope
from runtime import clock, settings
from runtime.money import grouped, hundredths
from runtime.state import current

LANGUAGES = {"en": Locale("en"), "zh": Locale("zh", "CN", script="Hans")}
NAMES = {"en": "English", "zh": "中文"}
YEAR = 365 * 86_400
# A path in the console, and a query. The paths need no percent signs. Without them no decoding reveals a dot segment,
# which would lead out of the console, and without an empty segment none names another host.
_PATH = re.compile(r"(?=/)(/(?!\.{1,2}([/?]|\Z))[A-Za-z0-9._-]+)*/?(\?[\x21-\x7e]*)?")


def language() -> Locale:
    """Return the chosen language, otherwise the browser's."""
    chosen = request.cookies.get("console_language", "")
    return LANGUAGES[chosen if chosen in LANGUAGES else envelope.language().language]


def tag() -> str:
    """Return the language tag for HTML."""
    return {"zh": "zh-CN"}.get(language().language, "en")


def sentences(*texts: Any) -> str:
    """Join sentences; Chinese has no space between them."""
    return ("" if language().language == "zh" else " ").join(str(text) for text in texts if text)


@lru_cache(maxsize=128)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # unknown zone, invalid file name, or folder
        return ZoneInfo("UTC")


def zone() -> ZoneInfo:
    """Return the browser's time zone from the cookie that console.js sets; UTC without it."""
    return _zone(request.cookies.get("console_zone", "UTC")[:64])


def local_time(timestamp: int | None) -> datetime | None:
    """Convert a Unix time to the reader's zone; None for none."""
    return datetime.fromtimestamp(timestamp, zone()) if timestamp else None


def time_tag(timestamp: int | None) -> Markup:
    """Format a Unix time as a `<time>` element in the reader's zone; empty for none.

    Narrow lists show `data-short` instead: without the present year and without seconds.
    """
    at = local_time(timestamp)
    if at is None:
        return Markup("")
    year = datetime.fromtimestamp(clock.now(), zone()).year
    short = f"{at:%m-%d %H:%M}" if at.year == year else f"{at:%Y-%m-%d}"
    return Markup('<time datetime="{}" title="{}" data-short="{}">{}</time>').format(
        at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} {at.tzname()}", short, f"{at:%Y-%m-%d %H:%M:%S}"
    )


def percent(points: int) -> str:
    """Format basis points as percent: 60 -> "0.60 %"."""
    return f"{hundredths(points)} %"


class Grouped(int):
    """A number whose text has separators of thousands: 1,234."""

    def __str__(self) -> str:
        return f"{self:,}"


def ngettext(one: str, many: str, num: int, **values: Any) -> str:
    """Translate the form of a text for this number, with its thousands separated."""
    return str(flask_babel.ngettext(one, many, Grouped(num), **values))


def html_text(text: str, /, **values: Any) -> str:
    """Translate a text of a page. A value that is HTML remains so; all others are escaped."""
    return escape(gettext(text)) % values if values else gettext(text)


def _of_templates(translate: Any) -> Callable[..., str]:
    """Return the `ngettext` of the templates with separators of thousands."""

    @pass_context
    def ngettext(context: Context, one: str, many: str, num: int, **values: Any) -> str:
        translated: str = translate(context, one, many, Grouped(num), **values)
        return translated

    return ngettext


def up_to_99(count: int) -> str:
    """Format a count of items: 100 -> "99+"."""
    return "99+" if count > 99 else str(count)


def internal_url(path: str) -> str:
    """Return the address of a path in the console; of the overview if the text could lead anywhere else.

    All redirects to a path in a request use it.
    """
    return request.script_root + (path if _PATH.fullmatch(path) else "/")


def _choose(language_name: str) -> Response:
    """Store the chosen language in a cookie and return to the page where it was chosen."""
    response = redirect(internal_url(request.args.get("to", "")))
    if language_name in LANGUAGES:
        response.set_cookie("console_language", language_name, max_age=YEAR, path=request.script_root, samesite="Lax")
    return response  # type: ignore[return-value]


def init(app: Flask) -> None:
    """Add the language switch, and the filters and variables of the templates."""
    app.add_url_rule("/language/<language_name>", "language", _choose)
    app.jinja_env.globals["ngettext"] = _of_templates(app.jinja_env.globals["ngettext"])
    app.jinja_env.filters.update(time=time_tag, yuan=grouped, percent=percent, up_to_99=up_to_99)

    @app.context_processor
    def _context() -> dict[str, Any]:
        own = language().language
        others = [(name, NAMES[name]) for name in LANGUAGES if name != own]
        return {
            "language": tag(),
            "languages": others,
            "zone": str(zone()),
            "here": request.full_path.rstrip("?"),
            "_": html_text,
            "format_datetime": format_datetime,
            "demo": current().settings.demo,
            "product": gettext(settings.NAME),
        }
