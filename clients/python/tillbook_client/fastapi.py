"""Callbacks in FastAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi import HTTPException, Request

from tillbook_client.callbacks import BadSignature, Event, verify


def callback(secrets: str | Sequence[str]) -> Callable[[Request], Awaitable[Event]]:
    """Return a dependency, `Depends(callback(SECRET))`, for the `Event`. An invalid callback gets 401."""

    async def receive(request: Request) -> Event:
        try:
            return verify(request.headers, await request.body(), secrets)
        except BadSignature as bad:
            raise HTTPException(401, str(bad)) from None

    return receive
