"""The search of the header: orders, exceptions, merchants, channels, and pages of the console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flask import Blueprint, current_app, redirect, render_template, request, url_for
from flask_babel import force_locale, lazy_gettext
from marshmallow import ValidationError

from blueprints.console.access import current_user
from blueprints.console.columns import channel_link, merchant_link, refund_link
from blueprints.console.filters import LONGEST
from blueprints.console.locale import LANGUAGES
from blueprints.console.pages import new_order
from models.tables.operator import ADMINISTRATOR, OPERATOR, VIEWER
from models.tables.refund import Refund
from runtime.money import hundredths
from schemas.fields import Yuan
from services.console import search

pages = Blueprint("search", __name__, url_prefix="/search")

# Pages that are not in the menu: endpoint, label, icon, and the role that it needs.
OTHER_PAGES = (
    (*new_order.NEW, "plus", OPERATOR),
    ("merchant.new", lazy_gettext("New merchant"), "plus", ADMINISTRATOR),
    ("channel.new", lazy_gettext("New channel"), "plus", ADMINISTRATOR),
    ("sign_in.password", lazy_gettext("Change password"), "key", VIEWER),
    ("second_factor.index", lazy_gettext("Two-factor authentication"), "lock", VIEWER),
    ("sign_in.own_sessions", lazy_gettext("Sessions"), "devices", VIEWER),
)


def _pages(text: str) -> list[tuple[str, Any, str, str]]:
    """Return address, label, no note, and icon of the pages whose name has the text, in any language."""
    menu = current_app.config["MENU"]
    known: Iterable[tuple[str, Any, str, str]] = (
        *((f"{item.blueprint}.index", item.label, item.icon, VIEWER) for _, items in menu for item in items),
        *OTHER_PAGES,
    )

    wanted, found = text.casefold(), []
    for endpoint, label, icon, role in known:
        names = []
        for locale in LANGUAGES.values():
            with force_locale(locale):
                names.append(str(label).casefold())
        # A word of the name starts with the text. Chinese has no spaces between words.
        fits = any(f" {wanted}" in f" {name}" if wanted.isascii() else wanted in name for name in names)
        if fits and current_user.has(role):
            found.append((url_for(endpoint), label, "", icon))
    return found


@pages.get("/")
def index() -> Any:
    """Show what the text finds; open the order if it is the number of exactly one."""
    text = request.args.get("q", "").strip()[:LONGEST]
    if not text or not text.isprintable():
        return render_template("console/search.html", text="", hits=None)
    try:
        fen = Yuan().deserialize(text.lstrip("¥￥").replace(",", "").strip())
    except ValidationError:
        fen = None  # the text does not state an amount
    exact = search.exactly(text)
    if len(exact) == 1 and (fen is None or exact[0].order_no == text):
        return redirect(url_for("order.show", order_no=exact[0].order_no))
    if (refund := Refund.find(text)) is not None:
        return redirect(refund_link(refund))
    hits = search.find(text, fen)
    return render_template(
        "console/search.html",
        text=text,
        fen=fen,
        plain=hundredths(fen) if fen else "",
        hits=hits,
        recent=search.RECENT,
        found_pages=_pages(text),
        found_merchants=[(merchant_link(each), each.name, each.key, "merchants") for each in hits.merchants],
        found_channels=[(channel_link(each), each.name, str(each.id), "channels") for each in hits.channels],
    )
