"""Access to the console: sign-in, the rights of each role, and the end of sessions."""

import re

import pytest

from app import create_app
from blueprints import console as console_app
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
    return list(AuditEntry.select(AuditEntry.who, AuditEntry.action, AuditEntry.key, AuditEntry.detail).tuples())


def test_without_a_session_the_sign_in_form_leads_to_the_requested_page(browser):
    client = browser()
    for path in ("/", "/orders/export", "/nothing", "/password"):
        answer = client.get(f"/console{path}")
        assert (answer.status_code, answer.location.startswith(LOGIN)) == (302, True)
    there = client.get("/console/orders/?flt_status=paid")
    assert (there.status_code, there.location) == (302, "/console/login?next=/orders/?flt_status%3Dpaid")
    form = {"csrf_token": token(client.get(there.location)), "name": "demo", "password": "demo-password"}
    answer = client.post(there.location, data=form)
    assert (answer.status_code, answer.location) == (302, "/console/orders/?flt_status=paid")
    assert is_in(client)


def test_a_wrong_name_and_a_wrong_password_have_the_same_refusal(browser):
    client = browser()
    for name, password in (("demo", "wrong-password"), ("nobody", "demo-password")):
        answer = sign_in(client, name, password)
        assert (answer.status_code, "Incorrect user name or password." in answer.text) == (401, True)
    for name, password in (("demo", "x" * 201), ("demo", ""), ("", "demo-password")):
        assert sign_in(client, name, password).status_code == 422
    assert not is_in(client)


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


def test_too_many_failed_attempts_must_wait_even_with_the_right_password(browser, clock):
    assert {sign_in(browser(), *DEMO).status_code for _ in range(12)} == {302}, "correct ones are not counted"
    client = browser()
    answers = [sign_in(client, "demo", f"guess-number-{number}").status_code for number in range(11)]
    assert answers == [401] * 10 + [429]
    assert sign_in(client, *DEMO).status_code == 429
    clock(601)
    assert sign_in(client, *DEMO).status_code == 302


def test_a_form_from_elsewhere_is_refused(browser):
    client = browser()
    form = {"name": "demo", "password": "demo-password"}
    assert client.post(LOGIN, data=form).status_code == 400
    sign_in(client, *DEMO)
    assert client.post(LOGOUT).status_code == 400
    assert client.post(LOGOUT, data={"csrf_token": token(browser().get(LOGIN))}).status_code == 400
    assert is_in(client)


def test_the_cookie_is_for_the_console_only_and_hidden_from_scripts(browser, instance):
    cookie = sign_in(browser(), *DEMO).headers["Set-Cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/console"))
    assert "Secure" not in cookie
    encrypted = sign_in(browser(), *DEMO, **HTTPS, headers={"Referer": "https://localhost"})
    assert "Secure" in encrypted.headers["Set-Cookie"]
    behind_https = create_app(settings_of(instance, site_url="https://pay.example.com"))
    assert "Secure" in behind_https.test_client().get(LOGIN).headers["Set-Cookie"]
    database.close()


def test_every_response_forbids_unneeded_browser_features(browser):
    client = browser()
    sign_in(client, *DEMO)
    for path in (LOGIN, "/console/", "/console/nothing", "/console/static/console.css"):
        headers = client.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert ("default-src 'none'" in policy, "frame-ancestors 'none'" in policy) == (True, True)
        assert "unsafe" not in policy
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "same-origin")
        assert headers["X-Service-Version"]
        assert path.endswith(".css") or headers["Cache-Control"] == "no-store"


def test_signing_out_ends_the_session_and_everywhere_all_of_the_account(browser):
    client, elsewhere, viewer = browser(), browser(), browser()
    for each, account in ((client, DEMO), (elsewhere, DEMO), (viewer, VIEWER)):
        sign_in(each, *account)
    assert send(client, LOGOUT).location == LOGIN
    assert [is_in(each) for each in (client, elsewhere, viewer)] == [False, True, True]
    sign_in(client, *DEMO)
    send(client, "/console/logout/everywhere")
    assert [is_in(each) for each in (client, elsewhere, viewer)] == [False, False, True]


def test_a_new_password_ends_every_session_and_the_old_password(browser):
    client, elsewhere = browser(), browser()
    for each in (client, elsewhere):
        sign_in(each, *DEMO)
    new = {"present": "demo-password", "new": "another long one", "again": "another long one"}
    assert send(client, PASSWORD, **new).location == LOGIN
    assert [is_in(each) for each in (client, elsewhere)] == [False, False]
    passwords_given = ("demo-password", "another long one")
    assert [sign_in(client, "demo", each).status_code for each in passwords_given] == [401, 302]


def test_an_unacceptable_password_changes_nothing(browser):
    client = browser()
    sign_in(client, *DEMO)
    easy = ("demo-12345", "aaaaaaaaaaaa", "password12345", "woaini1314520", "admin@12345", "q1w2e3r4t5y6")
    for fields, said in (
        ({"present": "wrong-password"}, "Incorrect password."),
        ({"again": "something else"}, "The new passwords do not match."),
        ({"new": "short", "again": "short"}, "between 10 and 200"),
        *(({"new": each, "again": each}, "easy to guess") for each in easy),
    ):
        given = {"present": "demo-password", "new": "another long one", "again": "another long one"} | fields
        assert said in send(client, PASSWORD, **given).text, fields
    assert is_in(client)
    assert sign_in(browser(), *DEMO).status_code == 302


