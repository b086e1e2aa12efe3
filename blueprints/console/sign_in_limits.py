"""Limits on failed passwords and codes. Known devices have separate limits.

A browser on which an account has signed in has a cookie for it. Strangers who guess an account's password or fill the
sign-in queue therefore cannot lock out its owner.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

from flask import current_app, request
from flask_babel import gettext
from itsdangerous import BadSignature, URLSafeTimedSerializer
from werkzeug.wrappers import Response

from blueprints.api.rate_limits import caller, network
from blueprints.console.access import current_user
from models.tables.operator import Operator
from runtime.state import Part
from services.errors import N_, ApiError, Code, OperatorError
from services.platform.rate_limits import Rate
from services.security import audit, operators, passwords, second_factor, sign_in_tries

log = logging.getLogger(__name__)

MINUTE, WINDOW = 60, 300  # seconds
# Failures per window: per address or known device, per IPv6 /48, and for all strangers together.
TRIES, TRIES_OF_SITE, TRIES_OF_ALL = 10, 40, 120
WRONG_PASSWORD = N_("Incorrect password.")
COOKIE = "console_device"
LONGEST_SECONDS = 365 * 86_400
_rates = Part(
    lambda: {
        "device": Rate(TRIES, WINDOW),
        "address": Rate(TRIES, WINDOW),
        "site": Rate(TRIES_OF_SITE, WINDOW),
        "all": Rate(TRIES_OF_ALL, WINDOW),
    }
)


def count_try(device: str) -> Callable[[], None]:
    """Count an attempt to sign in before it is made, so that concurrent attempts cannot exceed the limit.

    Args:
        device: a known device, counted instead of the address; empty for a stranger's.

    Returns:
        a function that cancels the count.

    Raises:
        ApiError: TOO_MANY_REQUESTS.
    """
    address = request.remote_addr or ""
    strangers = {"address": caller(address), "site": network(address), "all": "all"}
    counted: list[tuple[Rate, str]] = []

    def take_back() -> None:
        for rate, who in counted:
            rate.take_back(who)

    for name, who in ({"device": device} if device else strangers).items():
        if name == "site" and not who:
            continue
        rate = _rates()[name]
        if not rate.hit(who):
            take_back()  # the attempt is not made
            raise ApiError(Code.TOO_MANY_REQUESTS, retry_after=rate.retry_after(who))
        counted.append((rate, who))
    return take_back


def too_many(refusal: ApiError) -> str:
    """Return the message for TOO_MANY_REQUESTS."""
    seconds = refusal.retry_after or 1
    if seconds > MINUTE:
        return gettext("Too many attempts. Try again in %(minutes)s minutes.", minutes=-(-seconds // MINUTE))
    return gettext("Too many attempts. Try again in %(seconds)s seconds.", seconds=seconds)


def check_password(operator: Operator, password: str) -> None:
    """Check the password of the signed-in account; count and record a failure.

    Raises:
        OperatorError: it is incorrect.
        ApiError: TOO_MANY_REQUESTS after too many failures, or if too many passwords await hashing (not counted).
    """
    take_back = _count_own(operator)
    try:
        is_correct = passwords.is_correct(operator.password, password, known=True)
    except ApiError:
        take_back()
        raise
    if not is_correct:
        _record_failure(operator, "password")
        raise OperatorError(WRONG_PASSWORD, "password")
    take_back()


def check_code(operator: Operator, typed: str) -> bool:
    """Check a code of an account whose password was correct; count and record a failure.

    Returns:
        whether it was a recovery code.

    Raises:
        OperatorError: it is incorrect.
        ApiError: TOO_MANY_REQUESTS after too many failures.
    """
    take_back = _count_own(operator)
    try:
        is_recovery = second_factor.check(operator, typed)
    except OperatorError:
        _record_failure(operator, "code")
        raise
    take_back()
    if is_recovery:
        audit.record(_actor(operator), "use recovery code", "operator", operator.name)
    return is_recovery


def _count_own(operator: Operator) -> Callable[[], None]:
    """Count a try of the account's own password or code.

    Within a session it counts for that session: someone at a stolen one locks out neither the owner's other sessions
    nor their next sign-in.
    """
    if current_user:
        return sign_in_tries.count(f"session {current_user.session.key}")
    device = known_device(operator.name)
    return sign_in_tries.count(f"device {device}" if device else f"account {operator.name}")


def _actor(operator: Operator) -> audit.Actor:
    return audit.Actor(operator.name, request.remote_addr or "")


def _record_failure(operator: Operator, what: str) -> None:
    """Record an incorrect password or code with the account's name: the caller has its session or its password."""
    log.warning("Console: %s at %s gave an incorrect %s", operator.name, request.remote_addr, what)
    audit.record(_actor(operator), f"enter incorrect {what}", "operator", operator.name)
    sign_in_tries.count_failed(caller(request.remote_addr or "") or sign_in_tries.LOCAL, code=what == "code")


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(str(current_app.secret_key), salt=COOKIE)


def known_device(name: str) -> str:
    """Return the device's id if the account signed in on it since its password or second factor changed, or ""."""
    try:
        device, mark = _serializer().loads(request.cookies.get(COOKIE, ""), max_age=LONGEST_SECONDS)
    except (BadSignature, TypeError, ValueError):
        return ""
    return str(device) if mark and mark == operators.mark(name) else ""


def remember_device(response: Response, name: str) -> None:
    """Make this browser a known device of the account, which has just authenticated."""
    cookie = _serializer().dumps([known_device(name) or secrets.token_hex(8), operators.mark(name)])
    secure = current_app.session_interface.get_cookie_secure(current_app)
    path = current_app.config["SESSION_COOKIE_PATH"]
    response.set_cookie(
        COOKIE, cookie, max_age=LONGEST_SECONDS, path=path, secure=secure, httponly=True, samesite="Lax"
    )
