"""A short name for a browser, from the text that it sends as User-Agent."""

from __future__ import annotations

from flask_babel import gettext

# The mark in the text, and the name. Most browsers also have the marks of those further down.
BROWSERS = {
    "MicroMessenger/": "WeChat",
    "Edg": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "HarmonyOS": "HarmonyOS",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


def short_name(text: str) -> str:
    """Return browser and system, such as "Chrome, Windows"; the text itself if it names neither."""
    found = [next((name for mark, name in names.items() if mark in text), "") for names in (BROWSERS, SYSTEMS)]
    return gettext(", ").join(filter(None, found)) or text
