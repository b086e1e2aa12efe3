"""Many strangers who sign in or guess passwords delay neither the API nor an operator on a known device."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from services.security import passwords
from tests.blueprints.console.test_access import DEMO, PASSWORD, VIEWER, app, browser, send, sign_in
from tests.support import until

__all__ = ["app", "browser"]
FLOOD = 12
LIMITED = [401] * 10 + [429]


def known_device(browser, account=DEMO):
    """A browser in which the account has signed in, and whose session has ended."""
    client = browser()
    answer = sign_in(client, *account)
    (cookie,) = (each for each in answer.headers.getlist("Set-Cookie") if each.startswith("console_device="))
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/console", "Max-Age=31536000"))
    assert account[0] not in cookie
    client.delete_cookie("console", path="/console")
    return client


class Hashing:
    """Replaces the hash of a password: counts running hashes, and delays them."""

    def __init__(self, real):
        self._real, self._lock, self.go = real, threading.Lock(), threading.Event()
        self.running = self.most = 0

    def __call__(self, stored, password):
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.go.wait(30)
        with self._lock:
            self.running -= 1
        return self._real(stored, password)


@pytest.fixture
def hashing(monkeypatch):
    held = Hashing(passwords.check_password_hash)
    monkeypatch.setattr(passwords, "check_password_hash", held)
    yield held
    held.go.set()


def refused_in(tries):
    """Wait until all but the most that may wait are refused; return the responses to those."""
    until(lambda: sum(each.done() for each in tries) == len(tries) - passwords.MOST_WAITING)
    return [each.result() for each in tries if each.done()]


def test_passwords_are_hashed_one_at_a_time_and_most_of_a_flood_is_refused_immediately(browser, hashing, api):
    clients = [browser() for _ in range(FLOOD)]
    with ThreadPoolExecutor(FLOOD) as pool:
        tries = [pool.submit(sign_in, client, *DEMO) for client in clients]
        refused = refused_in(tries)
        assert {answer.status_code for answer in refused} == {429}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)
        assert "Too many attempts" in refused[0].text
        assert api.buy().code == 1
        hashing.go.set()
        statuses = [each.result().status_code for each in tries]
    assert statuses.count(302) == passwords.MOST_WAITING
    assert hashing.most == 1
    assert guesses(browser()) == LIMITED, "what was refused is no try"


def test_a_sessions_password_refused_for_lack_of_room_is_not_an_attempt(browser, hashing, clock):
    hashing.go.set()
    clients = [browser() for _ in range(FLOOD)]
    sign_in(clients[0], *DEMO)
    for client in clients[1:]:
        client.set_cookie("console", clients[0].get_cookie("console", path="/console").value, path="/console")
    hashing.go.clear()

    def change(client):
        return send(client, PASSWORD, present="a wrong one", new="x" * 12, again="x" * 12)

    with ThreadPoolExecutor(FLOOD) as pool:
        tries = [pool.submit(change, client) for client in clients]
        refused_in(tries)
        hashing.go.set()
    statuses = sorted(each.result().status_code for each in tries)
    assert statuses == [422] * passwords.MOST_WAITING + [429] * (FLOOD - passwords.MOST_WAITING)
    rest = 10 - passwords.MOST_WAITING
    assert [change(clients[0]).status_code for _ in range(rest + 1)] == [422] * rest + [429]


def test_an_operator_on_a_known_device_has_a_place_of_its_own_in_the_queue(browser, hashing):
    hashing.go.set()
    known = known_device(browser)
    hashing.go.clear()
    with ThreadPoolExecutor(FLOOD) as pool:
        refused_in([pool.submit(sign_in, browser(), *VIEWER) for _ in range(FLOOD - 1)])
        operator = pool.submit(sign_in, known, *DEMO)
        hashing.go.set()
        assert operator.result().status_code == 302


def guess(client, number=0, name="demo", address="127.0.0.1"):
    form = {"environ_base": {"REMOTE_ADDR": address}}
    return sign_in(client, name, f"guess-number-{number}", **form).status_code


def guesses(client):
    """The statuses of one more guess than are allowed."""
    return [guess(client, number) for number in range(11)]


def test_strangers_failures_do_not_lock_an_operator_out_of_a_known_device(browser, clock):
    known = known_device(browser)
    assert guesses(browser()) == LIMITED
    assert sign_in(browser(), *DEMO).status_code == 429
    assert sign_in(known, *DEMO).status_code == 302
    known.delete_cookie("console", path="/console")
    for number in range(120):
        guess(browser(), number, address=f"198.51.100.{number // 9}")
    assert guess(browser(), address="203.0.113.7") == 429, "all strangers together"
    assert sign_in(known, *DEMO).status_code == 302
    known.delete_cookie("console", path="/console")
    assert guesses(known) == LIMITED, "it has its own attempts"


@pytest.mark.parametrize("device", ["", "x", "x.y.z", "é", "of another account", "from before a new password"])
def test_a_device_with_another_cookie_is_unknown(browser, clock, device):
    """Guesses there are counted for the address, as those of strangers."""
    client = browser()
    if device == "of another account":
        client = known_device(browser, VIEWER)
    elif device == "from before a new password":
        sign_in(client, *DEMO)
        new = {"present": "demo-password", "new": "another long one", "again": "another long one"}
        send(client, PASSWORD, **new)
    else:
        client.set_cookie("console_device", device, path="/console")
    assert guesses(client) == LIMITED
    assert guess(browser()) == 429
    if device == "of another account":
        assert sign_in(client, *VIEWER).status_code == 302


def test_an_ipv6_site_has_at_most_forty_attempts_however_many_networks_it_has(browser, clock):
    statuses = [guess(browser(), number, address=f"2001:db8:1:{number:x}::1") for number in range(42)]
    assert statuses == [401] * 40 + [429] * 2
    assert guess(browser(), address="2001:db8:2::1") == 401
