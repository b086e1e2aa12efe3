"""Pages and endpoints below /sandbox, in demo mode only: simulator, clock, recording, inbox, shop, signature help."""

from flask import Flask

from blueprints.api.auth import EXPLAINS_SIGNATURES
from blueprints.epay.requests import EXPLAINS_EPAY
from blueprints.openapi.guide_pages import TOUR
from blueprints.sandbox import inbox, recording, returned, simulator
from blueprints.sandbox.access import sandbox
from blueprints.sandbox.signature_help import explain_refused, explain_refused_epay
from runtime import current
from services.sandbox import demo

__all__ = ["inbox", "mount", "recording", "returned", "simulator"]


def mount(app: Flask) -> None:
    """Add the sandbox to the app."""
    app.register_blueprint(sandbox)
    app.extensions[EXPLAINS_SIGNATURES] = explain_refused
    app.extensions[EXPLAINS_EPAY] = explain_refused_epay
    app.extensions[TOUR] = lambda: demo.tour(current().settings.public_url, current().settings.api_prefix)
    recording.listen(app)
