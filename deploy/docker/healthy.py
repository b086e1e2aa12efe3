"""Health check of the container: exit status 0 if the service is healthy, otherwise 1."""

import os
import sys
from http.client import HTTPConnection, HTTPException

TIMEOUT = 4  # seconds; Docker waits for 5


def is_healthy(port: int) -> bool:
    """Return whether `/healthz` on this machine responds with 200."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False


if __name__ == "__main__":
    sys.exit(not is_healthy(int(os.environ.get("ORDERS_PORT") or 8000)))
