"""`/sandbox/sign` explains the signature of a recently refused request or of any other."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from urllib.parse import urlencode

from flask import render_template, request
from flask_babel import gettext
from marshmallow import ValidationError

from blueprints.api.envelope import translated
from blueprints.sandbox.access import sandbox
from models.tables.epay import EpayAccount
from models.tables.merchant import Merchant
from runtime.state import Part, current
from schemas.messages import N_, Message
from services.sandbox import demo, simulator
from services.sandbox.signature_help import epay, merchant_api
from services.sandbox.signature_help.explanation import WHY_LEFT_OUT, Explanation, Keys, name_of, visible
from services.sandbox.signature_help.merchant_api import ENDPOINTS

KEPT = 20


@dataclass(frozen=True)
class Form:
    """The values of the form. The secret is not among them, so that no page can contain it.

    `endpoint` is `epay` for a request of a shop's plug-in; then `body` is its address or its form.
    """

    endpoint: str
    body: str
    query: str = ""
    api_key: str = "demo"
    theirs: str = ""
    signature: str = ""


@dataclass(frozen=True)
class Refused:
    """One request of a demo merchant with a bad signature. `at`: Unix time, `endpoint`: as the page calls it."""

    number: int
    at: int
    endpoint: str
    form: Form


_refused: Part[deque[Refused]] = Part(lambda: deque(maxlen=KEPT))  # newest first
_lock = threading.Lock()


def _recent() -> list[Refused]:
    with _lock:
        return list(_refused())


def explain_refused(merchant: Merchant, text: str) -> str:
    """Return the server's string to sign. Store a demo merchant's request and append the address that explains it."""
    details = [gettext("the server's string to sign is %(text)s", text=repr(text))]
    if merchant.demo:
        endpoint = request.path.rsplit("/", 1)[-1]
        body, query = request.get_data().decode(errors="replace"), request.query_string.decode(errors="replace")
        details.append(_kept(endpoint, Form(endpoint, body, query, merchant.key)))
    return "; ".join(details)


def explain_refused_epay(merchant: Merchant, fields: Mapping[str, str]) -> str:
    """Store a demo merchant's epay request, and return the address that explains it; empty if it is not stored.

    A request with the merchant's key is not.
    """
    if not merchant.demo or "key" in fields:
        return ""
    form = Form(epay.NAME, f"{request.path}?{urlencode(fields)}", api_key=merchant.key)
    return _kept(request.path.strip("/"), form)


def _kept(endpoint: str, form: Form) -> str:
    with _lock:
        kept = _refused()
        number = kept[0].number + 1 if kept else 1
        kept.appendleft(Refused(number, int(time.time()), endpoint, form))
    url = f"{current().settings.public_url}/sandbox/sign?refused={number}"
    return gettext("line by line: %(url)s", url=url)


@sandbox.get("/sign")
def signature_page() -> str:
    """Explain the newest refused request, or the one with the number `refused`; show a form for any other.

    With `protocol`, which is `api` or `epay`, show the form only.
    """
    wanted, protocol = request.args.get("refused", ""), request.args.get("protocol", "")
    kept = [] if protocol else _recent()
    shown = next((one for one in kept if not wanted or str(one.number) == wanted), None)
    if shown:
        return _page(shown.form, _explanation(shown.form, now=shown.at), shown)
    empty = Form(epay.NAME, "") if protocol == epay.NAME else Form("createOrder", demo.signed_wrongly())
    return _page(empty, None, lost=bool(wanted))


@sandbox.post("/sign")
def explain_signature() -> str:
    """Explain the request in the form. None of it is stored."""
    form = Form(**{field.name: request.form.get(field.name, "").strip() for field in fields(Form)})
    theirs = request.form.get("theirs", "").replace("\r\n", "\n")  # as browsers send it
    if "\n" not in theirs:  # from an error message, with escape sequences for line ends
        theirs = theirs.replace("\\r", "\r").replace("\\n", "\n")
    form = replace(form, theirs=theirs)
    told = _explanation(form, request.form.get("secret", "").strip())
    if form.endpoint == epay.NAME:
        form = replace(form, body=epay.without_key(form.body), theirs=theirs and (told.their_text or ""))
    return _page(form, told)


def _explanation(form: Form, secret: str = "", now: float | None = None) -> Explanation:
    theirs, signature = form.theirs or None, form.signature or None
    if form.endpoint == epay.NAME:
        return epay.explain(form.body, _account, secret, theirs=theirs, signature=signature, now=now)
    if form.endpoint not in ENDPOINTS:
        raise ValidationError({"endpoint": [Message(N_("Must be one of: %(choices)s."), choices=", ".join(ENDPOINTS))]})
    return merchant_api.explain(
        f"{current().settings.api_prefix}/merchant/{form.endpoint}",
        form.body.encode(),
        form.query.removeprefix("?"),
        Keys(valid=(secret,)) if secret else _keys(form.api_key),
        theirs=theirs,
        signature=signature,
        now=now,
    )


def _keys(api_key: str) -> Keys:
    """Return the secrets of a demo merchant; none for other merchants, whose secrets must not be used here."""
    merchant = Merchant.get_or_none(Merchant.key == api_key, Merchant.demo)
    return merchant_api.keys_of(merchant) if merchant else Keys()


def _account(pid: str) -> EpayAccount | None:
    """Return a demo merchant's account at the epay gateway, or None."""
    demos = Merchant.select(Merchant.id).where(Merchant.demo)
    number = int(pid) if re.fullmatch("[0-9]{1,9}", pid) else 0
    return EpayAccount.get_or_none(EpayAccount.pid == number, EpayAccount.merchant.in_(demos))


def _page(form: Form, told: Explanation | None, shown: Refused | None = None, lost: bool = False) -> str:
    return render_template(
        "sandbox/signature_help.html",
        form=form,
        told=told,
        shown=shown,
        lost=lost,
        lately=_recent(),
        endpoints=ENDPOINTS,
        merchants=[merchant.key for merchant in simulator.merchants()],
        translated=translated,
        char=partial(name_of, translated=gettext),
        visible=visible,
        why=WHY_LEFT_OUT,
    )
