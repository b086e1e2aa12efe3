"""Is the service in this container well? For its health check: status 0 if it is, 1 if it is not or does not answer."""

import os
import sys
from http.client import HTTPConnection, HTTPException

TIMEOUT = 4  # seconds; the health check itself waits for 5


def is_well(port: int) -> bool:
    """Does it say so, on this very machine?"""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False


if __name__ == "__main__":
    sys.exit(not is_well(int(os.environ.get("ORDERS_PORT") or 8000)))
