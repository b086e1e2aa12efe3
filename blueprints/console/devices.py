"""Known devices: a browser on which an account has signed in is told so by a cookie of its own.

Strangers who guess an account's password, or fill the queue of sign-ins, use up only the tries of strangers.
"""

from __future__ import annotations

import secrets

from flask import Response, current_app, request
from itsdangerous import BadSignature, URLSafeTimedSerializer

from services.security import operators

COOKIE = "console_device"
LONGEST_SECONDS = 365 * 86_400


def _serializer() -> URLSafeTimedSerializer:
    config = current_app.config
    return URLSafeTimedSerializer([*reversed(config["SECRET_KEY_FALLBACKS"]), config["SECRET_KEY"]], salt=COOKIE)


def known_to(name: str) -> str:
    """The id of this device, if the account has signed in here since its password or second factor was set up."""
    try:
        device, mark = _serializer().loads(request.cookies.get(COOKIE, ""), max_age=LONGEST_SECONDS)
    except (BadSignature, TypeError, ValueError):
        return ""
    return str(device) if mark and mark == operators.mark(name) else ""


def remember(response: Response, name: str) -> None:
    """Have this browser count as a known device of the account, which has just proven who it is."""
    told = _serializer().dumps([known_to(name) or secrets.token_hex(8), operators.mark(name)])
    secure = current_app.session_interface.get_cookie_secure(current_app)
    path = current_app.config["SESSION_COOKIE_PATH"]
    response.set_cookie(COOKIE, told, max_age=LONGEST_SECONDS, path=path, secure=secure, httponly=True, samesite="Lax")
