"""The search of the header: orders, exceptions, merchants, channels, and pages of the console."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Any

from flask import Blueprint, current_app, redirect, render_template, request, url_for
from flask_babel import force_locale, lazy_gettext
from marshmallow import ValidationError

from blueprints.console import labels
from blueprints.console.access import current_user
from blueprints.console.columns import (
    Column,
    channel_link,
    marked,
    merchant_link,
    order_link,
    refund_link,
    status_of,
)
from blueprints.console.filters import LONGEST
from blueprints.console.locale import LANGUAGES, zone
from blueprints.console.pages import new_order
from models.tables.operator import ADMINISTRATOR, OPERATOR, VIEWER
from models.tables.refund import Refund
from runtime import clock
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


# How people write amounts and times, and what it means here.
_HOURS = {"十二": 12, "十一": 11, "两": 2} | {word: hour for hour, word in enumerate("一二三四五六七八九十", 1)}
_WORDS = {
    **{f"{word}点": f" {hour}点" for word, hour in _HOURS.items()},
    "点半": ":30 ",
    "点一刻": ":15 ",
    "点三刻": ":45 ",
    "：": ":",
    "点": ":",
    "分": " ",
    "元": " ",
    "块": " ",
    "¥": " ",
    "￥": " ",
    "月": "-",
    "日": " ",
    "号": " ",
    "今天": " today ",
    "昨天": " yesterday ",
    **{word: f" {word}" for word in ("上午", "早上", "凌晨", "中午", "下午", "晚上")},
}
_CENTS = re.compile(r"(?<=\d)[元块](\d(?!\S)|\d{2}(?=分))", re.ASCII)  # 199块5 and 199元50分
_CLOCK = re.compile(
    r"(?<!\S)(?:(?P<part>[上下中]午|早上|凌晨|晚上)\s*)?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})?(?::\d{2})?(?:\s*(?P<half>[ap])m)?(?!\S)",
    re.ASCII | re.IGNORECASE,
)
_AFTERNOON = ("p", "P", "中午", "下午", "晚上")
_DAY = re.compile(r"(?:(?P<year>20\d{2})[-/.])?(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})", re.ASCII)
_DAYS_AGO = {"today": 0, "yesterday": 1}


def _amount(text: str) -> int | None:
    """Return the amount that the text states, in fen; None if it is none."""
    try:
        return int(Yuan().deserialize(text.lstrip("¥￥").removesuffix("元").replace(",", "").strip()))
    except ValidationError:
        return None


def _amount_and_time(text: str) -> tuple[int, datetime | None] | None:
    """Return the amount in fen and the time that the text states, such as "199 19:15"; None if it has another form.

    The parts have any order, a day may be one of them, and the time can end with am or pm. Without a day it is today,
    or yesterday if that time of today has not come; a day without a year is the last such day. The time is None if
    there is no such day or time.
    """
    text = _CENTS.sub(r".\1", text)
    for word, meaning in _WORDS.items():
        text = text.replace(word, meaning)
    found = _CLOCK.search(text)
    # A part that could be the amount or the day is the day if another one can only be the amount.
    rest = sorted(
        _CLOCK.sub(" ", text, count=1).split(), key=lambda part: (_amount(part) is None, bool(_DAY.fullmatch(part)))
    )
    if not found or len(rest) not in (1, 2) or (fen := _amount(rest[0])) is None:
        return None
    latest = datetime.fromtimestamp(clock.now() + search.AROUND, zone())
    hour, half, said = int(found["hour"]), found["part"] or found["half"], "".join(rest[1:])
    if half:
        # Midnight and the hours after it are not a time of the evening: they belong to the next day.
        is_night = half == "晚上" and hour % 12 < 5
        is_noon = half == "中午" and hour in (10, 11)
        hour = 24 if is_night else hour if is_noon else hour % 12 + (12 if half in _AFTERNOON else 0)
    try:
        at = datetime.combine(latest, time(hour, int(found["minute"] or 0)), zone())
        if day := _DAY.fullmatch(said):
            at = at.replace(int(day["year"] or at.year), int(day["month"]), int(day["day"]))
            if not day["year"] and at > latest:
                at = at.replace(at.year - 1)
        elif said:
            at -= timedelta(_DAYS_AGO[said.lower()])
        elif at > latest:
            at -= timedelta(1)
        return fen, at
    except (ValueError, KeyError):
        return fen, None


def _columns(text: str) -> list[Column]:
    """Return the columns of orders, the numbers by which the text found one among them."""

    def numbers(order: Any) -> str:
        by_reference = order.channel_reference.casefold().endswith(text.casefold())
        return " · ".join(filter(None, (order.merchant_order_no, order.channel_reference if by_reference else "")))

    return [
        Column("order_no", lazy_gettext("Order"), lambda order: order.order_no, link=order_link, note=numbers),
        Column(
            "type",
            lazy_gettext("Type"),
            lambda order: labels.name_of(labels.TYPES, order.order_type),
            note=lambda order: labels.name_of(labels.METHODS, order.payment_method),
        ),
        Column("merchant", lazy_gettext("Merchant"), lambda order: order.merchant.name),
        Column("createtime", lazy_gettext("Created"), lambda order: order.createtime, "time"),
        Column("amount", lazy_gettext("Amount (¥)"), lambda order: order.amount, "money"),
        Column("status", lazy_gettext("Status"), lambda order: marked(order, status_of(order)), "states"),
    ]


@pages.get("/")
def index() -> Any:
    """Show what the text finds; open the order if it is the number of exactly one."""
    text = request.args.get("q", "").strip().lstrip("*…")[:LONGEST]  # lists show the ends of accounts so
    if not text or not text.isprintable():
        return render_template("console/search.html", text="", hits=None)
    timed = _amount_and_time(text)
    fen, at = timed or (_amount(text), None)
    exact = search.exactly(text)
    if len(exact) == 1 and (fen is None or exact[0].order_no == text):
        return redirect(url_for("order.show", order_no=exact[0].order_no))
    if (refund := Refund.find(text)) is not None:
        return redirect(refund_link(refund))
    # Only roles that can see the whole name on the page of an order can search for it.
    is_name = current_user.may_act and len(text) > 1 and not any(map(str.isdigit, text))
    hits = search.find(text, fen, int(at.timestamp()) if at else None, payers=is_name)
    wanted = {"flt_least": hundredths(fen), "flt_most": hundredths(fen)} if fen else {}  # of the list of orders
    if at and not hits.at_other_times:
        around = timedelta(seconds=search.AROUND)
        wanted |= {"flt_since": f"{at - around:%Y-%m-%dT%H:%M}", "flt_until": f"{at + around:%Y-%m-%dT%H:%M}"}
    return render_template(
        "console/search.html",
        text=text,
        fen=fen,
        at=at,
        wrong_time=timed and at is None,
        wanted=wanted,
        hits=hits,
        columns=_columns(text),
        search=search,
        ends=at is None and len(text) >= search.LEAST_END,
        found_pages=_pages(text),
        found_merchants=[(merchant_link(each), each.name, each.key, "merchants") for each in hits.merchants],
        found_channels=[(channel_link(each), each.name, str(each.id), "channels") for each in hits.channels],
    )
