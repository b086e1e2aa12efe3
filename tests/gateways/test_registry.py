"""A driver is one file, one line in the registry, one test file and a page; no other part of the service names it."""

import hashlib
import hmac
import re
from typing import ClassVar

import pytest
from marshmallow import fields, validate

from gateways import registry
from gateways.base import METHODS, BadNotice, Driver, Notice, Opened, Report, State
from gateways.config import UpstreamConfig
from models.tables.operator import Session
from services.channels import channel_setup
from services.sandbox import seeding
from services.security import sessions
from tests.blueprints.console.setting_up.filling import Page
from tests.support import ROOT

# The simulator, the manual driver, groups of channels, and the tests' own driver.
HERE = ("sandbox", "manual", "group", "trial")
ELSEWHERE = [name for name in registry.DRIVERS if name not in HERE]
FOLDERS = ("blueprints", "cli", "models", "schemas", "services")
CODE = [*ROOT.glob("*.py"), *(file for folder in FOLDERS for file in ROOT.glob(f"{folder}/**/*.py"))]


def test_a_driver_has_its_file_its_tests_and_its_page():
    for name in ELSEWHERE:
        for file in (f"gateways/{name}.py", f"tests/gateways/test_{name}.py", f"tests/upstreams/{name}.py"):
            assert (ROOT / file).is_file(), file
        page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        assert "\n## Verification\n" in page, name
        fields_of_config = registry.DRIVERS[name].config_schema().fields
        assert [field for field in fields_of_config if f"`{field}`" not in page] == [], name


def test_no_other_part_of_the_service_names_an_upstreams_driver():
    texts = {file: file.read_text("utf-8") for file in CODE}
    for name in ELSEWHERE:
        # alipay is a payment method, too, and epay the protocol of shops
        quoted = "" if name in (*METHODS, "epay") else rf"|[\"']{name}[\"']"
        words = re.compile(rf"gateways[./]{name}\b|{name}Driver{quoted}", re.IGNORECASE)
        assert [file for file, text in texts.items() if words.search(text)] == [], name


class NewConfig(UpstreamConfig):
    """The config of a driver whose author describes no fields."""

    secret = fields.String(required=True)
    many = fields.Integer(load_default=3, validate=validate.Range(1, 9))
    way = fields.String(load_default="up", validate=validate.OneOf(["up", "down"]))


class NewDriver(Driver):
    """The shortest driver that a later developer would write."""

    name = "new"
    config_schema = NewConfig
    methods: ClassVar = ("bank",)

    def open_payment(self, payment):
        return Opened(redirect=f"https://new.example/pay/{payment.order_no}")

    def read_notice(self, incoming):
        order_no, amount, sign = incoming.query.decode().split("&")
        good = hmac.new(self.config["secret"].encode(), f"{order_no}&{amount}".encode(), hashlib.sha256).hexdigest()
        if sign != good:
            raise BadNotice("bad signature")
        return Notice(order_no, Report(State.PAID, int(amount), f"N{order_no}"))


@pytest.fixture
def _registered(monkeypatch):
    monkeypatch.setitem(registry.DRIVERS, NewDriver.name, NewDriver)


@pytest.fixture
def channel(_registered, app, flask):
    """A channel of the new driver, which was in the registry when the commands were imported."""
    made = channel_setup.add_channel("gateway_b", "new", "New", config={"secret": "of-the-new-channel"})
    flask("channel", "link", made.id, "demo")
    return made.id


def test_a_new_driver_needs_only_one_line_in_the_registry(api, http, channel, shown, outcome):
    order_no = api.buy(channel=channel, paychannel_paymethod="bank").data["order_no"]
    assert f"https://new.example/pay/{order_no}" in shown(order_no)
    sign = hmac.new(b"of-the-new-channel", f"{order_no}&10000".encode(), hashlib.sha256).hexdigest()
    assert http("GET", f"/addons/paychannel/notify/{order_no}?{order_no}&9999&{sign}").status == 400
    assert http("GET", f"/addons/paychannel/notify/{order_no}?{order_no}&10000&{sign}").text == "success"
    assert outcome(order_no) == ("completed", (1_009_940, 0), {})


def test_methods_that_a_new_driver_lacks_are_refused_or_unknown(api, channel, later, refuses):
    assert api.buy(channel=channel).data == {"paychannel_paymethod": ["This channel accepts: bank."]}
    assert api.sell(channel=channel).data == {"paychannel_paymethod": ["This channel pays out by: -."]}
    order_no = api.buy(channel=channel, paychannel_paymethod="bank").data["order_no"]
    later(900, times=2)
    assert api.status(order_no) == "pending"  # the driver has no report that it was not paid
    assert "does not support status checks" in refuses("channel", "check", str(channel))


@pytest.mark.usefixtures("_registered")
def test_the_console_has_a_form_for_it_and_shows_no_undescribed_value(app):
    seeding.seed_operators()
    client = app.test_client()
    sign_in = Page(client.get("/console/login").text).form().fill({"name": "demo", "password": "demo-password"})
    client.post("/console/login", data=sign_in)
    sessions.confirm(Session.get())
    assert 'value="new"' in client.get("/console/channel/new").text
    address = "/console/channel/new?driver=new"
    form = Page(client.get(address).text).form()
    assert (form.sent["config_secret"], form.sent["config_way"], form.sent["config_proxy"]) == ("", "up", "")
    assert form.boxes["config_ask_again"]
    typed = {"name": "New", "category": "gateway_b", "merchants": ["1"], "config_secret": "of-the-new"}
    typed |= {"config_many": "7"}
    refused = client.post(address, data=form.fill(typed | {"config_many": "10", "config_way": "down"}))
    assert "config_many" in Page(refused.text).problems
    made = client.post(address, data=form.fill(typed))
    page = client.get(made.headers["Location"]).text
    assert (made.status_code, "of-the-new" in page, 'value="7"' in page) == (303, False, False)
    assert Page(page).form().sent["config_way"] == "down"
    given = {"secret": "of-the-new", "many": 7, "way": "down"}
    common = {"proxy": "", "ask_again": False, "open_on_view": False}
    assert channel_setup.config_of(channel_setup.every()[-1]) == given | common
