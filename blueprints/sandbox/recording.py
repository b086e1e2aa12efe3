"""`/sandbox/scenario`: what was done in the demo, to be downloaded and run again."""

from __future__ import annotations

import json
from typing import Any

from flask import Flask, Response, request

from blueprints.sandbox.access import done, sandbox
from services.sandbox import recording

CREATE = "/merchant/createOrder"


def listen(app: Flask) -> None:
    """Keep what merchants create from now on; for the demo only, where a request may cost more."""
    app.after_request(_keep_created)


def _keep_created(response: Response) -> Response:
    if request.path.endswith(CREATE) and "Idempotency-Replayed" not in response.headers:
        answer = response.get_json()
        if recording.keeps(answer):
            recording.note_created(request.get_data(), answer)
    return response


@sandbox.get("/scenario")
def download() -> Response:
    """The recording as a file that `orders scenario run` takes."""
    text = json.dumps(recording.scenario(), ensure_ascii=False, indent=2)
    headers = {"Content-Disposition": "attachment; filename=scenario.json"}
    return Response(f"{text}\n", headers=headers, content_type="application/json")


@sandbox.post("/scenario/new")
def begin() -> Any:
    """Begin a new recording."""
    recording.begin()
    return done(None)
