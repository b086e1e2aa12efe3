"""A small web server, to compare with and to receive callbacks: `python -m bench.beside (waitress|same) PORT`.

It runs on waitress with 8 threads, or on the service's HTTP server with as many threads as the service.
"""

from __future__ import annotations

import logging
import sys
import time

import waitress
from flask import Flask, Response, jsonify, request

from runtime.settings import Settings
from serving.http_server import Server, until_asked

app = Flask(__name__)
received: list[tuple[float, str]] = []


@app.post("/echo")
def echo() -> Response:
    """Parse the JSON body and return it."""
    return jsonify(request.get_json())


@app.get("/")
def empty() -> str:
    """Return an empty response."""
    return ""


@app.post("/callbacks/<int:delay>")
def receive(delay: int) -> str:
    """Record a callback, and respond after `delay` milliseconds."""
    received.append((time.monotonic(), request.headers.get("webhook-id", "")))
    time.sleep(delay / 1000)
    return ""


@app.get("/callbacks")
def callbacks() -> Response:
    """Return [time by the machine's monotonic clock, webhook-id] of each callback."""
    return jsonify(received)


@app.delete("/callbacks")
def clear() -> str:
    """Forget the callbacks."""
    received.clear()
    return ""


if __name__ == "__main__":
    kind, port = sys.argv[1], int(sys.argv[2])
    if kind == "waitress":
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # logging each queued request costs 10 %
        waitress.serve(app, host="127.0.0.1", port=port, threads=8, ident=None, _quiet=True)
    else:
        Server(app, "127.0.0.1", port, threads=Settings.threads, body_limit=1 << 16).run(until_asked())
