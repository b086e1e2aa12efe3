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
class Refused:
    """One request of a demo merchant with a bad signature, as received. `at`: Unix time, `path` of the address."""

    number: int
    at: int
    api_key: str
    path: str
    query: str
    body: bytes

    @property
    def endpoint(self) -> str:
        """The endpoint's name: the last part of the path, or all of it for epay."""
        name = self.path.rsplit("/", 1)[-1]
        return name if name in ENDPOINTS else self.path.strip("/")


_refused: Part[deque[Refused]] = Part(lambda: deque(maxlen=KEPT))  # newest first
_lock = threading.Lock()


def _recent() -> list[Refused]:
    with _lock:
        return list(_refused())


def explain_refused(merchant: Merchant, text: str) -> str:
    """Return the server's string to sign. Store a demo merchant's request and append the address that explains it."""
    details = [gettext("the server's string to sign is %(text)s", text=repr(text))]
    if merchant.demo:
        details.append(_kept(merchant, request.query_string.decode(errors="replace"), request.get_data()))
    return "; ".join(details)


def explain_refused_epay(merchant: Merchant, fields: Mapping[str, str]) -> str:
    """Store a demo merchant's epay request, and return the address that explains it; empty if it is not stored.

    A request with the merchant's key is not.
    """
    return _kept(merchant, urlencode(fields), b"") if merchant.demo and "key" not in fields else ""


def _kept(merchant: Merchant, query: str, body: bytes) -> str:
    with _lock:
        kept = _refused()
        number = kept[0].number + 1 if kept else 1
        kept.appendleft(Refused(number, int(time.time()), merchant.key, request.path, query, body))
    url = f"{current().settings.public_url}/sandbox/sign?refused={number}"
    return gettext("line by line: %(url)s", url=url)


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


@sandbox.get("/sign")
def signature_page() -> str:
    """Explain the newest refused request, or the one with the number `refused`; show a form for any other.

    With `protocol`, which is `api` or `epay`, show the form only.
    """
    wanted, protocol = request.args.get("refused", ""), request.args.get("protocol", "")
    kept = [] if protocol else _recent()
    shown = next((one for one in kept if not wanted or str(one.number) == wanted), None)
    if shown is None:
        empty = Form(epay.NAME, "") if protocol == epay.NAME else Form("createOrder", demo.signed_wrongly())
        return _page(empty, None, lost=bool(wanted))
    if shown.endpoint in ENDPOINTS:
        form = Form(shown.endpoint, shown.body.decode(errors="replace"), shown.query, shown.api_key)
        told = merchant_api.explain(shown.path, shown.body, shown.query, _keys(shown.api_key), now=shown.at)
        return _page(form, told, shown)
    sent = f"{shown.path}?{shown.query}"
    return _page(Form(epay.NAME, sent), epay.explain(sent, _account, now=shown.at), shown)


@sandbox.post("/sign")
def explain_signature() -> str:
    """Explain the request in the form. None of it is stored."""
    form = Form(**{field.name: request.form.get(field.name, "") for field in fields(Form)})
    secret, signature = request.form.get("secret", "").strip(), form.signature.strip() or None
    theirs = form.theirs.replace("\r\n", "\n")  # as browsers send it
    if "\n" not in theirs:  # from an error message, with escape sequences for line ends
        theirs = theirs.replace("\\r", "\r").replace("\\n", "\n")
    if form.endpoint == epay.NAME:
        told = epay.explain(form.body, _account, secret, theirs=theirs or None, signature=signature)
        without_key = replace(form, body=epay.without_key(form.body), theirs=form.theirs and (told.their_text or ""))
        return _page(without_key, told)
    if form.endpoint not in ENDPOINTS:
        raise ValidationError({"endpoint": [Message(N_("Must be one of: %(choices)s."), choices=", ".join(ENDPOINTS))]})
    told = merchant_api.explain(
        f"{current().settings.api_prefix}/merchant/{form.endpoint}",
        form.body.strip().encode(),
        form.query.strip().removeprefix("?"),
        Keys(valid=(secret,)) if secret else _keys(form.api_key),
        theirs=theirs or None,
        signature=signature,
    )
    return _page(form, told)


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
        "sign.html",
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
