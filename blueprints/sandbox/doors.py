"""The blueprint of /sandbox, mounted in demo mode only: who may act, and how browsers and scripts are answered."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import Blueprint, Response, redirect, request, url_for
from marshmallow import Schema, ValidationError

from blueprints.api.envelope import ok
from blueprints.checkout.payment_page import POLICY
from models.tables.order import Order
from schemas.sandbox.forms import PlayForm
from services.errors import ApiError, Code, OperatorError
from services.sandbox import recording, simulator

sandbox = Blueprint("sandbox", __name__, url_prefix="/sandbox")

JSON = "application/json"


@sandbox.before_request
def _only_from_here() -> None:
    if request.method not in ("GET", "HEAD") and _is_of_another_site():
        raise ApiError(Code.ADDRESS_NOT_ALLOWED, detail="the form is another site's")


def _is_of_another_site() -> bool:
    """Does a page of somebody else's make the browser send this? Scripts say nothing of where they are."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is not None and origin.partition("://")[2] != request.host


@sandbox.after_request
def _strict(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Vary"] = "Accept, Accept-Language"
    return response


def explained(view: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the reason why something is not possible into a documented refusal."""

    @wraps(view)
    def guarded(**parts: Any) -> Any:
        try:
            return view(**parts)
        except OperatorError as error:
            if error.wrong:
                raise ValidationError(dict(error.wrong)) from None
            raise ApiError(Code.INVALID_FIELDS, detail=str(error)) from None

    return guarded


def form_of(schema: Schema) -> dict[str, Any]:
    """The form that was sent, by its schema. Raises ValidationError."""
    loaded: dict[str, Any] = schema.load(request.form.to_dict())
    return loaded


def wants_json() -> bool:
    """Does the caller ask for JSON by name?"""
    return request.accept_mimetypes.best_match(["text/html", JSON]) == JSON and bool(request.accept_mimetypes)


def wants_page() -> bool:
    """Is it a browser?"""
    return request.accept_mimetypes.best_match([JSON, "text/html"]) == "text/html"


def done(data: Any, page: str = "sandbox.index", **values: Any) -> Any:
    """What was done: as JSON to a script; a browser goes to a page."""
    return redirect(url_for(page, **values), 303) if wants_page() else ok(data)


@sandbox.post("/pay")
def pay() -> Any:
    """Play an outcome for an order, now or later.

    A browser goes back to the cashier or the simulator, a script gets the order's state.
    """
    form = form_of(PlayForm())
    order = Order.get_or_none(Order.order_no == form["order_no"])
    driver = simulator.sandbox_driver(order) if order else None
    if order is None or driver is None:
        raise ApiError(Code.ORDER_NOT_FOUND)
    if form["after"]:
        simulator.plan(order, form["outcome"], form["after"])
    else:
        simulator.play(order, driver, form["outcome"])
    after = {"after": form["after"]} if form["after"] else {}
    recording.note({"do": "pay", "outcome": form["outcome"], **after}, order.order_no)
    said = {"order_no": order.order_no, "outcome": form["outcome"], "status": Order.get_by_id(order.id).status}
    if not wants_page():
        return ok(said)
    if request.form.get("from") == "simulator":
        return redirect(url_for("sandbox.index"), 303)
    if order.is_buy:
        return redirect(url_for("pages.index", order_no=order.order_no, played=form["outcome"]), 303)
    return ok(said)
