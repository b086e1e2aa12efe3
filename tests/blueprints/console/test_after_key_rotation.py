"""`tillbook vault rotate` ends the sessions of the running service, and the old key opens none."""

import hashlib
import hmac
import re
import threading
import time

import pyotp
import pytest
import requests
from flask import Flask
from flask.sessions import SecureCookieSessionInterface

from models.tables.operator import Operator, PendingSignIn, Session
from services.security import second_factor
from tests import databases, postgres
from tests.blueprints.console.reading import Shown
from tests.blueprints.console.test_sessions import carried, cookie_of, is_in
from tests.support import until

ROTATE = ("vault", "rotate", "--wait", "0", *(["--only-host"] if postgres.IN_USE else []))
LOGIN, CODE = "/console/login", "/console/login/code"


@pytest.fixture
def key(instance):
    """`key()`: the first key of the vault."""
    return lambda: (instance / "vault.key").read_text().split()[0]


@pytest.fixture
def with_cookie(app):
    """`with_cookie(value)`: a browser with this session cookie."""

    def made(value):
        client = app.test_client()
        client.set_cookie("console", value, path="/console")
        return client

    return made


@pytest.fixture
def waiting(app, sign_in):
    """The browser of the operator `demo` after the password, before the code."""
    secret, demo = second_factor.new_secret(), Operator.get(name="demo")
    second_factor.set_up(demo, secret, pyotp.TOTP(secret).now(), session_id=0)
    client = app.test_client()
    assert give_password(client, "demo", "demo-password").location == CODE
    return client


def give_password(client, name, password):
    """The response to the sign-in form."""
    given = {"csrf_token": Shown(client.get(LOGIN).text).fields["csrf_token"], "name": name, "password": password}
    return client.post(LOGIN, data=given)


def forged(key, **values):
    """A session cookie, signed with this key of the vault."""
    forger = Flask("forger")
    forger.secret_key = hmac.new(key.encode(), b"console session", hashlib.sha256).hexdigest()
    return SecureCookieSessionInterface().get_signing_serializer(forger).dumps(values)


@pytest.mark.parametrize("more", [(), ("--keep-old",)])
def test_a_new_key_ends_all_sessions_and_unfinished_sign_ins(sign_in, waiting, app, flask, with_cookie, key, more):
    clients, old, early = [sign_in("viewer"), sign_in("viewer")], key(), app.test_client()
    form = {"csrf_token": Shown(early.get(LOGIN).text).fields["csrf_token"]}
    assert "all sessions of the console ended" in flask(*ROTATE, *more).output
    assert [is_in(client) for client in clients] == [False, False]
    assert waiting.get(CODE).location == LOGIN
    assert (Session.select().count(), PendingSignIn.select().count()) == (0, 0)
    answer = early.post(LOGIN, data=form | {"name": "viewer", "password": "viewer-password"})
    assert answer.status_code == 400, "a form from before"
    new = sign_in("viewer")
    assert is_in(new), "the form is signed with the new key"
    values = carried(cookie_of(new))
    assert not is_in(with_cookie(forged(old, **values))), "a valid token, signed by the old key"
    assert is_in(with_cookie(forged(key(), **values)))


def test_a_device_that_the_old_key_made_known_is_unknown(sign_in, flask, app, clock):
    client = sign_in("viewer")
    flask(*ROTATE)
    guesses = [give_password(client, "viewer", f"guess-number-{number}").status_code for number in range(11)]
    assert guesses == [401] * 10 + [429]
    other = give_password(app.test_client(), "viewer", "guess-number-12")
    assert other.status_code == 429, "counted for the address, as those of strangers"


def test_nobody_passes_the_password_with_a_forged_cookie_and_the_key_in_use(waiting, with_cookie, key):
    """With a backup and its key one knows the accounts and their second factors, and no token."""
    demo = Operator.get(name="demo")
    for invented in ([demo.id, demo.session, int(time.time())], PendingSignIn.get().key, "", None, 1, ["x"], {"a": 1}):
        assert with_cookie(forged(key(), pending=invented)).get(CODE).location == LOGIN
    assert waiting.get(CODE).status_code == 200


def test_a_running_service_refuses_old_cookies_before_the_rotation_ends(service):
    """Another process rotates the key."""
    old = (service.instance / "vault.key").read_text().split()[0]

    def get(**cookies):
        return requests.get(f"{service.url}/console/", cookies=cookies, allow_redirects=False, timeout=20).status_code

    def sign_in():
        browser = requests.Session()
        page = browser.get(f"{service.url}{LOGIN}", timeout=20).text
        token = re.search(r'name="csrf_token"[^>]* value="([^"]+)"', page)[1]
        given = {"csrf_token": token, "name": "viewer", "password": "viewer-password"}
        browser.post(f"{service.url}{LOGIN}", data=given, allow_redirects=False, timeout=20)
        return browser.cookies["console"]

    before = sign_in()
    assert get(console=before) == 200
    rotation = threading.Thread(target=service.flask, args=(*ROTATE[:2], "--wait", "4", *ROTATE[4:]))
    rotation.start()
    until(lambda: get(console=before) == 302)
    assert rotation.is_alive()
    after = sign_in()
    rotation.join()
    assert [get(console=each) for each in (before, after)] == [302, 200]
    assert len((service.instance / "vault.key").read_text().split()) == 1
    with databases.raw(service.instance) as other:
        assert other.execute("SELECT COUNT(*) FROM session").fetchone() == (1,)
    assert get(console=forged(old, **carried(after))) == 302
