"""Access to the console: sign-in, the rights of each role, and the end of sessions."""

import re

import pytest

from app import create_app
from models import schema
from models.db.base import database
from models.tables.operator import AuditEntry
from services.sandbox import seeding
from services.security import operators, passwords
from tests.conftest import METHOD
from tests.databases import settings_of

LOGIN, LOGOUT, PASSWORD = "/console/login", "/console/logout", "/console/password"
DEMO, VIEWER = ("demo", "demo-password"), ("viewer", "viewer-password")
HTTPS = {"base_url": "https://localhost"}


@pytest.fixture
def app(app):
    seeding.seed_operators()
    return app


@pytest.fixture
def browser(app):
    """`browser()`: another user's browser, with cookies of its own."""
    return app.test_client


def token(answer):
    return re.search(r'name="csrf_token"[^>]* value="([^"]+)"', answer.text)[1]


def sign_in(client, name, password, **request):
    form = {"csrf_token": token(client.get(LOGIN, **request)), "name": name, "password": password}
    return client.post(LOGIN, data=form, **request)


def send(client, path, page="/console/password", **fields):
    """Send a form with the page's own values."""
    return client.post(path, data={"csrf_token": token(client.get(page)), **fields})


def is_in(client):
    return client.get("/console/").status_code == 200


def audit():
    return [(row.who, row.action, row.key, row.detail) for row in AuditEntry.select().order_by(AuditEntry.id)]


def test_without_a_session_the_sign_in_form_leads_to_the_requested_page(browser):
    client = browser()
    there = client.get("/console/orders/?flt_status=paid")
    assert (there.status_code, there.location) == (302, "/console/login?next=/orders/?flt_status%3Dpaid")
    form = {"csrf_token": token(client.get(there.location)), "name": "demo", "password": "demo-password"}
    answer = client.post(there.location, data=form)
    assert (answer.status_code, answer.location) == (302, "/console/orders/?flt_status=paid")
    assert is_in(client)


@pytest.mark.parametrize("path", ["/", "/orders/", "/orders/export", "/nothing", "/password"])
def test_without_a_session_only_the_form_is_shown(path, browser):
    answer = browser().get(f"/console{path}")
    assert answer.status_code == 302
    assert answer.location.startswith(LOGIN)


@pytest.mark.parametrize(
    ("name", "password"),
    [("demo", "wrong-password"), ("nobody", "demo-password"), ("demo", "x" * 201), ("demo", ""), ("", "demo-password")],
)
def test_a_wrong_name_and_a_wrong_password_have_the_same_refusal(name, password, browser):
    client = browser()
    answer = sign_in(client, name, password)
    assert answer.status_code in (401, 422)
    assert ("Incorrect user name or password." in answer.text) is (answer.status_code == 401)
    assert not is_in(client)


def test_an_unknown_name_costs_as_many_hashes_as_a_known_one(browser, monkeypatch):
    compared, compare = [], passwords.check_password_hash
    spy = lambda stored, typed: compared.append(stored.split("$")[0]) or compare(stored, typed)  # noqa: E731
    monkeypatch.setattr(passwords, "check_password_hash", spy)
    for name in ("demo", "nobody"):
        assert sign_in(browser(), name, "wrong-password").status_code == 401
    known, unknown = compared
    assert known == unknown == passwords.METHOD


def test_there_is_no_account_by_default_and_the_page_shows_how_to_add_one(any_database, tmp_path):
    app = create_app(settings_of(tmp_path / "new"))
    page = app.test_client().get(LOGIN)
    assert "tillbook operator add" in page.text
    assert "demo-password" not in page.text
    made = app.test_cli_runner().invoke(args=["operator", "add", "anna"], input="a long password\n")
    assert made.exit_code == 0, made.output
    client = app.test_client()
    assert sign_in(client, "anna", "a long password").status_code == 302
    assert is_in(client)
    assert "tillbook operator add" not in app.test_client().get(LOGIN).text
    database.close()


