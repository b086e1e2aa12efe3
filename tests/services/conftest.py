"""Fixtures of the services' tests."""

import pytest


@pytest.fixture
def tries(flask_json):
    """The attempts of the newest callback."""
    return lambda: flask_json("callback", "show", flask_json("callback", "list", "--limit", "1")[0]["id"])["tries"]
