"""Notifications: destinations with their forms, the test button, limits of channel balances, messages."""

import base64

import pytest

from gateways.config import is_secret
from models.tables.notification import KINDS, Destination, Notification
from models.tables.operator import AuditEntry
from services.ledger import scheduled_checks
from services.notifications import delivery, destinations, watch
from services.notifications.destination_kinds import SCHEMAS
from tests.blueprints.console.acting import flashed
from tests.blueprints.console.setting_up.filling import Page
from tests.services.notifications.receiving import Robot
from tests.support import InlinePool

SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()
URL = "https://hooks.example.com/send?key=very-secret"
CONFIGS = {
    "email": {
        **{"host": "smtp.example.com", "security": "starttls", "port": "587", "user": "ops", "password": "very-secret"},
        **{"sender": "ops@example.com", "recipients": "a@example.com, b@example.com"},
    },
    "wecom": {"url": URL},
    "dingtalk": {"url": URL, "secret": "SECvery-secret"},
    "feishu": {"url": URL, "secret": "very-secret"},
    "telegram": {"token": "1:very-secret", "chat_id": "-100200"},
    "webhook": {"url": URL, "secret": SECRET},
}


@pytest.fixture
def settings_of_app():
    return {"private_callbacks": True}


@pytest.fixture
def new(fill):
    """`new("wecom", url=...)`: the id of a destination that the form added."""

    def add(kind, name="Operations", **config):
        fields = {f"config_{field}": value for field, value in config.items()}
        answer = fill(f"notifications/new?kind={kind}", name=name, **fields)
        assert answer.status_code == 303, Page(answer.text).problems
        return int(answer.headers["Location"].rsplit("/", 1)[1])

    return add


@pytest.mark.parametrize("kind", KINDS)
def test_a_destination_of_each_kind_is_added_and_its_secrets_are_never_shown(new, fill, page, console, kind):
    secret = {f"config_{name}" for name, spec in SCHEMAS[kind]().fields.items() if is_secret(spec)}
    form = page(f"notifications/new?kind={kind}")
    assert secret
    assert secret <= form.fields.keys()
    assert form.html.count('type="password"') >= len(secret)
    row = new(kind, **CONFIGS[kind])
    assert destinations.config_of(Destination.get()).items() >= CONFIGS[kind].items()
    html = page(f"notifications/{row}").html + page("notifications/").html + page("audit/").html
    seen = html + repr(list(AuditEntry.select().dicts())) + Destination.get().config
    assert ("very-secret" in seen, SECRET in html) == (False, False)
    before = Destination.select().dicts().get()
    answer = fill(f"notifications/{row}")
    assert flashed(console.get(answer.headers["Location"]).text) == ("good", "No changes.")
    assert Destination.select().dicts().get() == before


def test_a_secret_is_replaced_by_a_new_one(new, fill):
    row = new("dingtalk", **CONFIGS["dingtalk"])
    fill(f"notifications/{row}", config_secret="SECother", severity="soon", language="zh", digest="9")
    found = Destination.get()
    assert destinations.config_of(found) == {"url": URL, "secret": "SECother"}
    assert (found.severity, found.language, found.digest_hour) == ("soon", "zh", 9)
    fill(f"notifications/{row}", config_secret_remove=True)
    assert destinations.config_of(found)["url"] == URL
    assert destinations.config_of(Destination.get())["secret"] == ""


