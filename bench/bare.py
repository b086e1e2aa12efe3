"""The yardstick application: an echo and an empty view, `python -m bench.bare same|waitress PORT THREADS`."""

import logging
import sys

import waitress
from flask import Flask, Response, jsonify, request

from serving.http_server import Server, until_asked

app = Flask(__name__)


@app.post("/echo")
def echo() -> Response:
    """Parse the JSON body and return it."""
    return jsonify(request.get_json())


@app.get("/empty")
def empty() -> str:
    """Return an empty response."""
    return ""


if __name__ == "__main__":
    kind, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if kind == "waitress":
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # logging each queued request costs 10 %
        waitress.serve(app, host="127.0.0.1", port=port, threads=threads, ident=None, _quiet=True)
    else:
        Server(app, "127.0.0.1", port, threads=threads, body_limit=1 << 16).run(until_asked())
