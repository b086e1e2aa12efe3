"""Many strangers who sign in or guess passwords delay neither the API nor an operator on a known device."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from services.security import passwords
from tests.blueprints.console.test_access import DEMO, PASSWORD, VIEWER, app, browser, is_in, send, sign_in
from tests.support import until

__all__ = ["app", "browser"]
FLOOD = 12


def known_device(browser, account=DEMO):
    """A browser in which the account has signed in, and whose session has ended."""
    client = browser()
    assert sign_in(client, *account).status_code == 302
    client.delete_cookie("console", path="/console")
    return client


class Hashing:
    """Replaces the hash of a password: counts running hashes, and delays them."""

    def __init__(self, real):
        self._real, self._lock, self._go = real, threading.Lock(), threading.Event()
        self.running = self.most = 0

    def __call__(self, stored, password):
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        assert self._go.wait(30)
        with self._lock:
            self.running -= 1
        return self._real(stored, password)

    def go_on(self):
        self._go.set()

    def hold(self):
        self._go.clear()


@pytest.fixture
def hashing(monkeypatch):
    held = Hashing(passwords.check_password_hash)
    monkeypatch.setattr(passwords, "check_password_hash", held)
    yield held
    held.go_on()


def test_passwords_are_hashed_one_at_a_time_and_most_of_a_flood_is_refused_immediately(browser, hashing, api):
    clients = [browser() for _ in range(FLOOD)]
    with ThreadPoolExecutor(FLOOD) as pool:
        tries = [pool.submit(sign_in, client, *DEMO) for client in clients]
        until(lambda: sum(each.done() for each in tries) == FLOOD - passwords.MOST_WAITING)
        refused = [each.result() for each in tries if each.done()]
        assert {answer.status_code for answer in refused} == {429}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)
        assert "Too many attempts" in refused[0].text
        assert api.buy().code == 1
        hashing.go_on()
        let_in = [each.result().status_code for each in tries]
    assert let_in.count(302) == passwords.MOST_WAITING
    assert hashing.most == 1
    assert [guess(browser(), number) for number in range(10)] == [401] * 10, "what was refused is no try"


def test_a_sessions_password_refused_for_lack_of_room_is_not_an_attempt(browser, hashing, clock):
    hashing.go_on()
    clients = [browser() for _ in range(FLOOD)]
    sign_in(clients[0], *DEMO)
    for client in clients[1:]:
        client.set_cookie("console", clients[0].get_cookie("console", path="/console").value, path="/console")
    hashing.hold()

    def change(client):
        return send(client, PASSWORD, present="a wrong one", new="x" * 12, again="x" * 12).status_code

    with ThreadPoolExecutor(FLOOD) as pool:
        tries = [pool.submit(change, client) for client in clients]
        until(lambda: sum(each.done() for each in tries) == FLOOD - passwords.MOST_WAITING)
        hashing.go_on()
    assert sorted(each.result() for each in tries) == [422] * passwords.MOST_WAITING + [429] * (FLOOD - 4)
    rest = 10 - passwords.MOST_WAITING
    assert [change(clients[0]) for _ in range(rest + 1)] == [422] * rest + [429]


def test_an_operator_on_a_known_device_has_a_place_of_its_own_in_the_queue(browser, monkeypatch):
    known = known_device(browser)
    held = Hashing(passwords.check_password_hash)
    monkeypatch.setattr(passwords, "check_password_hash", held)
    with ThreadPoolExecutor(FLOOD) as pool:
        strangers = [pool.submit(sign_in, browser(), *VIEWER) for _ in range(FLOOD - 1)]
        until(lambda: sum(each.done() for each in strangers) == FLOOD - 1 - passwords.MOST_WAITING)
        operator = pool.submit(sign_in, known, *DEMO)
        held.go_on()
        assert operator.result().status_code == 302


def guess(client, number=0, name="demo", address="127.0.0.1"):
    form = {"environ_base": {"REMOTE_ADDR": address}}
    return sign_in(client, name, f"guess-number-{number}", **form).status_code


def test_strangers_failures_do_not_lock_an_operator_out_of_a_known_device(browser, clock):
    known = known_device(browser)
    assert [guess(browser(), number) for number in range(11)] == [401] * 10 + [429]
    assert sign_in(browser(), *DEMO).status_code == 429
    assert sign_in(known, *DEMO).status_code == 302
    known.delete_cookie("console", path="/console")
    for number in range(120):
        guess(browser(), number, address=f"198.51.100.{number // 9}")
    assert guess(browser(), address="203.0.113.7") == 429, "all strangers together"
    assert sign_in(known, *DEMO).status_code == 302


def test_a_known_device_has_its_own_limited_attempts(browser, clock):
    known = known_device(browser)
    assert [guess(known, number) for number in range(11)] == [401] * 10 + [429]
    assert guess(browser()) == 401, "they count for nobody else"


@pytest.mark.parametrize("value", ["", "x", "x.y.z", "é"])
def test_a_device_with_an_invented_cookie_is_unknown(browser, clock, value):
    client = browser()
    client.set_cookie("console_device", value, path="/console")
    assert [guess(client, number) for number in range(11)] == [401] * 10 + [429]


def test_a_device_is_known_only_to_the_account_that_signed_in_there(browser, clock):
    client = known_device(browser, VIEWER)
    assert [guess(client, number) for number in range(11)] == [401] * 10 + [429]
    assert sign_in(client, *VIEWER).status_code == 302


def test_a_new_password_makes_all_devices_unknown(browser, clock):
    known = browser()
    sign_in(known, *DEMO)
    new = {"present": "demo-password", "new": "another long one", "again": "another long one"}
    send(known, PASSWORD, **new)
    assert [guess(known, number) for number in range(11)] == [401] * 10 + [429]


def test_the_cookie_of_a_known_device_is_hidden_from_scripts_and_other_sites(browser):
    answer = sign_in(browser(), *DEMO)
    (cookie,) = (each for each in answer.headers.getlist("Set-Cookie") if each.startswith("console_device="))
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/console", "Max-Age=31536000"))
    assert "demo" not in cookie


def test_an_ipv6_site_has_at_most_forty_attempts_however_many_networks_it_has(browser, clock):
    statuses = [guess(browser(), number, address=f"2001:db8:1:{number:x}::1") for number in range(42)]
    assert statuses == [401] * 40 + [429] * 2
    assert guess(browser(), address="2001:db8:2::1") == 401


def test_attempts_of_a_session_are_counted_for_that_session_alone(browser, clock):
    """Those at a stolen session lock the owner out of no other device."""
    stolen, own = browser(), browser()
    for client in (stolen, own):
        sign_in(client, *DEMO)
    for number in range(10):
        guess(browser(), number)
    wrong = {"present": "wrong-password", "new": "another long one", "again": "another long one"}
    refused = [send(stolen, PASSWORD, **wrong) for _ in range(12)]
    assert [answer.status_code for answer in refused] == [422] * 10 + [429] * 2
    assert "Too many attempts. Try again in 67 minutes." in refused[-1].text
    assert [is_in(client) for client in (stolen, own)] == [True, True]
    assert send(own, PASSWORD, **wrong).status_code == 422
    own.delete_cookie("console", path="/console")
    assert sign_in(own, *DEMO).status_code == 302
    clock(7_200)
    sign_in(own, *DEMO)
    assert send(own, PASSWORD, **wrong | {"present": DEMO[1]}).location == "/console/login"
