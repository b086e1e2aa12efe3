"""Fixtures of tests against a real epay platform, which EPAY_PLATFORM names; without it they are not collected."""

import os
import re
from pathlib import Path

import pytest
from werkzeug import Response

from tests.gateways.live.epay_platform import RealPlatform, missing
from tests.payers import Payer

FOLDER = os.environ.get("EPAY_PLATFORM", "")
collect_ignore = [] if FOLDER else ["test_epay_platform.py"]


@pytest.fixture(scope="session")
def _platform(slow):
    assert not missing(FOLDER), missing(FOLDER)
    running = RealPlatform(Path(FOLDER))
    yield running
    running.remove()


@pytest.fixture
def platform(_platform):
    """The platform, without any order."""
    _platform.reset()
    return _platform


@pytest.fixture
def settings_of_app(_web_server):
    """The platform sends its notices to the tests' HTTP server."""
    return {"site_url": _web_server.url_for("").rstrip("/")}


class Listener:
    """Passes notices on to the application, or responds 503 while `deaf`. `heard` has the application's responses."""

    def __init__(self, server, app):
        self.deaf, self.heard, self._app = False, [], app
        server.expect_request(re.compile("^/addons/paychannel/notify/")).respond_with_handler(self._take)

    def _take(self, request):
        if self.deaf:
            return Response("not now", 503)
        answer = Response.from_app(self._app, request.environ)
        self.heard.append((answer.status_code, answer.get_data(as_text=True)))
        return answer


@pytest.fixture
def listener(web_server, app):
    """The HTTP server that receives the platform's notices."""
    return Listener(web_server, app)


@pytest.fixture
def ahead(ahead, platform):
    """Set the platform's clock ahead, too."""
    passed = 0

    def shift(seconds):
        nonlocal passed
        passed += seconds
        ahead(seconds)
        platform.set_clock(passed)

    return shift


@pytest.fixture
def payer(app):
    """`payer("203.0.113.7")`: a payer's browser at this address."""
    return lambda address: Payer(app, address=address)
