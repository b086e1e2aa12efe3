"""The sandbox exists in demo mode only."""

import pytest


@pytest.fixture(autouse=True)
def _in_demo_mode(demo):
    """Run all tests of this folder in demo mode."""
