"""Callbacks in Django."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from tillbook_client.callbacks import BadSignature, verify


def callback(secrets: str | Sequence[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a view, which receives the request and the `Event`. It accepts POST only and needs no CSRF token.

    An invalid callback gets 401; None from the view is 204.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(view)
        def receive(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                event = verify(request.headers, request.body, secrets)
            except BadSignature as bad:
                return HttpResponse(str(bad), status=401, content_type="text/plain")
            answer = view(request, event, *args, **kwargs)
            return HttpResponse(status=204) if answer is None else answer

        exempt: Callable[..., Any] = csrf_exempt(require_POST(receive))
        return exempt

    return decorate
