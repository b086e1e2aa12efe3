"""Confirmation of sensitive requests with the second factor or the password."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Flask, redirect, render_template, request, url_for
from flask_babel import lazy_gettext
from flask_wtf import FlaskForm
from wtforms import PasswordField, StringField
from wtforms.validators import InputRequired, Length

from blueprints.console import access, sign_in_limits
from blueprints.console.access import current_user
from blueprints.console.forms import message_of
from blueprints.console.locale import internal_url
from blueprints.console.pages import batches, bulk_payouts, order, refunds
from blueprints.console.pages.second_factor import flash_codes_left
from models.tables.operator import Operator
from services.errors import ApiError, OperatorError
from services.security import audit, passwords, second_factor, sessions

# Forms that need a confirmation from the last five minutes. Those for console accounts are included because another
# account could be used to avoid the confirmation; those for channels, because their keys decide where money goes;
# those for notifications, because another server would receive the stored password. With the name of each.
NEEDED = {
    "batch.file": lazy_gettext("Download file"),
    "channel.add_member": lazy_gettext("Add channel"),
    "channel.member": lazy_gettext("Limits"),
    "channel.move": lazy_gettext("Move merchants"),
    "channel.new": lazy_gettext("Add channel"),
    "channel.place_member": lazy_gettext("Place"),
    "channel.remove_member": lazy_gettext("Remove from group"),
    "channel.remove_picture": lazy_gettext("Remove image"),
    "channel.show": lazy_gettext("Channel"),
    "channel.upload": lazy_gettext("Replace image"),
    "second_factor.remove": lazy_gettext("Two-factor authentication"),
    "second_factor.renew": lazy_gettext("Recovery codes"),
    "merchant.account": lazy_gettext("Payout accounts"),
    "merchant.adjust": lazy_gettext("Adjust balance"),
    "merchant.reveal": lazy_gettext("Callback secret"),
    "merchant.rotate": lazy_gettext("Replace secret"),
    "merchant.rotate_epay": lazy_gettext("Epay gateway"),
    "notifications.show": lazy_gettext("Notifications"),
    "operators.change": lazy_gettext("Team"),
    "operators.index": lazy_gettext("Team"),
    "operators.password": lazy_gettext("Set password"),
    "order.reveal": lazy_gettext("Reveal values"),
    "order.send": lazy_gettext("Approve and send"),
    "payouts.batch": lazy_gettext("Create bank file"),
    "payouts.reveal": lazy_gettext("Reveal payees"),
}
# Downloads: the browser would save the file and stay on the page of the confirmation, so these forms are sent to a page
# that starts the download.
STARTED_BY = {"batch.file": "batch.start"}
PREFIX = "confirm-"  # precedes the names of this page's own fields

pages = Blueprint("confirm", __name__)


class PasswordAgain(FlaskForm):
    """The account's own password."""

    answer = PasswordField(lazy_gettext("Password"), [InputRequired(), Length(max=passwords.LONGEST)])


class CodeAgain(FlaskForm):
    """A code of the account's second factor."""

    answer = StringField(lazy_gettext("Code"), [InputRequired(), Length(max=40)])


def _form(operator: Operator) -> PasswordAgain | CodeAgain:
    return (CodeAgain if second_factor.of(operator) else PasswordAgain)(prefix=PREFIX)


def _page(form: PasswordAgain | CodeAgain, check: dict[str, Any], status: int, problem: str = "") -> Any:
    """Show the form. It includes the fields that were sent, so that the browser can send them again.

    Args:
        check: of the address to send it to: `to` repeats the request, `back` is the page before, `name` the endpoint.
    """
    form.answer.data = ""
    carried = [(name, value) for name, value in request.form.items(multi=True) if not name.startswith(PREFIX)]
    return render_template(
        "console/sign_in/confirm.html",
        form=form,
        problem=problem,
        carried=carried,
        by_code=isinstance(form, CodeAgain),
        url=url_for("confirm.check", **check),
        back=internal_url(check.get("back", "")),
        name=NEEDED.get(check.get("name", ""), ""),
    ), status


@pages.post("/confirm")
def check() -> Any:
    """Check the confirmation, then repeat the original request: after a 307 the browser sends the form again."""
    me, sent = current_user.operator, request.args.to_dict()
    form = _form(me)
    if not form.validate_on_submit():
        return _page(form, sent, 422)
    try:
        if isinstance(form, CodeAgain):
            if sign_in_limits.check_code(me, form.answer.data or ""):
                flash_codes_left(me)
        else:
            sign_in_limits.check_password(me, form.answer.data or "")
    except ApiError as refusal:
        return _page(form, sent, 429, sign_in_limits.too_many(refusal))
    except OperatorError as refusal:
        return _page(form, sent, 401, message_of(refusal))
    audit.record(access.actor(), "confirm identity")
    sessions.confirm(current_user.session)
    return redirect(internal_url(sent.get("to", "")), 307)


def _is_needed() -> bool:
    if request.method != "POST":
        return False
    if request.endpoint == "order.act" or (request.endpoint == "order.refund" and request.form.get("sure")):
        return order.sends_much(str((request.view_args or {})["order_no"]))
    if request.endpoint == "batch.apply":
        return batches.is_large(int((request.view_args or {})["number"]))
    name = str(request.endpoint)
    return name in NEEDED or bulk_payouts.is_large(name) or refunds.is_large(name)


def _check() -> Any:
    if not _is_needed() or sessions.is_confirmed(current_user.session):
        return None
    to = request.full_path.rstrip("?")
    if request.endpoint in STARTED_BY:
        to = url_for(STARTED_BY[request.endpoint], **(request.view_args or {})).removeprefix(request.script_root)
    before = urlsplit(request.referrer or "")
    back = before.path.removeprefix(request.script_root) + (f"?{before.query}" if before.query else "")
    return _page(_form(current_user.operator), {"to": to, "back": back, "name": str(request.endpoint)}, 403)


def init(app: Flask) -> None:
    """Require confirmations. Call it after `access.init`, whose checks must run first."""
    app.before_request(_check)
