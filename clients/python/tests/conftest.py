"""Fixtures of the client's own tests."""

from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer
from stand_in import StandIn


@pytest.fixture(scope="session")
def _server() -> Iterator[HTTPServer]:
    with HTTPServer() as server:
        yield server


@pytest.fixture
def stand_in(_server: HTTPServer) -> Iterator[StandIn]:
    """Return a stand-in for the service, whose responses the test sets."""
    yield StandIn(_server)
    _server.clear()
