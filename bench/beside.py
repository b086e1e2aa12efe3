"""Programs that run with the service, on loopback: `python -m bench.beside KIND PORT ARGUMENT`.

`waitress` and `same` are a bare echo on waitress and on the service's HTTP server, with ARGUMENT threads. `receiver` is
a merchant's server that responds after ARGUMENT seconds: POST records a request, GET returns [time, webhook-id] of
each by the machine's monotonic clock, DELETE clears the list. `busy` keeps the core PORT busy for ARGUMENT seconds.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time

import waitress
from flask import Flask, Response, jsonify, request

from serving.http_server import Server, until_asked

app = Flask(__name__)
seen: list[tuple[float, str]] = []


@app.post("/echo")
def echo() -> Response:
    """Parse the JSON body and return it."""
    return jsonify(request.get_json())


@app.get("/")
def empty() -> str:
    """Return an empty response."""
    return ""


async def _receive(port: int, delay: float) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
                await reader.readexactly(int(headers.get("content-length", 0)))
                body = b""
                if head.startswith("POST"):
                    seen.append((time.monotonic(), headers.get("webhook-id", "")))
                    await asyncio.sleep(delay)
                elif head.startswith("DELETE"):
                    seen.clear()
                else:
                    body = json.dumps(seen).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024) as server:
        await server.serve_forever()


if __name__ == "__main__":
    kind, port, argument = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if kind == "waitress":
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # logging each queued request costs 10 %
        waitress.serve(app, host="127.0.0.1", port=port, threads=int(argument), ident=None, _quiet=True)
    elif kind == "same":
        Server(app, "127.0.0.1", port, threads=int(argument), body_limit=1 << 16).run(until_asked())
    elif kind == "receiver":
        asyncio.run(_receive(port, argument))
    elif kind == "busy":
        os.sched_setaffinity(0, {port})
        end = time.monotonic() + argument
        while time.monotonic() < end:
            pass
