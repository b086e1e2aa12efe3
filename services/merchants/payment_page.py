"""Merchants' settings of the payment page: addresses of the shop, contact, color and logo (docs/returning.md)."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from marshmallow import ValidationError

from models.db.base import database
from models.db.writer import after_commit, transaction
from models.tables.merchant import Merchant, PaymentPage
from models.tables.order import Order
from runtime import clock
from schemas.messages import flat
from schemas.payment_page import PLACEHOLDER, PaymentPageSettings
from services.errors import N_, OperatorError
from services.merchants import cache, edit_conflicts
from services.platform import images
from services.platform.images import Picture

TEXTS = tuple(PaymentPageSettings().fields)
LARGEST_LOGO = 100 * 1024  # bytes
SIDES = (16, 2_000)  # pixels of a logo


def of_merchant(merchant: Merchant) -> PaymentPage:
    """Return the merchant's settings; unsaved ones, all empty, if it has none."""
    return PaymentPage.get_or_none(PaymentPage.merchant == merchant) or PaymentPage(merchant=merchant)


def checked(facts: dict[str, Any]) -> dict[str, str]:
    """Validate settings, and return them as they are stored. Raises OperatorError."""
    try:
        loaded: dict[str, str] = PaymentPageSettings().load(facts)
    except ValidationError as error:
        wrong = flat(error.messages)
        text = "; ".join(f"{name}: {message}" for name, messages in wrong.items() for message in messages)
        raise OperatorError(text, wrong) from None
    return loaded


@transaction
def change(merchant: Merchant, *, mark: str | None = None, logo: bytes | None = None, **facts: str) -> None:
    """Change a merchant's settings of the payment page.

    Args:
        mark: `version_of` the settings when their form was shown; None to skip the check.
        logo: an image; empty to remove it, None to keep it.
        facts: texts of TEXTS.

    Raises:
        OperatorError: invalid value, or the settings were changed since.
    """
    columns = checked(facts) | ({} if logo is None else _logo(logo))
    database.advisory_lock("payment_page", merchant.id)
    page = of_merchant(merchant)
    if mark is not None and mark != version_of(page):
        raise OperatorError(edit_conflicts.CONFLICT)
    after_commit(cache.forget)
    for name, value in (columns | {"updatetime": clock.now()}).items():
        setattr(page, name, value)
    page.save()


def version_of(page: PaymentPage) -> str:
    """Return a hash that changes with any of the settings; empty for unsaved ones."""
    return edit_conflicts.version_of(page) if page.id else ""


def _logo(content: bytes) -> dict[str, str]:
    if not content:
        return {"logo_type": "", "logo": "", "logo_digest": ""}
    if len(content) > LARGEST_LOGO:
        text = N_("The file is larger than %(most)s KB. Choose a smaller file.")
        raise OperatorError(text, "logo", most=str(LARGEST_LOGO // 1024))
    found = images.checked(content, "logo", (images.PNG, images.JPEG, images.WEBP), SIDES)
    encoded = base64.b64encode(found.content).decode()
    return {"logo_type": found.content_type, "logo": encoded, "logo_digest": found.digest}


def logo(merchant: Merchant) -> Picture | None:
    """Return the merchant's logo, or None."""
    return _picture(of_merchant(merchant))


def logo_with(digest: str) -> Picture | None:
    """Return the logo with this digest, or None."""
    return _picture(PaymentPage.get_or_none(PaymentPage.logo_digest == digest))


def _picture(page: PaymentPage | None) -> Picture | None:
    return Picture(page.logo_type, base64.b64decode(page.logo), page.logo_digest) if page and page.logo else None


def filled(template: str, order: Order) -> str:
    """Return an address with the numbers of an order in place of its placeholders."""
    return PLACEHOLDER.sub(lambda found: quote(getattr(order, found[1]) or "", safe=""), template)
