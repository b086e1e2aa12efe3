"""Callbacks in FastAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi import HTTPException, Request

from merchant_orders.callbacks import BadSignature, Event, verify


def callback(secrets: str | Sequence[str]) -> Callable[[Request], Awaitable[Event]]:
    """A dependency, `Depends(callback(SECRET))`, that gives the `Event`; what does not verify is answered with 401."""

    async def receive(request: Request) -> Event:
        try:
            return verify(request.headers, await request.body(), secrets)
        except BadSignature as bad:
            raise HTTPException(401, str(bad)) from None

    return receive