def test_too_many_attempts_must_wait_even_with_the_right_password(browser, clock):
    client = browser()
    answers = [sign_in(client, "demo", f"guess-number-{number}").status_code for number in range(11)]
    assert answers == [401] * 10 + [429]
    assert sign_in(client, *DEMO).status_code == 429
    clock(601)
    assert sign_in(client, *DEMO).status_code == 302


def test_only_failed_attempts_are_counted(browser, clock):
    assert {sign_in(browser(), *DEMO).status_code for _ in range(12)} == {302}
    client = browser()
    answers = [sign_in(client, "demo", f"guess-number-{number}").status_code for number in range(11)]
    assert answers == [401] * 10 + [429]


def test_a_form_from_elsewhere_is_refused(browser):
    client = browser()
    form = {"name": "demo", "password": "demo-password"}
    assert client.post(LOGIN, data=form).status_code == 400
    sign_in(client, *DEMO)
    assert client.post(LOGOUT).status_code == 400
    assert client.post(LOGOUT, data={"csrf_token": token(browser().get(LOGIN))}).status_code == 400
    assert is_in(client)


def test_the_cookie_is_for_the_console_only_and_hidden_from_scripts(browser):
    cookie = sign_in(browser(), *DEMO).headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/console"))
    assert "Secure" not in cookie
    assert (
        "Secure" in sign_in(browser(), *DEMO, **HTTPS, headers={"Referer": "https://localhost"}).headers["Set-Cookie"]
    )


def test_behind_https_the_cookie_is_for_https_only(instance):
    app = create_app(settings_of(instance, site_url="https://pay.example.com"))
    seeding.seed_operators()
    assert "Secure" in app.test_client().get(LOGIN).headers["Set-Cookie"]
    database.close()


@pytest.mark.parametrize("path", [LOGIN, "/console/", "/console/nothing", "/console/static/console.css"])
def test_every_response_forbids_unneeded_browser_features(path, browser):
    client = browser()
    if path != LOGIN:
        sign_in(client, *DEMO)
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "same-origin")
    assert headers["X-Service-Version"]
    assert path.endswith(".css") or headers["Cache-Control"] == "no-store"


def test_signing_out_ends_the_session(browser):
    client, elsewhere = browser(), browser()
    for each in (client, elsewhere):
        sign_in(each, *DEMO)
    assert send(client, LOGOUT).location == LOGIN
    assert (is_in(client), is_in(elsewhere)) == (False, True)


def test_signing_out_everywhere_ends_every_session_of_the_account(browser):
    client, elsewhere, viewer = browser(), browser(), browser()
    for each, account in ((client, DEMO), (elsewhere, DEMO), (viewer, VIEWER)):
        sign_in(each, *account)
    send(client, "/console/logout/everywhere")
    assert [is_in(each) for each in (client, elsewhere, viewer)] == [False, False, True]


def test_a_new_password_ends_every_session_and_the_old_password(browser):
    client, elsewhere = browser(), browser()
    for each in (client, elsewhere):
        sign_in(each, *DEMO)
    new = {"present": "demo-password", "new": "another long one", "again": "another long one"}
    assert send(client, PASSWORD, **new).location == LOGIN
    assert [is_in(each) for each in (client, elsewhere)] == [False, False]
    assert sign_in(client, *DEMO).status_code == 401
    assert sign_in(client, "demo", "another long one").status_code == 302


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"present": "wrong-password"}, "Incorrect password."),
        ({"again": "something else"}, "The new passwords do not match."),
        ({"new": "demo-12345", "again": "demo-12345"}, "easy to guess"),
        ({"new": "aaaaaaaaaaaa", "again": "aaaaaaaaaaaa"}, "easy to guess"),
        ({"new": "password12345", "again": "password12345"}, "easy to guess"),
        ({"new": "woaini1314520", "again": "woaini1314520"}, "easy to guess"),
        ({"new": "admin@12345", "again": "admin@12345"}, "easy to guess"),
        ({"new": "q1w2e3r4t5y6", "again": "q1w2e3r4t5y6"}, "easy to guess"),
        ({"new": "short", "again": "short"}, "between 10 and 200"),
    ],
)
def test_an_unacceptable_password_changes_nothing(fields, said, browser):
    client = browser()
    sign_in(client, *DEMO)
    given = {"present": "demo-password", "new": "another long one", "again": "another long one"} | fields
    answer = send(client, PASSWORD, **given)
    assert said in answer.text
    assert is_in(client)
    assert sign_in(browser(), *DEMO).status_code == 302


