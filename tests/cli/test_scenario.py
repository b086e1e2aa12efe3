"""`orders scenario`: the examples pass, a failed step ends the run with its reason, and recorded steps can be run."""

import json
import re
import subprocess
import sys
import threading

import pytest
from werkzeug import Response

from tests.support import ROOT, DemoService, completed, until

pytestmark = pytest.mark.usefixtures("demo")

EXAMPLES = sorted((ROOT / "docs" / "scenarios").glob("*.json"))
BUY = {"order_type": 1, "cny_amount": "100.00", "paychannel_id": 2, "paychannel_paymethod": "wxpay"}
CREATE = {"do": "create", "as": "deposit", "fields": BUY}
PAY = {"do": "pay", "order": "deposit", "outcome": "success"}


@pytest.fixture
def file(tmp_path):
    """`file(step, ...)`: a scenario of these steps."""

    def write(*steps):
        path = tmp_path / "scenario.json"
        path.write_text(json.dumps({"name": "mine", "steps": steps}))
        return str(path)

    return write


def run(service, *arguments, fails=False):
    done = service.flask("scenario", "run", *map(str, arguments), "--url", service.url, check=False)
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done


def test_all_examples_pass_on_a_running_demo(service, tmp_path):
    page = (ROOT / "docs" / "sandbox.md").read_text("utf-8")
    in_the_docs = tmp_path / "in_the_docs.json"
    in_the_docs.write_text(re.search(r"```json\n(\{\n.*?)```", page, re.DOTALL)[1])
    assert len(EXAMPLES) >= 5
    said = run(service, *EXAMPLES, in_the_docs).stdout
    assert "FAILED" not in said
    assert said.count(".json: ") == len(EXAMPLES) + 1


def test_without_an_address_a_temporary_demo_is_started(service, tmp_path):
    service.environ["TMPDIR"] = str(tmp_path)
    done = service.flask("scenario", "run", str(ROOT / "docs" / "scenarios" / "paid-deposit.json"))
    assert done.stdout.count("  ok  ") == 4
    assert list(tmp_path.glob("scenario-*")) == []
    assert service.api.listed().data["total"] == 0


def test_an_interrupted_run_leaves_no_demo(service, file, web_server, tmp_path):
    began, look = threading.Event(), web_server.url_for("/look")
    web_server.expect_request("/look").respond_with_handler(lambda request: began.set() or Response("no"))
    service.environ["TMPDIR"] = str(tmp_path)
    path = file({"do": "get", "url": look, "contains": "yes", "within": 60})
    command = [sys.executable, "-m", "flask", "scenario", "run", path]
    with subprocess.Popen(command, cwd=ROOT, env=service.environ, stdout=subprocess.PIPE) as running:
        assert began.wait(60)
        (folder,) = tmp_path.glob("scenario-*")
        running.terminate()
        assert running.wait(40) != 0
    assert not folder.exists()  # removed once the demo has ended


@pytest.mark.usefixtures("slow")
def test_a_demo_may_have_another_api_prefix(instance, file):
    service = DemoService(instance, ORDERS_API_PREFIX="/api/v1").start()
    try:
        run(service, file(CREATE, PAY, {"do": "expect", "order": "deposit", "status": "completed"}))
    finally:
        service.stop()


def test_the_first_failed_step_ends_the_run_and_reports_the_actual_result(service, file):
    wrong = {"do": "expect", "order": "deposit", "status": "cancelled", "within": 0}
    said = run(service, file(CREATE, PAY, wrong, PAY), fails=True).stdout
    lines = said.splitlines()[-3:]
    assert lines[0].startswith("   3  FAILED  expect: order deposit")
    assert lines[1] == '      expected  {"status": "cancelled"}'
    assert lines[2] == '      actual    {"status": "completed"}'
    assert "   2  ok  " in said