def test_a_disabled_account_cannot_sign_in(browser, flask):
    for change, status in (("--disabled", 401), ("--enabled", 302)):
        flask("operator", "set", "demo", change)
        assert sign_in(browser(), *DEMO).status_code == status


def test_a_session_ends_an_hour_after_its_last_request_and_after_twelve_in_any_case(browser, ahead):
    client = browser()
    sign_in(client, *DEMO)
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


# The endpoints of forms that everyone may send: those of one's own account, and of every list.
OWN = (
    *("sign_in.submit", "sign_in.sign_out", "sign_in.sign_out_everywhere", "sign_in.password"),
    *("sign_in.end_session", "sign_in.end_other_sessions", "second_factor.code", "second_factor.index"),
    *("second_factor.renew", "second_factor.remove", "confirm.check"),
)
OF_LISTS = (".export", ".export_all", ".save_view", ".delete_view")
SETUP = ("merchant.", "channel.", "notifications.", "operators.")
OPERATORS_PAGES = (
    *("payouts/approve?order_no=1", "payouts/batch", "claims/confirm?order_no=1", "claims/upload", "new-order/"),
    *("reconciliation/upload", "merchant/new", "merchant/demo/account", "merchant/demo/adjust"),
    *("channel/new", "channel/new?driver=epay", "notifications/new", "operators/1/password"),
)


@pytest.fixture
def forms(app):
    """The endpoint of each form of the console except for one's own and those of lists, with an address."""

    def address(rule):
        one = re.sub(r"<any\((\w+).*?>", r"\1", rule.replace("<key>", "demo"))
        return "/console" + re.sub(r"<[^>]+>", "1", one)

    rules = [rule for rule in console_app.create().url_map.iter_rules() if "POST" in rule.methods]
    every = {rule.endpoint: address(rule.rule) for rule in rules}
    return {name: path for name, path in every.items() if name not in OWN and not name.endswith(OF_LISTS)}


def test_a_viewer_has_read_only_access_and_changes_only_the_own_password(browser, forms, rows):
    client = browser()
    sign_in(client, *VIEWER)
    assert client.get("/console/orders/").status_code == 200
    form, before = {"csrf_token": token(client.get(PASSWORD))}, rows()
    assert len(forms) > 40
    assert {name: client.post(path, data=form).status_code for name, path in forms.items()} == dict.fromkeys(forms, 403)
    pages = {path: client.get(f"/console/{path}").status_code for path in OPERATORS_PAGES}
    assert pages == dict.fromkeys(OPERATORS_PAGES, 403)
    assert rows() == before
    new = {"present": "viewer-password", "new": "another long one", "again": "another long one"}
    assert send(client, PASSWORD, **new).location == LOGIN


def test_an_operator_works_with_orders_and_cannot_change_the_setup(browser, flask, forms, rows):
    flask("operator", "add", "cashier", "--role", "operator", typed="four words not together\n")
    client = browser()
    sign_in(client, "cashier", "four words not together")
    form, before = {"csrf_token": token(client.get(PASSWORD))}, rows()
    setup = {name: path for name, path in forms.items() if name.startswith(SETUP)}
    assert len(setup) > 20
    answers = {name: client.post(path, data=form) for name, path in setup.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(setup, 403)
    assert "Your role does not allow this. Ask an administrator." in answers["merchant.new"].text
    assert rows() == before
    assert client.post("/console/callback/unknown/act", data=form).status_code == 404  # allowed, but there is none
    assert "Check now" in client.get("/console/ledger/").text
    assert "New account" not in client.get("/console/operators/").text


def test_signing_in_and_out_and_commands_are_in_the_audit_log_and_passwords_are_not(browser, flask):
    client = browser()
    sign_in(client, *DEMO)
    send(client, LOGOUT)
    flask("operator", "add", "anna", "--role", "viewer", typed="a long password\n")
    flask("operator", "add", "anna", typed="a long password\n", fails=True)
    assert audit() == [
        ("demo", "sign in", "", ""),
        ("demo", "sign out", "", ""),
        ("command line", "add operator", "anna", "viewer"),
        ("command line", "add operator", "anna", "administrator"),
        ("command line", "add operator", "anna", "not done: User name anna is already taken. Choose another name."),
    ]


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


def test_the_api_has_no_cookies_and_no_console_headers(api, http):
    assert "Set-Cookie" not in api.buy().headers
    elsewhere = http("GET", "/consolex")
    assert (elsewhere.status, elsewhere.json["code"]) == (404, 40404)


def test_a_missing_table_shows_a_page_and_no_secret(browser):
    client = browser()
    sign_in(client, *DEMO)
    database.execute_sql('ALTER TABLE "operator" RENAME TO away')
    answer = client.get("/console/")
    database.execute_sql('ALTER TABLE away RENAME TO "operator"')
    assert (answer.status_code, "Something went wrong" in answer.text) == (500, True)
