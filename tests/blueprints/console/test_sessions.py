"""Sessions of the console: the service can end each of them, operators their own; renewed pages do not prolong them."""

import base64
import hashlib
import json
import re
import zlib

import pytest

from blueprints.console.browser_names import short_name
from models.tables.operator import AuditEntry, Operator, Session
from tests.blueprints.console.reading import Shown


@pytest.fixture
def end(send):
    """`end(client, "others")`: the response to a button of the page of sessions."""
    return lambda client, what: send(f"sessions/{what}", client=client)


def cookie_of(client):
    return client.get_cookie("console", path="/console").value


def ids():
    return [row.id for row in Session.select().order_by(Session.id)]


def carried(cookie):
    """The payload of a cookie, which is signed and not encrypted."""
    raw = base64.urlsafe_b64decode(cookie.lstrip(".").split(".")[0] + "==")
    return json.loads(zlib.decompress(raw) if cookie.startswith(".") else raw)


def is_in(client):
    return client.get("/console/").status_code == 200


def test_a_copied_cookie_is_worthless_after_signing_out(app, console, send):
    token = carried(cookie_of(console))["_user_id"]
    assert len(bytes.fromhex(token)) * 8 == 256
    assert Session.get().key == hashlib.sha256(token.encode()).hexdigest(), "the database has only a hash"
    copied = app.test_client()
    copied.set_cookie("console", cookie_of(console), path="/console")
    assert is_in(copied)
    send("logout")
    assert [is_in(copied), is_in(console)] == [False, False]


@pytest.mark.parametrize(
    "command", ["operator set demo --disabled", "operator set demo --role viewer", "operator password demo"]
)
def test_a_change_of_an_account_deletes_its_sessions_and_no_others(sign_in, flask, command):
    client, viewer = sign_in("demo"), sign_in("viewer")
    flask(*command.split(), typed="another long one\n")
    assert [is_in(client), is_in(viewer), len(ids())] == [False, True, 1]


def test_everyone_sees_and_ends_one_or_all_others_of_their_own_sessions(sign_in, end, page, flask):
    viewer = sign_in("viewer")
    first, second, third = (sign_in("demo") for _ in range(3))
    shown = page("sessions/", client=first)
    sessions = (shown.html.count(">this session<"), shown.html.count(">127.0.0.1<"))
    assert sessions == (1, 4), "with that of the fixture `console`"
    assert end(viewer, f"{ids()[-1]}/end").status_code == 404, "one of another account"
    assert end(first, f"{ids()[-2]}/end").status_code == 303
    assert [is_in(each) for each in (first, second, third)] == [True, False, True]
    elsewhere = sign_in("viewer")
    end(first, "others")
    end(viewer, "others")
    assert [is_in(each) for each in (first, third, viewer, elsewhere)] == [True, False, True, False]
    actions = AuditEntry.select(AuditEntry.who, AuditEntry.action).where(AuditEntry.action != "sign in").tuples()
    assert sorted(actions) == [
        ("demo", "end other sessions"),
        ("demo", "end session"),
        ("viewer", "end other sessions"),
    ]
    flask("db", "mark-restored")
    assert not is_in(first), "a restored backup brings no session back"


@pytest.mark.usefixtures("sign_in")
def test_a_browsers_name_is_stored_with_at_most_200_printable_characters(app):
    client = app.test_client()
    form = {"csrf_token": Shown(client.get("/console/login").text).fields["csrf_token"]}
    form |= {"name": "demo", "password": "demo-password"}
    client.post("/console/login", data=form, headers={"User-Agent": "Browser\t7 " + "x" * 500})
    assert Session.get().browser == ("Browser7 " + "x" * 500)[:200]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/150.0 Safari/537.36", "Chrome, Windows"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/150.0 Safari/537.36 Edg/150.0", "Edge, Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1", "Safari, iPhone"),
        ("Mozilla/5.0 (Linux; Android 16) Chrome/150.0 Mobile Safari/537.36 MicroMessenger/8.0", "WeChat, Android"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", ""),
    ],
)
def test_a_browser_has_a_short_name(text, name):
    assert short_name(text) == name


def test_the_time_of_the_last_request_is_written_at_most_once_a_minute(sign_in, ahead):
    client, seen = sign_in("demo"), []
    for seconds in (0, 30, 31, 20):
        ahead(seconds)
        client.get("/console/sessions/")
        seen.append(Session.get().seentime)
    assert (seen[1], seen[3]) == (seen[0], seen[2])
    assert 60 <= seen[2] - seen[0] <= 62


def test_a_session_without_requests_for_an_hour_is_deleted_at_the_next_sign_in(sign_in, ahead):
    sign_in("demo")
    ahead(3_601)
    sign_in("viewer")
    assert len(ids()) == 1


LIVE = {"X-Live": "1"}  # a page that renews itself


def test_a_renewed_page_does_not_prolong_the_session_but_an_opened_one_does(console, ahead):
    seen = Session.get().seentime
    for _ in range(3):
        ahead(1_190)
        assert console.get("/console/", headers=LIVE).status_code == 200
    assert (Session.get().seentime, Operator.get(name="demo").seentime <= seen) == (seen, True)
    assert console.get("/console/").status_code == 200
    ahead(1_800)
    assert console.get("/console/", headers=LIVE).status_code == 200
    ahead(1_860)
    assert console.get("/console/", headers=LIVE).status_code == 302


def test_a_renewed_page_sets_no_cookie_and_leaves_a_message_to_the_page_that_is_opened(console, send, page, app):
    send("factor/remove", password="wrong")
    renewed = console.get("/console/factor", headers=LIVE)
    assert "Set-Cookie" not in renewed.headers
    opened = page("factor").html
    assert ('class="notice bad"' in opened, "data-poll" in opened) == (True, True)
    refused = send("password", present="wrong", new="wrong", again="other")
    assert (refused.status_code, "data-poll" in refused.text) == (200, False), "it can't be requested again"
    assert "data-poll" not in app.test_client().get("/console/login").text


def test_the_title_and_the_menu_have_the_number_of_items_to_do(page, api):
    assert "<title>Overview" in page().html
    api.sell("45.00")
    shown = page("orders/")
    assert re.search(r"<title>\(1\) Orders . Tillbook</title>", shown.html)
    assert '<span id="count-payouts" data-live><b class="count">1</b></span>' in shown.html
