"""Pages and endpoints below /sandbox, in demo mode only: simulator, clock, inbox, shop, signature help."""

from flask import Flask, Response, request

from blueprints.api.auth import EXPLAINS_SIGNATURES
from blueprints.api.envelope import refuse
from blueprints.epay.requests import EXPLAINS_EPAY
from blueprints.openapi.pages import TOUR
from blueprints.sandbox import inbox, simulator
from blueprints.sandbox.access import sandbox
from blueprints.sandbox.signature_help import explain_refused, explain_refused_epay
from runtime.state import current
from schemas.messages import Message
from services.errors import N_, ApiError, Code
from services.sandbox import demo

__all__ = ["inbox", "mount", "simulator"]


def _refuse(refusal: ApiError) -> Response:
    """Refuse a request. If it is the printed curl, pasted again, the error names the command that prints a new one."""
    if (
        refusal.code in (Code.TIMESTAMP_OUTSIDE_WINDOW, Code.INVALID_NONCE)
        and demo.ORDER.encode() in request.get_data()
    ):
        refusal.detail = Message(
            N_("this command works once, within five minutes; print a new one with: %(command)s"),
            command=f"{demo.command()} demo-curl",
        )
    return refuse(refusal)


def mount(app: Flask) -> None:
    """Add the sandbox to the app."""
    app.register_blueprint(sandbox)
    app.extensions[EXPLAINS_SIGNATURES] = explain_refused
    app.extensions[EXPLAINS_EPAY] = explain_refused_epay
    app.extensions[TOUR] = lambda: demo.tour(current().settings.public_url, current().settings.api_prefix)
    app.register_error_handler(ApiError, _refuse)
