"""`/sandbox/scenario`: the recorded actions of the demo as a scenario that can be run again."""

from __future__ import annotations

import json
from typing import Any

from flask import Flask, Response, request

from blueprints.sandbox.access import done, sandbox
from services.sandbox import recording

CREATE = "/merchant/createOrder"


def listen(app: Flask) -> None:
    """Record the orders that merchants create. In the demo only, because it slows requests down."""
    app.after_request(_keep_created)


def _keep_created(response: Response) -> Response:
    if request.path.endswith(CREATE) and "Idempotency-Replayed" not in response.headers:
        answer = response.get_json()
        if recording.keeps(answer):
            recording.note_created(request.get_data(), answer)
    return response


@sandbox.get("/scenario")
def download() -> Response:
    """Download the recording as a file for `orders scenario run`."""
    text = json.dumps(recording.scenario(), ensure_ascii=False, indent=2)
    headers = {"Content-Disposition": "attachment; filename=scenario.json"}
    return Response(f"{text}\n", headers=headers, content_type="application/json")


@sandbox.post("/scenario/new")
def begin() -> Any:
    """Begin a new recording."""
    recording.begin()
    return done(None)
