"""The audit log as sentences, and the failed sign-ins."""

import ast

import pytest

from blueprints.console import labels
from blueprints.console.pages import channels, epay_gateway, group_members, new_merchant, notifications
from gateways import registry
from models.tables.operator import AuditEntry, FailedSignIn
from runtime.settings import ROOT
from services.errors import OperatorError
from services.merchants import payment_page
from services.notifications.destination_kinds import SCHEMAS
from services.operations import claims, payouts, refund_reviews
from services.operations.actions import ACTS, Act
from services.security import audit, sign_in_tries
from services.security.audit import Actor
from tests.blueprints.console.reading import Shown

VERBS = {*payouts.VERBS.values(), *claims.VERBS.values(), *refund_reviews.VERBS.values()}


@pytest.fixture
def events(page):
    """`events()`: the sentences of the audit log, the newest first."""
    return lambda path="audit/": page(path).column("Event")


def test_one_change_is_in_the_sentence_and_several_after_it(page):
    changes = audit.changes({"buy_rate": "0.60", "name": "Demo"}, {"buy_rate": "0.80", "name": "Demo"})
    audit.record(Actor("demo"), "set merchant", "merchant", "demo", changes)
    after = {"settlement_days": "1", "enabled": "no", "max_amount": "500.00"}
    audit.record(Actor("anna"), "set channel", "channel", "1", audit.changes({"enabled": "yes"}, after))
    several, one, *_ = page("audit/").rows
    assert one["Event"] == "demo changed the deposit fee of Demo Shop 演示商户 from 0.60 % to 0.80 %"
    assert several["Event"].startswith("anna changed channel ")
    assert several["Details"] == (
        "Settlement delay of deposits (T+N): - → 1; Enabled: yes → no; Maximum order amount: - → 500.00 ¥"
    )


def test_every_act_on_an_order_is_told_in_a_sentence(events):
    for act in Act:
        audit.record(Actor("demo"), ACTS[act].verb, "order", "1")
        assert events()[0] not in (f"demo {ACTS[act].verb} 1", f"demo {ACTS[act].verb}"), act


