"""`/sandbox/scenario`: what was done in the demo, to be downloaded and run again."""

from __future__ import annotations

import json
from typing import Any

from flask import Flask, Response, request

from blueprints.sandbox.doors import demo_only, done, sandbox
from services import recording

CREATE = "/merchant/createOrder"


def listen(app: Flask) -> None:
    """Keep what merchants create from now on; for the demo only, where a request may cost more."""
    app.before_request(_keep_body)
    app.after_request(_keep_created)


def _keep_body() -> None:
    if request.path.endswith(CREATE):
        request.get_data(cache=True)


def _keep_created(response: Response) -> Response:
    if request.path.endswith(CREATE) and "Idempotency-Replayed" not in response.headers:
        sent, answer = request.get_json(silent=True), response.get_json(silent=True)
        if isinstance(sent, dict) and isinstance(sent.get("api_key"), str) and isinstance(answer, dict):
            recording.note_created(sent, answer)
    return response


@sandbox.get("/scenario")
@demo_only
def download() -> Response:
    """The recording as a file that `flask scenario run` takes."""
    text = json.dumps(recording.scenario(), ensure_ascii=False, indent=2)
    headers = {"Content-Disposition": "attachment; filename=scenario.json"}
    return Response(f"{text}\n", headers=headers, content_type="application/json")


@sandbox.post("/scenario/new")
@demo_only
def begin() -> Any:
    """Begin a new recording."""
    recording.begin()
    return done(None)
