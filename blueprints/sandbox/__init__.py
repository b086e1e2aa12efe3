"""What only demo mode serves below /sandbox: simulator, clock, recording, callback inbox, signature help."""

from flask import Flask

from blueprints.api.auth import EXPLAINS_SIGNATURES
from blueprints.sandbox import inbox, recording, simulator
from blueprints.sandbox.access import sandbox
from blueprints.sandbox.signature_help import explain_refused

__all__ = ["inbox", "mount", "recording", "simulator"]


def mount(app: Flask) -> None:
    """Serve the sandbox."""
    app.register_blueprint(sandbox)
    app.extensions[EXPLAINS_SIGNATURES] = explain_refused
    recording.listen(app)