def recorded_actions():
    """The actions that the code records, as far as they are literals, with the subjects."""
    for path in (path for folder in ("blueprints", "services", "cli") for path in (ROOT / folder).rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            is_record = getattr(call.func, "attr", "") in ("act", "record", "record_failure")
            if is_record and getattr(getattr(call.func, "value", None), "id", "") in ("access", "audit"):
                yield [node.value for arg in call.args[:3] for node in ast.walk(arg) if isinstance(node, ast.Constant)]


def test_every_action_has_a_sentence():
    texts = {text for found in recorded_actions() for text in found if isinstance(text, str)}
    verbs = {*VERBS, *(rule.verb for rule in ACTS.values())}
    assert {"confirm columns", "set channel", "merchant"} <= texts
    known = labels.ACTIONS.keys() | labels.ABOUT.keys()
    parts_of_names = {" epay gateway", "rotate epay ", " key", "enter incorrect ", "name", ""}
    assert texts - parts_of_names - known == set()
    assert verbs - labels.ACTIONS.keys() == set()


CHANNEL_CONFIG = {name for driver in registry.DRIVERS.values() for name in driver.config_schema().fields}
FIELDS = {
    ("set merchant", "merchant"): {*new_merchant.FIELDS, *new_merchant.BRAND, "logo", *epay_gateway.RECORDED},
    ("set payment page", "merchant"): {*payment_page.TEXTS},
    ("add channel", "channel"): {"driver", "category", *channels.FIELDS, *CHANNEL_CONFIG},
    ("set member", "channel"): {"channel", "position", *group_members.FIELDS},
    ("set balance limits", "channel"): {"channel 2"},
    ("set destination", "destination"): {
        *("kind", *notifications.FIELDS),
        *(name for schema in SCHEMAS.values() for name in schema().fields),
    },
}


@pytest.mark.parametrize(("action", "about"), FIELDS)
def test_every_changed_field_has_the_label_of_its_form(page, action, about):
    names = FIELDS[action, about]
    audit.record(Actor("demo"), action, about, "x", audit.changes({}, dict.fromkeys(names, "x")))
    shown = page("audit/").rows[0]["Details"]
    assert shown.count(" → ") == len(names)
    assert not [name for name in names if any(part.startswith(f"{name}: ") for part in shown.split("; "))]


def test_changed_values_have_the_labels_of_the_forms_choices(page):
    after = {"driver": "manual", "category": "gateway_b", "pay_method": "wxpay,bank", "payee": "(set)", "proxy": "-"}
    audit.record(Actor("demo"), "add channel", "channel", "Till", audit.changes({}, after))
    audit.record(Actor("demo"), "set channel", "channel", "1", audit.changes({"key": "(set)"}, {"key": "(another)"}))
    secret, added, *_ = page("audit/").rows
    for text in ("Provider: - → Manual", "Category: - → Gateway B", "→ WeChat Pay, Bank transfer", "Payee: - → set"):
        assert text in added["Details"], text
    assert secret["Details"].endswith(": set → changed")
    assert secret["Event"] == "demo changed channel Sandbox A"


def test_an_action_that_failed_is_marked_at_both_of_its_entries(page):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        audit.act(Actor("anna"), "set password", "operator", "demo", fail)
    failed, tried = page("audit/").rows[:2]
    assert (failed["Event"], failed["Details"]) == ("Not done anna set the password of demo", "ValueError")
    assert tried["Event"] == "anna set the password of demo"
    shown = AuditEntry.select().order_by(AuditEntry.id.desc()).limit(2)
    assert [row.detail for row in shown] == ["not done: ValueError", ""]


def test_names_and_values_cannot_inject_markup_or_formats(events, page, export):
    changes = audit.changes({"name": "a"}, {"name": "<b>%(who)s%s</b>"})
    audit.record(Actor("<i>%s"), "set merchant", "merchant", "%(x)s", changes)
    audit.record(Actor("anna"), "<em>%s %(x)s", "nothing", "%d")
    assert events()[:2] == ["anna <em>%s %(x)s %d", "<i>%s changed the name of *** from a to <b>%(who)s%s</b>"]
    assert not any(tag in page("audit/").html for tag in ("<i>", "<em>", "<b>%"))
    audit.record(Actor("anna"), "add merchant", "merchant", "demo")
    assert 'href="/console/merchant/demo"><bdi>Demo Shop' in page("audit/").html
    assert "anna added merchant Demo Shop 演示商户" in export("audit/export").text


@pytest.fixture
def stranger(app):
    """`stranger(password, address)`: a failed sign-in from an address, or from `forwarded` through a proxy there."""

    def tries(password="wrong-password", address="203.0.113.9", forwarded=""):
        client = app.test_client()
        client.environ_base |= {"REMOTE_ADDR": address, "HTTP_X_FORWARDED_FOR": forwarded}
        page = client.get("/console/login")
        token = page.text.partition('name="csrf_token" type="hidden" value="')[2].partition('"')[0]
        form = {"csrf_token": token, "name": "demo", "password": password}
        return client.post("/console/login", data=form)

    return tries


def test_failed_sign_ins_are_counted_per_address_and_hour(stranger, page):
    assert stranger("demo-password").status_code == 302
    for address in ("203.0.113.9", "203.0.113.9", "2001:db8::1", "2001:db8::2", "127.0.0.1"):
        assert stranger(address=address).status_code == 401
    counts = {row["IP address"]: row["Incorrect passwords"] for row in page("failed_sign_ins/").rows}
    assert counts == {"203.0.113.9": "2", "2001:db8::/64": "2", "127.0.0.1": "1"}
    assert page("failed_sign_ins/?flt_address=203.0.113.9").column("Incorrect passwords") == ["2"]


class TestBehindAProxyThatSendsPorts:
    @pytest.fixture
    def settings_of_app(self):
        return {"trusted_proxies": 1}

    def test_failed_sign_ins_are_counted_and_limited_per_address(self, app, stranger, page):
        def tries(forwarded):
            return stranger(forwarded=forwarded).status_code

        assert [tries(f"203.0.113.9:{50_000 + port}") for port in range(11)] == [401] * 10 + [429]
        assert [tries(f"[2001:db8::{port}]:443") for port in range(1, 12)] == [401] * 10 + [429]
        rows = page("failed_sign_ins/").rows
        assert {row["IP address"] for row in rows} == {"203.0.113.9", "2001:db8::/64"}


def test_a_flood_from_many_addresses_stays_small_and_is_deleted_after_30_days(app, monkeypatch):
    monkeypatch.setattr(sign_in_tries, "MOST_ADDRESSES", 5)
    FailedSignIn.add(address="203.0.113.1", hour=0, passwords=3, codes=0)
    for number in range(20):
        sign_in_tries.count_failed(f"203.0.113.{number}")
        sign_in_tries.count_failed(f"203.0.113.{number}", code=True)
    rows = {row.address: (row.passwords, row.codes) for row in FailedSignIn.select()}
    assert rows == {f"203.0.113.{number}": (1, 1) for number in range(5)} | {"": (15, 15)}


def test_details_and_reasons_are_in_the_readers_language(console, api):
    audit.record(Actor("demo"), "mark paid", "order", api.buy().data["order_no"], "12.00; in a bank file; my own words")
    audit.record(Actor("demo"), "approve payouts", "payouts", "", "3 payouts, 1,200.00")
    audit.record(Actor("demo"), "settle exception", "order", "1", "exception 5: wrong_amount; resolution: credit; R-1")
    audit.record(Actor("demo"), "create batch", "batch", "1", "2 payouts, 30.00, template generic")
    audit.record(Actor("demo"), "confirm columns", "channel", "3", "日期=time, 凭证=reference")
    why = OperatorError("no response from %(host)s: %(error)s", host="pay.example.com", error="Timeout")
    audit.record_failure(Actor("demo"), "ask channel", "order", "1", why)
    audit.record(audit.HERE, "create payment link", "order", "1", "merchant: demo; amount: 1,200.00")
    audit.record(audit.HERE, "check channel", "channel", "5", f"{audit.NOT_DONE}channel 5: {why.text % why.values}")
    shown = Shown(console.get("/console/audit/", headers={"Accept-Language": "zh"}).text)
    assert [event.split()[0] for event in shown.column("事件")[:2]] == ["未执行", "命令行"]
    assert shown.column("详情")[:8] == [
        "渠道 5：pay.example.com 无响应：Timeout",
        "商户：demo；金额：1,200.00",
        "pay.example.com 无响应：Timeout",
        "日期：时间或日期；凭证：流水号",
        "2 笔出款，共 ¥30.00，模板 通用 CSV（UTF-8）",
        "异常 5：金额不符；处理结果：已入账；R-1",
        "3 笔出款，共 ¥1,200.00",
        "12.00；已在银行文件中；my own words",
    ]
