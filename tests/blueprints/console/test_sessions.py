"""Sessions of the console: the service can end each of them, and operators can list and end their own."""

import base64
import hashlib
import json
import zlib

import pytest

from blueprints.console.browsers import short_name
from models.tables.operator import AuditEntry, Session
from tests.blueprints.console.reading import Shown

PATH = "/console/sessions/"
CHANGES = ("operator set demo --disabled", "operator set demo --role viewer", "operator password demo")


@pytest.fixture
def is_in():
    """`is_in(client)`: whether it has a session."""
    return lambda client: client.get("/console/").status_code == 200


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


def test_a_copied_cookie_is_worthless_after_signing_out(app, console, send, is_in):
    copied = app.test_client()
    copied.set_cookie("console", cookie_of(console), path="/console")
    assert is_in(copied)
    send("logout")
    assert [is_in(copied), is_in(console)] == [False, False]


@pytest.mark.parametrize("command", CHANGES)
def test_a_change_of_an_account_deletes_its_sessions_and_no_others(sign_in, is_in, app, command):
    client, viewer = sign_in("demo"), sign_in("viewer")
    assert app.test_cli_runner().invoke(args=command.split(), input="another long one\n").exit_code == 0
    assert [is_in(client), is_in(viewer), len(ids())] == [False, True, 1]


def test_the_database_has_only_a_hash_of_the_cookies_token(app, console):
    token = carried(cookie_of(console))["_user_id"]
    assert len(bytes.fromhex(token)) * 8 == 256
    assert Session.get().key == hashlib.sha256(token.encode()).hexdigest()


def test_the_page_lists_only_ones_own_sessions_and_marks_this_one(sign_in, page):
    sign_in("viewer")
    client = sign_in("demo")
    sign_in("demo")
    shown = page("sessions/", client=client)
    assert (shown.html.count(">this session<"), shown.html.count(">127.0.0.1<")) == (1, 3)


@pytest.mark.usefixtures("sign_in")
def test_a_browsers_name_is_stored_with_at_most_200_printable_characters(app):
    client = app.test_client()
    token = Shown(client.get("/console/login").text).fields["csrf_token"]
    form = {"csrf_token": token, "name": "demo", "password": "demo-password"}
    client.post("/console/login", data=form, headers={"User-Agent": "Browser\t7 " + "x" * 500})
    assert Session.get().browser == ("Browser7 " + "x" * 500)[:200]


def test_an_operator_ends_one_session_or_all_others(sign_in, end, is_in):
    first, second, third = (sign_in("demo") for _ in range(3))
    assert end(first, f"{ids()[-2]}/end").status_code == 303
    assert [is_in(each) for each in (first, second, third)] == [True, False, True]
    end(first, "others")
    assert [is_in(each) for each in (first, third)] == [True, False]


def test_a_viewer_ends_own_sessions(sign_in, end, is_in):
    viewer, elsewhere = sign_in("viewer"), sign_in("viewer")
    end(viewer, "others")
    assert [is_in(viewer), is_in(elsewhere)] == [True, False]


def test_nobody_ends_a_session_of_another_account_by_its_number(sign_in, end, is_in):
    viewer, demo = sign_in("viewer"), sign_in("demo")
    assert end(viewer, f"{ids()[-1]}/end").status_code == 404
    assert is_in(demo)


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


def test_ending_sessions_is_in_the_audit_log(console, end):
    end(console, "others")
    end(console, f"{ids()[0]}/end")
    assert [(row.who, row.action) for row in AuditEntry.select().order_by(AuditEntry.id)] == [
        ("demo", "sign in"),
        ("demo", "end other sessions"),
        ("demo", "end session"),
    ]


def test_the_time_of_the_last_request_is_written_at_most_once_a_minute(sign_in, ahead):
    client, seen = sign_in("demo"), []
    for seconds in (0, 30, 31, 20):
        ahead(seconds)
        client.get("/console/sessions/")
        seen.append(Session.get().seentime)
    assert (seen[1], seen[3]) == (seen[0], seen[2])
    assert 60 <= seen[2] - seen[0] <= 62


def test_a_session_without_requests_or_twelve_hours_old_is_deleted_at_the_next_sign_in(sign_in, ahead):
    sign_in("demo")
    ahead(3_601)
    sign_in("viewer")
    assert len(ids()) == 1


def test_a_restored_backup_brings_no_session_back(console, is_in, flask):
    flask("db", "mark-restored")
    assert not is_in(console)
