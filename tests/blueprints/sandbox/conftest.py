"""The sandbox is there in demo mode only."""

import pytest


@pytest.fixture(autouse=True)
def _in_demo_mode(demo):
    """All of these tests."""
