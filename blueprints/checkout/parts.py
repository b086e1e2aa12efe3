"""Parts of the payment page: the merchant's look, languages, QR codes, lines of a transfer, the order's state."""

from __future__ import annotations

import base64
import io
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import segno
from babel import Locale
from flask import g, url_for
from flask_babel import gettext

from blueprints.api import envelope
from models.tables.order import Order
from models.tables.refund import Refund
from runtime import clock
from runtime.clock import in_china
from runtime.money import hundredths
from services.callbacks import returns
from services.deposits.progress import Progress, of_deposit
from services.errors import N_
from services.merchants import cache, payment_page

APPS = {"wechat": N_("WeChat"), "alipay": N_("Alipay"), "qq": N_("QQ")}  # browsers inside an app
# Apps in which a payment method can't be used, because they belong to its competitor.
CLOSED_TO = {"wxpay": ("alipay", "qq"), "alipay": ("wechat", "qq")}

LANGUAGES = {"en": ("en", "English"), "zh": ("zh-CN", "中文")}
LANGUAGE_COOKIE = "payer_language"
EVEN = 0.179  # luminance of a color on which black and white have the same contrast
SHEET = {"light": 1.0, "dark": 0.011}  # luminance of the page's sheet, by color scheme, as in pages.css
READABLE = 5.5  # contrast of colored text to the sheet: enough for 4.5 on a background tinted with the color
GROUPED_FROM = 12  # digits of an account number that is shown in groups of four


def app_closed_to(method: str, browser: str) -> str:
    """Return the name of the app whose browser shows the page if the payment method can't be used in it, or ""."""
    return gettext(APPS[browser]) if browser in CLOSED_TO.get(method, ()) else ""


def look_of(order: Order) -> dict[str, Any]:
    """Return the merchant's settings of the page for templates; before there is an order, of an unsaved one.

    `nonce` is for the style with the color; the response's policy names it, too.
    """
    page = cache.by_id(order.merchant_id).page
    if page.color:
        g.style_nonce = secrets.token_urlsafe(16)
    return {
        "logo": url_for("pages.logo", digest=page.logo_digest) if page.logo_digest else "",
        "color": page.color,
        "on_color": _readable_on(page.color) if page.color else "",
        "accents": {scheme: _readable_as_text(page.color, sheet) for scheme, sheet in SHEET.items() if page.color},
        "nonce": g.get("style_nonce"),
        "contact": page.contact,
        "new_order_url": payment_page.filled(page.new_order_url, order),
    }


def _luminance(channels: Sequence[int]) -> float:
    """Return the luminance, from 0 to 1, of a color's red, green and blue from 0 to 255 (WCAG 2.2)."""
    shares = [each / 255 for each in channels]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _readable_on(color: str) -> str:
    """Return black or white, whichever has more contrast to a color such as #1677ff."""
    return "#000" if _luminance(bytes.fromhex(color[1:])) > EVEN else "#fff"


def _readable_as_text(color: str, sheet: float) -> str:
    """Return the color, mixed with as much black or white as it needs to be readable on a sheet of this luminance."""
    end = 0 if sheet > EVEN else 255
    for share in range(0, 101, 5):
        mixed = [(each * (100 - share) + end * share) // 100 for each in bytes.fromhex(color[1:])]
        darker, lighter = sorted((_luminance(mixed), sheet))
        if (lighter + 0.05) / (darker + 0.05) >= READABLE:
            break
    return f"#{bytes(mixed).hex()}"


def other_language(order_no: str) -> dict[str, str]:
    """Return the link to the page in the other language: `url`, `tag`, `name`."""
    own: Locale = envelope.language()
    other = next(name for name in LANGUAGES if name != own.language)
    tag, name = LANGUAGES[other]
    return {"url": url_for("pages.language", order_no=order_no, to=other), "tag": tag, "name": name}


@lru_cache(maxsize=512)
def code_image(text: str) -> bytes:
    """Return a QR code as a PNG. Cached, since drawing takes 5 ms."""
    picture = io.BytesIO()
    segno.make(text, error="m").save(picture, kind="png", scale=8, border=4)
    return picture.getvalue()


def inline_code(text: str) -> str:
    """Return a QR code as the address of an image that needs no other request; empty without a text.

    As an image, because a payer can save it by pressing and holding, also in a browser that downloads nothing.
    """
    return f"data:image/png;base64,{base64.b64encode(code_image(text)).decode()}" if text else ""


@dataclass(frozen=True)
class TransferLine:
    """A value that the payer enters in a transfer: as it is shown, and as it is copied."""

    label: str
    shown: str
    copied: str


def transfer_lines(lines: Iterable[tuple[str, str]]) -> list[TransferLine]:
    """Return the lines of a transfer. Long numbers are shown in groups of four. Numbers are copied without spaces."""
    found = []
    for label, value in lines:
        shown, copied, digits = value, value, "".join(value.split())
        if digits.isascii() and digits.isdigit():
            copied = digits
            if len(digits) >= GROUPED_FROM:
                shown = " ".join(digits[at : at + 4] for at in range(0, len(digits), 4))
        found.append(TransferLine(gettext(label), shown, copied))
    return found


def shown_refunds(refunds: Iterable[Refund]) -> list[tuple[str, str]]:
    """Return each refund's amount in yuan, and the time of its completion; "" while it is in progress."""
    ends = [f"{in_china(each.completedtime):%Y-%m-%d %H:%M:%S}" if each.completedtime else "" for each in refunds]
    return [(hundredths(each.amount), end) for each, end in zip(refunds, ends, strict=True)]


def live(order: Order, progress: Progress | None = None) -> dict[str, Any]:
    """Return the values that change while the page is open: those of `PaymentState`, without `ready` and `moved`."""
    progress = progress or of_deposit(order)
    return {
        "status": order.status,
        "state": progress.state,
        "checking": progress.is_checked,
        "seconds_left": max(0, (order.expires_at or 0) - clock.now()),
        "received_at": progress.received_at,
        "can_return": progress.state != "refunded" and bool(returns.address(order)),
    }
