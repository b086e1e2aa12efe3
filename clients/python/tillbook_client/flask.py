"""Callbacks in Flask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from flask import Response, current_app, request

from tillbook_client.callbacks import BadSignature, Event, verify


def from_flask(secrets: str | Sequence[str]) -> Event:
    """Return the event of the present request.

    Raises:
        BadSignature: respond with 401.
    """
    return verify(request.headers, request.get_data(), secrets)


def callback(secrets: str | Sequence[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a view, which receives the `Event` first. An invalid callback gets 401; None from the view is 204."""

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(view)
        def receive(*args: Any, **kwargs: Any) -> Any:
            try:
                event = from_flask(secrets)
            except BadSignature as bad:
                return Response(str(bad), 401, mimetype="text/plain")
            answer = current_app.ensure_sync(view)(event, *args, **kwargs)
            return Response(status=204) if answer is None else answer

        return receive

    return decorate
