"""Requests to the receivers of the published clients."""

import requests


def send(method, url, headers=None, body=""):
    """Send a request to a receiver, without this machine's proxies; return the status of the response."""
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, url, data=body.encode(), headers=headers, timeout=20).status_code
