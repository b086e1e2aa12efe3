"""The console's page of one's own sessions: where this account is signed in, and ending that."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, url_for
from flask_babel import gettext
from flask_login import current_user

from blueprints.console import access
from models.db.base import LARGEST_ID
from services.security import audit, sessions

pages = Blueprint("sessions", __name__, url_prefix="/sessions")


@pages.get("/")
def index() -> str:
    """List the account's own sessions."""
    rows = sessions.of(current_user.operator)
    return render_template("console/sessions.html", rows=rows, this=current_user.session.id)


@pages.post(f"/<int(max={LARGEST_ID}):session_id>/end")
def end(session_id: int) -> Any:
    """End one of the account's own sessions."""
    me = current_user.operator
    if session_id not in {row.id for row in sessions.of(me)}:
        abort(404)
    audit.act(access.actor(), "end session", "operator", me.name, lambda: sessions.end(me, session_id))
    flash(gettext("The session has ended."), "good")
    return redirect(url_for(".index"), 303)


@pages.post("/others")
def others() -> Any:
    """End all of the account's sessions except this one."""
    me, this = current_user.operator, current_user.session.id
    audit.act(access.actor(), "end other sessions", "operator", me.name, lambda: sessions.end_all(me, but=this))
    flash(gettext("All other sessions have ended."), "good")
    return redirect(url_for(".index"), 303)
