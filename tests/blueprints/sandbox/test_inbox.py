"""The inbox as a merchant's server: it fails as configured, shows received callbacks, and serves scripts."""

import json
from urllib.parse import urlencode

import pytest

from tests.support import completed, until

INBOX, ANSWERS = "/sandbox/inbox", "/sandbox/inbox/answers"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BROWSER = FORM | {"Accept": "text/html,application/xhtml+xml"}
NO_STATUS = None


@pytest.fixture
def sandbox(service):
    """`sandbox(path, field=value)` posts a form to the running service."""

    def post(path, headers=FORM, **fields):
        return service.api.send("POST", f"/sandbox/{path}", urlencode(fields).encode(), headers)

    return post


def arrived(service, query=""):
    return service.api.send("GET", f"{INBOX}.json{query}").data["list"]


def callbacks_of(service, order_no):
    return service.api.send("GET", f"/sandbox/orders/{order_no}").data["callbacks"]


@pytest.mark.parametrize(
    ("answer", "statuses"),
    [
        ("400", {400}),
        ("410", {410}),
        ("429", {429}),
        ("500", {500}),
        ("503", {503}),
        ("redirect", {302}),
        ("long_head", {NO_STATUS}),
        ("hang_up", {NO_STATUS, 444}),  # the head of the response may arrive before the connection is closed
    ],
)
def test_the_inbox_fails_once_as_configured_and_accepts_the_next_attempt(service, sandbox, answer, statuses):
    assert sandbox("inbox/answers", answer=answer, times=1).data["times"] == 1
    order_no = completed(service.api)
    until(lambda: callbacks_of(service, order_no)["order.completed"]["attempts"] == 1)
    callback = callbacks_of(service, order_no)["order.completed"]
    shown = json.loads(service.flask("callback", "show", callback["id"], "--json").stdout)
    assert shown["tries"][0]["status"] in statuses
    assert "Error" in shown["tries"][0]["answer"] or answer != "hang_up"  # a part of the response is missing
    if answer == "410":
        assert callback["state"] == "dead"
        return
    assert sandbox("clock", seconds=6).data["done"]
    tries = arrived(service, f"?order_no={order_no}")
    assert [(each["attempt"], each["answered"], each["verified"]) for each in tries] == [
        (2, "200", True),
        (1, answer, True),
    ]
    assert callbacks_of(service, order_no)["order.completed"]["state"] == "delivered"


def test_a_late_response_is_a_failure(service, sandbox):
    sandbox("inbox/answers", answer="slow", times=1)
    order_no = completed(service.api)
    assert sandbox("clock", seconds=0).data["done"]
    callback = callbacks_of(service, order_no)["order.completed"]
    assert (callback["state"], callback["attempts"]) == ("pending", 1)


def test_scripts_may_read_json_redeliver_and_empty_the_inbox(service, sandbox):
    order_no = completed(service.api)
    assert sandbox("clock", seconds=0).data["done"]
    (found,) = service.api.send("GET", INBOX, headers={"Accept": "application/json"}).data["list"]
    assert (found["order_no"], found["why"], found["body"]["data"]["status"]) == (order_no, "", "completed")
    assert found["headers"]["webhook-id"] == found["webhook_id"]
    assert arrived(service, "?order_no=1") == []
    assert sandbox("inbox/again", webhook_id=found["webhook_id"]).code == 1
    assert sandbox("inbox/again", webhook_id="msg_none").code == 42200
    sandbox("clock", seconds=0)
    assert [each["attempt"] for each in arrived(service, f"?webhook_id={found['webhook_id']}")] == [2, 1]
    page = service.api.send("GET", f"{INBOX}/{found['number']}").text
    for text in (found["webhook_id"], order_no, "Signature valid", "All attempts:", "Redeliver"):
        assert text in page
    assert service.api.send("DELETE", INBOX).code == 1
    assert arrived(service) == []


def test_a_page_explains_why_a_signature_is_invalid(http):
    body = json.dumps({"type": "order.completed", "data": {"order_no": "1"}}).encode()
    http("POST", INBOX, body, {"Content-Type": "application/json"})
    page = http("GET", f"{INBOX}/1").text
    assert "A header is missing" in page
    assert http("GET", f"{INBOX}/2").code == 40404


def test_attempts_are_counted_among_the_kept_callbacks(http):
    body = json.dumps({"type": "order.completed", "data": {"order_no": "1"}}).encode()

    def arrive(*webhook_ids):
        for webhook_id in webhook_ids:
            http("POST", INBOX, body, {"Content-Type": "application/json", "webhook-id": webhook_id})
        return http("GET", f"{INBOX}.json").data["list"][0]["attempt"]

    others = [f"msg_{number}" for number in range(100)]
    assert [arrive("msg_first"), arrive("msg_first")] == [1, 2]
    assert arrive(*others[:99], "msg_first") == 3
    assert arrive(*others, "msg_first") == 1


def test_an_unknown_response_is_refused(http):
    for fields, wrong in (
        ({}, "answer"),
        ({"answer": "418"}, "answer"),
        ({"answer": "500", "times": "0"}, "times"),
        ({"answer": "500", "times": "x"}, "times"),
        ({"answer": "slow", "seconds": "61"}, "seconds"),
    ):
        refused = http("POST", ANSWERS, urlencode(fields).encode(), FORM)
        assert (refused.code, list(refused.data)) == (42200, [wrong]), fields


ELSEWHERE = [{"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")]
ELSEWHERE += [{"Origin": origin} for origin in ("http://evil.example", "null", "http://[")]


@pytest.mark.parametrize("path", ["inbox/answers", "inbox/clear", "clock", "accept", "channel", "pay"])
def test_another_sites_page_changes_nothing(http, nothing_changes, path):
    for headers in ELSEWHERE:
        assert http("POST", f"/sandbox/{path}", b"answer=500&seconds=60", FORM | headers).code == 40300, headers


def test_the_pages_own_forms_and_scripts_work(http):
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://localhost"}, {}):
        answer = http("POST", ANSWERS, b"answer=500&times=3", BROWSER | headers)
        assert (answer.status, answer.headers["Location"]) == (303, INBOX), headers
    assert "500 Internal error, remaining callbacks: 3" in http("GET", INBOX).text.replace("\n", "")


@pytest.mark.parametrize("settings_of_app", [{"demo": False}])
def test_actions_beyond_one_order_exist_only_in_the_demo(http):
    posted = ("clock", "inbox/answers", "inbox/clear", "inbox/again", "accept", "channel", "merchant")
    requests = [("GET", path) for path in ("", "/clock", "/orders/1", "/balances")]
    for method, path in [*requests, ("DELETE", "/inbox"), *(("POST", f"/{path}") for path in posted)]:
        assert http(method, f"/sandbox{path}", b"seconds=60", FORM).code == 40404, path
