"""The request for each kind of destination, as its vendor documents it, and the responses that count as success."""

import base64
import hashlib
import hmac
import json
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from standardwebhooks import Webhook

from services.notifications import destinations
from services.notifications.messages import DIGEST, FINDINGS, Message

SECRET = "SECf3ecf88f2b3eb50d"
WEBHOOK_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def hears(add, robot):
    """`hears("dingtalk", secret=...)`: the request that the robot receives as a test message."""

    def sent(kind, answer, **config):
        robot.answer = answer
        robot.got.clear()
        outcome = destinations.test(add(kind, **config))
        assert (outcome.problem, outcome.detail) == ("", "")
        (got,) = robot.got
        return got

    return sent


def _says_that_it_works(text):
    subject, line, link = text.splitlines()
    assert subject == "[Tillbook pay.example.com] Test notification"
    assert line == "Notifications to this destination work."
    assert link == "https://pay.example.com/console/"


def test_wecom(hears, robot):
    got = hears("wecom", {"errcode": 0, "errmsg": "ok"}, url=f"{robot.url}?key=693a91f6")
    assert got.args["key"] == "693a91f6"
    assert got.content.keys() == {"msgtype", "text"}
    assert got.content["msgtype"] == "text"
    _says_that_it_works(got.content["text"]["content"])


def test_dingtalk_with_and_without_its_signature(hears, robot):
    accepts, url = {"errcode": 0, "errmsg": "ok"}, f"{robot.url}?access_token=abc"
    assert dict(hears("dingtalk", accepts, url=url).args) == {"access_token": "abc"}
    got = hears("dingtalk", accepts, url=url, secret=SECRET)
    query = {name: values[0] for name, values in parse_qs(urlsplit(got.url).query, strict_parsing=True).items()}
    assert query["access_token"] == "abc"
    assert abs(int(query["timestamp"]) / 1000 - time.time()) < 60
    # HmacSHA256 of "timestamp\nsecret" under the secret, base64, URL-encoded.
    signed = hmac.new(SECRET.encode(), f"{query['timestamp']}\n{SECRET}".encode(), digestmod=hashlib.sha256).digest()
    assert query["sign"] == base64.b64encode(signed).decode()
    assert got.content["msgtype"] == "text"
    _says_that_it_works(got.content["text"]["content"])


def test_feishu_with_and_without_its_signature(hears, robot):
    accepts = {"code": 0, "data": {}, "msg": "success"}
    assert hears("feishu", accepts, url=robot.url).content.keys() == {"msg_type", "content"}
    got = hears("feishu", accepts, url=robot.url, secret="demo")
    at = got.content["timestamp"]
    assert abs(int(at) - time.time()) < 60
    # HmacSHA256 of an empty text under "timestamp\nsecret", base64.
    signed = hmac.new(f"{at}\ndemo".encode(), b"", digestmod=hashlib.sha256).digest()
    assert got.content["sign"] == base64.b64encode(signed).decode()
    assert got.content["msg_type"] == "text"
    _says_that_it_works(got.content["content"]["text"])


def test_telegram(hears, robot, web_server):
    path = "/bot123456:ABC-def/sendMessage"
    web_server.expect_request(path).respond_with_handler(robot._take)
    got = hears(
        "telegram",
        {"ok": True, "result": {}},
        token="123456:ABC-def",
        chat_id="-100200",
        api_url=web_server.url_for(""),
    )
    assert got.path == path
    assert got.content["chat_id"] == "-100200"
    _says_that_it_works(got.content["text"])


def test_a_webhook_with_the_signature_of_callbacks(hears, robot):
    got = hears("webhook", {}, url=robot.url, secret=WEBHOOK_SECRET)
    event = Webhook(WEBHOOK_SECRET).verify(got.text, dict(got.headers))
    assert event["type"] == "notification.test"
    assert event["data"]["findings"] == []
    assert event["data"]["url"] == "https://pay.example.com/console/"


def test_a_webhook_has_the_findings_as_data_and_one_id_for_all_attempts(add, robot, look, low, ahead):
    add("webhook", url=robot.url, secret=WEBHOOK_SECRET)
    robot.status = 503
    low()
    look()
    robot.status = 200
    ahead(61)
    look()
    first, second = robot.got
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    event = Webhook(WEBHOOK_SECRET).verify(second.text, dict(second.headers))
    (line,) = event["data"]["findings"]
    assert (line["change"], line["kind"], line["severity"]) == ("new", "low_balance", "urgent")


REFUSALS = [  # with status 200
    ("wecom", {"errcode": 93000, "errmsg": "invalid webhook url"}, "webhook URL is not valid", "93000: invalid"),
    ("wecom", {"errcode": 45009, "errmsg": "api freq out of limit"}, "Too many messages", "45009: api freq"),
    ("dingtalk", {"errcode": 310000, "errmsg": "sign not match"}, "security settings", "310000: sign not match"),
    ("feishu", {"code": 19021, "msg": "sign match fail"}, "security settings", "19021: sign match fail"),
    ("feishu", {"code": 777, "msg": "new reason"}, "The receiver refused the message.", "777: new reason"),
    ("telegram", {"ok": False, "error_code": 401, "description": "Unauthorized"}, "bot token", "401: Unauthorized"),
    ("telegram", {"ok": False, "error_code": 400, "description": "chat not found"}, "chat id", "400: chat not"),
    *((kind, ["welcome"], "The receiver refused the message.", "") for kind in ("wecom", "dingtalk", "feishu")),
]
STATUSES = ((302, "redirects"), (403, "denied access"), (502, "failed to process"))


def test_a_refusal_is_a_failure_in_plain_words(add, robot, web_server):
    web_server.expect_request("/bot1:a/sendMessage").respond_with_handler(robot._take)
    telegram = {"token": "1:a", "chat_id": "5", "api_url": web_server.url_for("")}
    for kind, answer, problem, detail in REFUSALS:
        robot.answer = answer
        row = add(kind, **(telegram if kind == "telegram" else {"url": robot.url}))
        outcome = destinations.test(row)
        assert problem in outcome.problem, answer
        assert outcome.detail.startswith(detail), answer
    webhook = add("webhook", url=robot.url, secret=WEBHOOK_SECRET)
    for status, problem in STATUSES:
        robot.status = status
        outcome = destinations.test(webhook)
        assert (problem in outcome.problem, outcome.detail) == (True, f"HTTP {status}")


def test_a_message_fits_and_counts_what_it_leaves_out(app):
    lines = [{"change": "open", "kind": "x", "severity": "soon", "text": "长" * 100} for _ in range(20)]
    message = Message("msg_1", DIGEST, lines, "zh", 1)
    text = message.text(2048)
    assert len(text.encode()) <= 2048
    shown = sum("长" in line for line in text.splitlines())
    assert 0 < shown < 20
    assert str(20 - shown) in text.splitlines()[-2]
    assert text.splitlines()[-1] == message.url
    assert Message("msg_1", FINDINGS, lines[:1], "en", 1).subject.endswith("1 change")


def test_results_never_contain_a_secret(add, web_server):
    web_server.stop()
    try:
        for kind in ("wecom", "dingtalk", "feishu", "webhook"):
            secret = {"secret": WEBHOOK_SECRET} if kind == "webhook" else {}
            outcome = destinations.test(add(kind, url=web_server.url_for("/x?key=very-secret"), **secret))
            assert outcome.problem
            assert "very-secret" not in json.dumps([outcome.problem, outcome.detail])
    finally:
        web_server.start()