@pytest.mark.parametrize(
    ("step", "seen"),
    [
        ({"do": "create", "fields": BUY | {"cny_amount": "0"}}, "42200"),
        ({"do": "create", "fields": BUY, "code": 50201}, '"code": 1'),
        ({"do": "create", "fields": BUY, "merchant": "nobody"}, "40101"),
        ({"do": "accept", "order": "deposit"}, "Only a withdrawal can be approved"),
        ({"do": "channel", "channel": 3, "open": "refuse"}, "40403"),
        ({"do": "expect", "balance": {"available": "1.00"}, "within": 0}, '"available": "0.00"'),
        ({"do": "expect", "balance": {"available": "1.00"}, "merchant": "nobody"}, '["demo", "other"]'),
        ({"do": "get", "url": "http://127.0.0.1:1/", "within": 0}, "ConnectionError"),
        ({"do": "get", "url": "http://127.0.0.1:1/{deposit.nothing}", "within": 0}, "order_no"),
    ],
)
def test_the_error_of_a_step_is_reported(service, file, step, seen):
    assert seen in run(service, file(CREATE, step), fails=True).stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        ([], "steps: Length must be between 1 and 2000."),
        ([{}], "step 1: do: Must be one of: create, pay, accept, inbox, channel, clock, expect, get."),
        ([CREATE, {"do": "clock"}], "step 2: One of seconds, to is required."),
        ([CREATE, {"do": "clock", "to": "next", "seconds": 1}], "step 2: One of seconds, to is required."),
        ([CREATE | {"code": 50201}, PAY], "step 2: order: No step before this one creates deposit."),
        ([CREATE | {"fields": BUY | {"api_key": "other"}}], "step 1: fields: api_key: the run puts this in"),
        ([CREATE | {"fields": BUY | {"customer_name": "\ud800"}}], "step 1: fields: customer_name: \\ud800 is half"),
        (
            [CREATE | {"fields": BUY | {"cny_amount": float("inf")}}],
            "step 1: fields: cny_amount: Infinity is not a JSON value",
        ),
        ([CREATE | {"fields": {"x.y": 1}}], "step 1: fields: x.y: a name may only have letters"),
        ([PAY], "step 1: order: No step before this one creates deposit."),
        ([CREATE, PAY | {"outcome": "luck"}], "step 2: outcome: Must be one of: success, fail"),
        ([CREATE, PAY | {"why": "x"}], "step 2: why: Unknown field."),
        ([CREATE, {"do": "expect", "order": "deposit"}], "step 2: One of status, exceptions, callbacks, balance"),
        ([{"do": "expect", "status": "paid"}], "step 1: order: Missing data for required field."),
        ([{"do": "expect", "balance": {"held": "1"}}], "step 1: balance: held: String does not match"),
        (
            [CREATE, {"do": "expect", "order": "deposit", "callbacks": {"order.paid": {"state": "lost"}}}],
            "step 2: callbacks: order.paid: state: Must be one of: pending, delivered, dead.",
        ),
        ([{"do": "get", "url": "http://127.0.0.1/{deposit.id}"}], "step 1: order: No step before this one creates"),
    ],
)
def test_an_invalid_file_is_refused_before_any_step(refuses, file, steps, line):
    assert line in refuses("scenario", "run", file(*steps))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"name": "x"}', "[" * 100_000])
def test_a_file_that_is_not_a_scenario_is_refused(refuses, tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert str(path) in refuses("scenario", "run", str(path))


def test_a_demo_that_does_not_respond_is_one_line(refuses, file):
    said = refuses("scenario", "run", file(CREATE), "--url", "http://127.0.0.1:1")
    assert "an answer of the demo at http://127.0.0.1:1" in said
    assert said.count("\n") == 1


def test_callbacks_are_sent_to_the_merchants_own_server_which_is_checked(service, file, receiver, web_server):
    paid = set()

    receiver.answer = lambda request: paid.add(request.get_json()["data"]["order_no"]) or Response("")
    web_server.expect_request("/orders/A-1").respond_with_handler(lambda request: Response("paid" if paid else "open"))
    create = CREATE | {"fields": BUY | {"merchant_order_no": "A-1"}}
    look = {"do": "get", "url": web_server.url_for("/orders/{deposit.merchant_order_no}"), "contains": "paid"}
    run(service, file(create, PAY, look), "--callback-url", receiver.url)
    assert [got.event["type"] for got in receiver.got] == ["order.completed"]
    merchant = json.loads(service.flask("merchant", "show", "demo", "--json").stdout)
    assert merchant["callback_url"] == "/sandbox/inbox"  # as before


def test_manual_actions_are_recorded_and_can_be_run(service, tmp_path):
    def post(path, **fields):
        body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return service.api.send("POST", f"/sandbox/{path}", body, headers).data

    assert "nothing has been recorded" in service.flask("scenario", "record", str(tmp_path / "0"), check=False).stderr
    post("inbox/answers", answer="500", times=2)
    deposit = completed(service.api)
    post("clock", seconds=1_000)  # its callback takes both, instead of one for a later order
    late = service.api.buy("7.00", merchant_order_no=None).data["order_no"]
    withdrawal = service.api.sell("10.00").data["order_no"]
    service.api.buy("0")
    post("pay", order_no=withdrawal, outcome="fail")
    post("accept", order_no=withdrawal)
    post("clock", seconds=1_000)
    post("pay", order_no=late, outcome="success")
    until(lambda: service.api.status(deposit) == "completed")
    path = tmp_path / "recorded.json"
    service.flask("scenario", "record", str(path))
    assert "null" not in path.read_text()
    steps = json.loads(path.read_text())["steps"]
    assert [step["do"] for step in steps if step["do"] != "clock"] == [
        *("inbox", "create", "pay", "create", "create", "create", "pay", "accept", "pay"),
        *("expect", "expect", "expect"),
    ]
    assert [step["code"] for step in steps if "code" in step] == [42200]
    assert [(step["order"], step["status"], step["exceptions"]) for step in steps[-3:]] == [
        ("order1", "completed", []),
        ("order2", "cancelled", ["late_payment"]),
        ("order3", "cancelled", []),
    ]
    run(service, path)
    assert "already exists" in service.flask("scenario", "record", str(path), check=False).stderr
    post("scenario/new")
    assert service.api.send("GET", "/sandbox/scenario").json["steps"] == []