@pytest.mark.parametrize(
    "command", ["operator set demo --disabled", "operator set demo --role viewer", "operator password demo"]
)
def test_a_commands_change_of_an_account_ends_its_sessions(command, browser, app):
    client = browser()
    sign_in(client, *DEMO)
    assert app.test_cli_runner().invoke(args=command.split(), input="another long one\n").exit_code == 0
    assert not is_in(client)


def test_a_disabled_account_cannot_sign_in(browser, flask):
    flask("operator", "set", "demo", "--disabled")
    assert sign_in(browser(), *DEMO).status_code == 401
    flask("operator", "set", "demo", "--enabled")
    assert sign_in(browser(), *DEMO).status_code == 302


def test_a_session_ends_an_hour_after_its_last_request_and_after_twelve_in_any_case(browser, ahead):
    client = browser()
    sign_in(client, *DEMO)
    ahead(3_500)
    assert is_in(client)
    ahead(3_700)
    assert not is_in(client)
    sign_in(client, *DEMO)
    seen = []
    for _ in range(13):
        ahead(3_500)
        seen.append(is_in(client))
    assert seen == [True] * 12 + [False]


def test_a_session_of_another_installation_is_invalid(browser, tmp_path):
    client = browser()
    sign_in(client, *DEMO)
    cookie = client.get_cookie("console", path="/console").value
    stranger = create_app(settings_of(tmp_path / "elsewhere")).test_client()
    seeding.seed_operators()
    stranger.set_cookie("console", cookie, path="/console")
    assert not is_in(stranger)
    sign_in(stranger, *DEMO)
    assert is_in(stranger)


def test_a_viewer_has_read_only_access_and_changes_only_the_own_password(browser):
    client = browser()
    sign_in(client, *VIEWER)
    assert client.get("/console/orders/").status_code == 200
    refused = send(client, "/console/orders/")
    assert refused.status_code == 403
    assert "Your role does not allow this." in refused.text
    new = {"present": "viewer-password", "new": "another long one", "again": "another long one"}
    assert send(client, PASSWORD, **new).location == LOGIN


def test_signing_in_and_out_and_commands_are_in_the_audit_log_and_passwords_are_not(browser, flask, app):
    client = browser()
    sign_in(client, *DEMO)
    send(client, LOGOUT)
    run = app.test_cli_runner().invoke
    assert run(args=["operator", "add", "anna", "--role", "viewer"], input="a long password\n").exit_code == 0
    assert run(args=["operator", "add", "anna"], input="a long password\n").exit_code == 1
    assert audit() == [
        ("demo", "sign in", "", ""),
        ("demo", "sign out", "", ""),
        ("command line", "add operator", "anna", "viewer"),
        ("command line", "add operator", "anna", "administrator"),
        ("command line", "add operator", "anna", "not done: User name anna is already taken. Choose another name."),
    ]


def test_nobody_can_edit_the_audit_log(browser):
    sign_in(browser(), *DEMO)
    for statement in ("UPDATE audit_entry SET who = 'x'", "DELETE FROM audit_entry"):
        with pytest.raises(Exception, match="append-only"):
            database.execute_sql(statement)
    assert audit() == [("demo", "sign in", "", "")]


def test_without_the_audit_log_nobody_signs_in_but_signing_out_works(browser):
    client, other = browser(), browser()
    sign_in(client, *DEMO)
    database.execute_sql("ALTER TABLE audit_entry RENAME TO away")
    answers = sign_in(other, *DEMO), send(client, LOGOUT)
    database.execute_sql("ALTER TABLE away RENAME TO audit_entry")
    assert [answer.status_code for answer in answers] == [500, 500]
    assert (is_in(client), is_in(other)) == (False, False)


