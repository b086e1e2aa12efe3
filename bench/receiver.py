"""A merchant's server that responds after a delay: `python -m bench.receiver PORT SECONDS`.

POST records a request; GET /seen returns [time, webhook-id] of each, by the machine's monotonic
clock; DELETE clears the list.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

seen: list[tuple[float, str]] = []


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Serve one connection."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method = head.split(" ", 1)[0]
            headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            await reader.readexactly(int(headers.get("content-length", 0)))
            writer.write(await _response(method, headers.get("webhook-id", ""), delay))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _response(method: str, webhook_id: str, delay: float) -> bytes:
    body = b""
    if method == "POST":
        seen.append((time.monotonic(), webhook_id))
        await asyncio.sleep(delay)
    elif method == "DELETE":
        seen.clear()
    else:
        body = json.dumps(seen).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def _main(port: int, delay: float) -> None:
    server = await asyncio.start_server(lambda r, w: _serve(r, w, delay), "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), float(sys.argv[2])))
