"""Fixtures for the tests of the database handle, without an application."""

import pytest

from runtime.settings import Settings
from runtime.state import Runtime
from tests.databases import disconnect


@pytest.fixture
def runtime(tmp_path):
    """The current runtime: one of the test's own, without a database."""
    disconnect()
    made = Runtime(Settings(instance=tmp_path))
    made.enter()
    return made