def test_a_mistyped_field_is_named_and_nothing_is_saved(new, wrong):
    for kind, field, value in (
        ("wecom", "url", "qyapi.weixin.qq.com/cgi-bin"),
        ("wecom", "url", "http://hooks.example.com/send"),
        ("wecom", "url", ""),
        ("webhook", "secret", "too-short"),
        ("webhook", "secret", "whsec_" + "A" * 8),
        ("telegram", "token", "with space"),
        ("telegram", "chat_id", ""),
        ("email", "port", "0"),
        ("email", "port", "65536"),
        ("email", "sender", "no address"),
        ("email", "recipients", ","),
        ("email", "recipients", "a@example.com, b"),
    ):
        fields = {f"config_{name}": given for name, given in CONFIGS[kind].items()} | {f"config_{field}": value}
        assert f"config_{field}" in wrong(f"notifications/new?kind={kind}", name="Operations", **fields), value
    assert destinations.every() == []
    new("wecom", **CONFIGS["wecom"])
    assert "name" in wrong("notifications/new?kind=wecom", name="Operations", config_url=URL), "a name of its own"


@pytest.fixture
def robot(web_server):
    return Robot(web_server)


def test_a_test_reports_success_or_a_failure_in_plain_words(new, send, console, robot):
    row = new("wecom", url=f"{robot.url}?key=x")

    def tested():
        return flashed(console.get(send(f"notifications/{row}/test").headers["Location"]).text)

    assert (tested()[0], len(robot.got)) == ("good", 1)
    assert AuditEntry.select().order_by(AuditEntry.id.desc()).get().action == "test destination"
    robot.answer = {"errcode": 93000, "errmsg": "invalid webhook url"}
    category, text = tested()
    assert (category, "Copy it again from the robot" in text) == ("bad", True)
    assert "93000: invalid webhook url" in text


def test_a_destination_is_deleted_with_its_messages(new, send, page):
    row = new("wecom", **CONFIGS["wecom"])
    watch._write(destinations.find(row), "digest", [], 1)
    assert send(f"notifications/{row}/delete").status_code == 303
    assert (destinations.every(), list(Notification.select())) == ([], [])
    page(f"notifications/{row}", status=404)


def test_failed_messages_are_visible_here_and_on_the_overview(new, page, robot, ahead, api):
    scheduled_checks.record("test", {}, 1.0)
    api.buy()  # otherwise the overview shows the first steps
    row = new("wecom", name="Broken group", url=f"{robot.url}?key=x")
    robot.answer = {"errcode": 93000, "errmsg": "invalid webhook url"}
    destinations.set_balance_limits({2: 10**14})
    for seconds in (0, 61, 301):
        ahead(seconds)
        watch.evaluate()
        delivery.sweep(InlinePool())
    shown = page("notifications/").text
    assert "Failing" in shown
    assert "The webhook URL is not valid." in page(f"notifications/{row}").text
    assert "below its limit" in shown
    overview = page().text
    assert "Notifications to Broken group fail. Failed attempts: 3." in overview
    assert "the balance at the channel is below its limit" in overview


def test_limits_of_balances_are_set_and_removed(fill, page):
    assert fill("notifications/", "/balances", limit_2="5000.00").status_code == 303
    assert page("notifications/").fields["limit_2"] == "5000.00"
    assert "limit_2" in fill("notifications/", "/balances", limit_2="x").text
    assert destinations.balance_limits() == {2: 500_000}
    fill("notifications/", "/balances", limit_2="")
    assert destinations.balance_limits() == {}
    assert AuditEntry.select().where(AuditEntry.action == "set balance limits").count() == 2


def test_balances_are_receivable_or_payable_as_in_the_ledger(page, api, flask):
    flask("order", "paid", api.buy("1234.50", channel=3).data["order_no"])
    assert "1,234.50" in [row.get("Balance (¥)") for row in page("notifications/").rows]
    withdrawal = api.sell("2000.00", channel=3).data["order_no"]
    for action in ("approve", "paid"):
        flask("order", action, withdrawal)
    assert "payable 766.50" in [row.get("Balance (¥)") for row in page("notifications/").rows]


def test_a_viewer_sees_no_destination_in_detail(new, viewer):
    row = new("email", **CONFIGS["email"])
    assert "smtp.example.com" not in viewer.get(f"/console/notifications/{row}").text
    assert viewer.get("/console/notifications/").status_code == 200
