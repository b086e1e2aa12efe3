"""`/sandbox/sign` explains the signature of a recently refused request or of any other."""

from __future__ import annotations

import re
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
from runtime.state import current
from schemas.messages import N_, Message
from services.sandbox import demo, rejected_signatures, simulator
from services.sandbox.rejected_signatures import Unsigned
from services.sandbox.signature_help import epay, merchant_api
from services.sandbox.signature_help.explanation import WHY_LEFT_OUT, Explanation, Keys, name_of, visible
from services.sandbox.signature_help.merchant_api import ENDPOINTS


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
    number = rejected_signatures.keep(merchant.key, request.path, query, body)
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


def _keys(api_key: str) -> Keys:
    """Return the secrets of a demo merchant; none for other merchants, whose secrets must not be used here."""
    merchant = Merchant.get_or_none(Merchant.key == api_key, Merchant.demo)
    return merchant_api.keys_of(merchant) if merchant else Keys()


def _pasted(text: str) -> str | None:
    """Return a pasted text with its original line ends; None if empty.

    Browsers send `\\r\\n`, and a text from an error message has escape sequences instead of line ends.
    """
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\\r", "\r").replace("\\n", "\n")
    return text or None


def _account(pid: str) -> EpayAccount | None:
    """Return a demo merchant's account at the epay gateway, or None."""
    demos = Merchant.select(Merchant.id).where(Merchant.demo)
    number = int(pid) if re.fullmatch("[0-9]{1,9}", pid) else 0
    return EpayAccount.get_or_none(EpayAccount.pid == number, EpayAccount.merchant.in_(demos))


def _of_refused(one: Unsigned) -> tuple[Form, Explanation]:
    if one.endpoint not in ENDPOINTS:
        sent = f"{one.path}?{one.query}"
        return Form(epay.NAME, sent), epay.explain(sent, _account, now=one.at)
    told = merchant_api.explain(one.path, one.body, one.query, _keys(one.api_key), now=one.at)
    return Form(one.endpoint, one.body.decode(errors="replace"), one.query, one.api_key), told


def _of_form() -> tuple[Form, Explanation]:
    form = Form(**{field.name: request.form.get(field.name, "") for field in fields(Form)})
    secret, signature = request.form.get("secret", "").strip(), form.signature.strip() or None
    theirs = _pasted(form.theirs)
    if form.endpoint == epay.NAME:
        told = epay.explain(form.body, _account, secret, theirs=theirs, signature=signature)
        shown = replace(form, body=epay.without_key(form.body), theirs=form.theirs and (told.their_text or ""))
        return shown, told
    if form.endpoint not in ENDPOINTS:
        raise ValidationError({"endpoint": [Message(N_("Must be one of: %(choices)s."), choices=", ".join(ENDPOINTS))]})
    told = merchant_api.explain(
        f"{current().settings.api_prefix}/merchant/{form.endpoint}",
        form.body.strip().encode(),
        form.query.strip().removeprefix("?"),
        Keys(valid=(secret,)) if secret else _keys(form.api_key),
        theirs=theirs,
        signature=signature,
    )
    return form, told


def _page(form: Form, told: Explanation | None, shown: Unsigned | None = None, lost: bool = False) -> str:
    return render_template(
        "sign.html",
        form=form,
        told=told,
        shown=shown,
        lost=lost,
        lately=rejected_signatures.recent(),
        endpoints=ENDPOINTS,
        merchants=[merchant.key for merchant in simulator.merchants()],
        translated=translated,
        char=partial(name_of, translated=gettext),
        visible=visible,
        why=WHY_LEFT_OUT,
    )


@sandbox.get("/sign")
def signature_page() -> str:
    """Explain the newest refused request, or the one with the number `refused`; show a form for any other.

    With `protocol`, which is `api` or `epay`, show the form only.
    """
    wanted, protocol = request.args.get("refused", ""), request.args.get("protocol", "")
    kept = [] if protocol else rejected_signatures.recent()
    shown = next((one for one in kept if not wanted or str(one.number) == wanted), None)
    if shown:
        return _page(*_of_refused(shown), shown)
    empty = Form(epay.NAME, "") if protocol == epay.NAME else Form("createOrder", demo.signed_wrongly())
    return _page(empty, None, lost=bool(wanted))


@sandbox.post("/sign")
def explain_signature() -> str:
    """Explain the request in the form. None of it is stored."""
    return _page(*_of_form())
