"""A small web server that runs with the service: `python -m bench.beside (waitress|same|receiver) PORT`.

`waitress` and `same` are a bare echo on waitress with 8 threads, or on the service's HTTP server with as many threads
as the service. Both keep to one core, as the service does: on some machines, threads that switch between cores cost
waitress two thirds of its rate, on others nothing. `receiver` gets callbacks; it is one loop without a framework, so
that most of the processor time remains for the service that is measured.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

import waitress
from flask import Flask, Response, jsonify, request

from runtime.settings import Settings
from services.platform import cpu_affinity
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


async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve a connection: `POST /20` records a callback and responds after 20 ms, GET returns [time by the machine's
    monotonic clock, webhook-id] of each, DELETE forgets them."""
    try:
        while True:
            start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines)
            await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = start.split(" ")
            content = json.dumps(received).encode() if method == "GET" else b""
            if method == "POST":
                received.append((time.monotonic(), headers.get("webhook-id", "")))
                await asyncio.sleep(int(path[1:]) / 1000)
            elif method == "DELETE":
                received.clear()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _receiver(port: int) -> None:
    async with await asyncio.start_server(receive, "127.0.0.1", port, backlog=1024) as server:
        await server.serve_forever()


if __name__ == "__main__":
    kind, port = sys.argv[1], int(sys.argv[2])
    if kind != "receiver":
        cpu_affinity.stay_on_one(port)
    if kind == "waitress":
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # logging each queued request costs 10 %
        waitress.serve(app, host="127.0.0.1", port=port, threads=8, ident=None, _quiet=True)
    elif kind == "same":
        Server(app, "127.0.0.1", port, threads=Settings.threads, body_limit=1 << 16).run(until_asked())
    else:
        asyncio.run(_receiver(port))