def test_an_attempt_refused_for_lack_of_room_is_not_counted(browser, clock):
    def guess(number, address):
        return sign_in(browser(), "demo", f"guess-number-{number}", environ_base={"REMOTE_ADDR": address}).status_code

    assert {guess(number, f"198.51.100.{number // 10 + 1}") for number in range(120)} == {401}
    assert [guess(number, "203.0.113.7") for number in range(12)] == [429] * 12
    clock(450)  # half a window later, half of them count
    assert [guess(number, "203.0.113.7") for number in range(11)] == [401] * 10 + [429]


def test_the_time_of_a_failed_attempt_does_not_reveal_existing_names(browser, monkeypatch):
    compared, real = [], passwords.check_password_hash
    monkeypatch.setattr(passwords, "check_password_hash", lambda *given: compared.append(given[0]) or real(*given))
    for name, method in (("nobody", METHOD), ("demo", METHOD), ("demo", passwords.METHOD)):
        monkeypatch.setattr(passwords, "METHOD", method)  # in the first case, the account's hash is an older one
        compared.clear()
        passwords._of_nobody.cache_clear()
        assert sign_in(browser(), name, "wrong-password").status_code == 401
        assert [stored for stored in compared if stored.startswith(method)] == compared[-1:]
    passwords._of_nobody.cache_clear()


def test_a_hash_of_release_0_4_0_takes_as_long_as_that_of_an_unknown_name_and_is_replaced(browser, monkeypatch):
    monkeypatch.setattr(passwords, "METHOD", passwords.AS_SLOW)
    operators.set_password(operators.find("demo"), "four words of a release")
    monkeypatch.setattr(passwords, "METHOD", METHOD)
    compared, real = [], passwords.check_password_hash
    monkeypatch.setattr(passwords, "check_password_hash", lambda *given: compared.append(given[0]) or real(*given))
    assert sign_in(browser(), "demo", "wrong-password").status_code == 401
    assert [stored.split("$")[0] for stored in compared] == ["scrypt:131072:8:1"]
    assert sign_in(browser(), "demo", "four words of a release").status_code == 302
    assert operators.find("demo").password.startswith("scrypt:65536:8:2$")


def test_passwords_are_stored_as_slow_hashes(browser, monkeypatch):
    """With the method of production; the other tests use a cheaper one."""
    monkeypatch.setattr(passwords, "METHOD", METHOD)
    assert sign_in(browser(), *DEMO).status_code == 302
    kept = dict(database.execute_sql('SELECT name, password FROM "operator"').fetchall())
    assert kept["demo"].startswith("scrypt:65536:8:2$"), "a hash of before is replaced when the account signs in"
    assert kept["viewer"].startswith("scrypt:1024:8:1$")
    assert kept["demo"].split("$")[1] != kept["viewer"].split("$")[1], "each has a salt of its own"
    assert sign_in(browser(), *DEMO).status_code == 302
    assert sign_in(browser(), "demo", "wrong-password").status_code == 401


def test_the_language_is_the_browsers_or_the_chosen_one(browser):
    client = browser()
    assert 'lang="en"' in client.get(LOGIN).text
    assert 'lang="zh-CN"' in client.get(LOGIN, headers={"Accept-Language": "zh-CN,zh"}).text
    client.get("/console/language/zh?to=/login")
    assert 'lang="zh-CN"' in client.get(LOGIN).text


def test_the_api_has_no_cookies_and_no_console_headers(api, http):
    assert "Set-Cookie" not in api.buy().headers
    assert http("GET", "/consolex").status == 404
    assert http("GET", "/consolex").json["code"] == 40404


def test_a_missing_database_shows_a_page_and_no_secret(browser, instance):
    client = browser()
    sign_in(client, *DEMO)
    database.execute_sql('ALTER TABLE "operator" RENAME TO away')
    answer = client.get("/console/")
    database.execute_sql('ALTER TABLE away RENAME TO "operator"')
    assert answer.status_code == 500
    assert "Something went wrong" in answer.text
    assert schema.has_tables()
