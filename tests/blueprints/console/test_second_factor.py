"""The second factor of operators: setup, sign-in, recovery codes, and a lost device."""

import re
from concurrent.futures import ThreadPoolExecutor

import pyotp
import pytest

from app import create_app
from models.db.base import database
from models.tables.operator import AuditEntry, Operator, PendingSignIn, RecoveryCode, SecondFactor, Session
from services.errors import OperatorError
from services.sandbox import seeding
from services.security import second_factor, sessions
from tests.blueprints.console.acting import token_of
from tests.blueprints.console.reading import Shown
from tests.conftest import NOON
from tests.databases import settings_of

LOGIN, CODE, FACTOR = "/console/login", "/console/login/code", "/console/factor"
PASSWORD = "demo-password"
REVEAL = "merchant/demo/reveal"


class Person:
    """The operator `demo` with a browser and an authenticator app, at a time that the test sets."""

    def __init__(self, app, clock):
        self._app, self._clock, self._seconds = app, clock, 0
        self.secret, self.recovery = "", []
        self.new_browser()

    def new_browser(self):
        self.client = self._app.test_client()
        return self.client

    def wait(self, seconds):
        self._seconds += seconds
        self._clock(self._seconds)

    def app_code(self, offset=0):
        """The app's present code, or that of some steps of 30 seconds later."""
        return pyotp.TOTP(self.secret).at(NOON + self._seconds, counter_offset=offset)

    def form(self, url):
        return self.filled(self.client.get(url), url)

    @staticmethod
    def filled(answer, url=""):
        """The last form of a page: the first ones are those of the menu."""
        form = Shown(answer.text).forms[-1]
        form.url = form.url or url
        return form

    def send(self, url, **given):
        form = self.form(url)
        return self.client.post(form.url, data=form | given)

    def give_password(self, name="demo"):
        return self.send(LOGIN, name=name, password=f"{name}-password")

    def give_code(self, code):
        return self.send(CODE, code=code)

    def guess(self, count):
        """The statuses of so many incorrect codes."""
        return [self.give_code(f"{number:06}").status_code for number in range(count)]

    def sign_in(self, code="", name="demo"):
        """Give the password and this code, or the app's, in a new browser; return the status of the code's response."""
        self.new_browser()
        self.give_password(name)
        return self.give_code(code or self.app_code()).status_code

    def sign_out(self):
        return self.post("logout")

    def post(self, path):
        """Press a button of a page: the response."""
        return self.client.post(f"/console/{path}", data={"csrf_token": token_of(self.client)})

    def set_up(self, **given):
        """Set the second factor up, with fields changed by the test."""
        form = self.form(FACTOR)
        self.secret = form["secret"]
        answer = self.client.post(FACTOR, data=form | {"code": self.app_code(), "password": PASSWORD} | given)
        self.recovery = re.findall(r"\d{5}-\d{5}-\d{5}-\d{5}", answer.text)
        return answer

    def confirm(self, path, code):
        """Press a button that requires a confirmation, and enter this."""
        form = self.filled(self.post(path))
        return self.client.post(form.url, data=form | {"confirm-answer": code})

    def confirmed(self, path):
        """Press a button, enter the app's code, and repeat the form as a browser does."""
        form = self.filled(self.post(path))
        sent = form | {"confirm-answer": self.app_code()}
        answer = self.client.post(form.url, data=sent)
        assert answer.status_code == 307, answer.text
        return self.client.post(answer.location, data=sent)

    def finish_at_once(self, codes):
        """Send these codes simultaneously from copies of this browser: the statuses of the responses."""
        form, copied = self.form(CODE), self.client.get_cookie("console", path="/console").value

        def finish(code):
            client = self._app.test_client()
            client.set_cookie("console", copied, path="/console")
            return client.post(CODE, data=form | {"code": code}).status_code

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(finish, codes))

    def is_in(self):
        return self.client.get("/console/orders/").status_code == 200


@pytest.fixture
def stranger(app, clock):
    """A user who has not signed in."""
    seeding.seed_operators()
    return Person(app, clock)


@pytest.fixture
def single(stranger):
    """The operator `demo`, signed in without a second factor."""
    stranger.give_password()
    return stranger


@pytest.fixture
def owner(single):
    """The operator `demo` with a second factor, in another browser."""
    assert single.set_up().status_code == 200
    single.new_browser()
    single.wait(60)
    return single


@pytest.fixture
def signed_in(owner):
    """The same, signed in."""
    assert owner.sign_in() == 302
    return owner


def entries():
    return [row.action for row in AuditEntry.select().order_by(AuditEntry.id)]


class TestSettingUp:
    def test_the_page_has_a_new_secret_and_then_shows_ten_recovery_codes_once(self, single):
        page = single.client.get(FACTOR)
        secret = single.filled(page)["secret"]
        assert " ".join(re.findall("....", secret)) in page.text
        assert 'src="data:image/svg+xml' in page.text
        assert "/console/language/" in page.text
        shown = single.set_up()
        assert (shown.status_code, single.secret == secret) == (200, False), "each page has another secret"
        assert "/console/language/" not in shown.text, "no link that loses the codes"
        assert len(set(single.recovery)) == 10
        later = single.client.get(FACTOR).text
        assert not set(single.recovery) & set(re.findall(r"[\d-]{23}", later))
        assert "10 unused codes left" in later
        assert entries()[-1] == "set up second factor"
        stored = " ".join([SecondFactor.get().secret, *(row.key for row in RecoveryCode)])
        assert not [each for each in (single.secret, *single.recovery) if each.replace("-", "") in stored]

    def test_without_code_and_password_nothing_is_set_up_and_the_secret_stays(self, single):
        for wrong, said in (
            ({"password": "another-password"}, "Incorrect password."),
            ({"code": "12345"}, "The code is incorrect"),
            ({"code": "１２３４５６"}, "The code is incorrect"),
            ({"code": ""}, "This field is required."),
        ):
            refused = single.set_up(**wrong)
            assert (refused.status_code, said in refused.text) == (422, True), wrong
            assert single.filled(refused)["secret"] == single.secret
        refused = single.set_up(secret="ABC")
        assert (refused.status_code, len(single.filled(refused)["secret"])) == (422, 32), "the page never made it"
        for _ in range(9):
            single.set_up(password="another-password")
        assert "Too many attempts. Try again in" in single.set_up().text
        assert SecondFactor.select().count() == 0

    def test_the_accounts_other_sessions_end(self, single):
        elsewhere = single.client
        single.new_browser()
        single.give_password()
        single.set_up()
        assert single.is_in()
        assert elsewhere.get("/console/orders/").status_code == 302

    def test_what_was_found_before_the_account_changed_is_not_used(self, single):
        found, secret = Operator.get(name="demo"), second_factor.new_secret()
        single.set_up()
        assert sessions.begin(found, "192.0.2.1", "") is None, "a sign-in that found no second factor"
        assert sessions.wait_for_code(found) is None
        with pytest.raises(OperatorError, match="was changed"):
            second_factor.set_up(found, secret, pyotp.TOTP(secret).at(NOON), session_id=1)
        assert SecondFactor.select().count() == 1

    def test_a_second_one_cannot_replace_it_from_an_open_page(self, single):
        old = single.form(FACTOR)
        single.set_up()
        code = pyotp.TOTP(old["secret"]).at(NOON)
        single.client.post(FACTOR, data=old | {"code": code, "password": PASSWORD})
        assert single.sign_in() == 401, "the code of the setup is used already"
        single.wait(60)
        assert single.sign_in() == 302


class TestSigningIn:
    def test_password_and_code_lead_to_the_requested_page(self, owner, caplog):
        caplog.set_level("INFO")
        form = owner.form(f"{LOGIN}?next=/orders/")
        there = owner.client.post(f"{LOGIN}?next=/orders/", data=form | {"name": "demo", "password": PASSWORD})
        assert there.location == f"{CODE}?next=/orders/"
        assert not owner.is_in(), "the password alone starts no session"
        assert entries().count("sign in") == 1
        assert "demo at 127.0.0.1 gave the password and must give a code" in caplog.text
        form, code = owner.form(there.location), owner.app_code()
        answer = owner.client.post(there.location, data=form | {"code": f" {code[:3]} {code[3:]} "})
        assert answer.location == "/console/orders/"
        assert owner.is_in()

    def test_a_code_of_one_step_earlier_or_later_counts_once_and_not_after_a_later_one(self, owner):
        owner.wait(60)
        steps = [(-2, 401), (2, 401), (-1, 302), (0, 302), (0, 401), (1, 302), (0, 401)]
        assert [(step, owner.sign_in(owner.app_code(step))) for step, _ in steps] == steps

    def test_without_a_password_no_code_is_requested(self, owner):
        assert owner.client.get(CODE).location == LOGIN
        sent = {"csrf_token": owner.form(LOGIN)["csrf_token"], "code": owner.app_code()}
        assert owner.client.post(CODE, data=sent).location == LOGIN

    @pytest.mark.parametrize("ended_by", ["five minutes", "a new password", "disabling", "signing out elsewhere"])
    def test_an_unfinished_sign_in_ends(self, ended_by, owner, flask):
        owner.give_password()
        waiting = owner.client
        assert waiting.get(CODE).status_code == 200
        if ended_by == "five minutes":
            owner.wait(301)
        elif ended_by == "a new password":
            flask("operator", "password", "demo", typed="four words not together\n")
        elif ended_by == "disabling":
            flask("operator", "set", "demo", "--disabled")
        else:
            owner.sign_in()
            owner.post("sessions/others")
            assert owner.is_in()
        assert waiting.get(f"{CODE}?next=/orders/").location == f"{LOGIN}?next=/orders/"

    def test_a_copied_cookie_of_an_unfinished_sign_in_is_worthless_once_that_is_finished(self, owner):
        owner.give_password()
        copied = owner.client.get_cookie("console", path="/console").value
        assert owner.give_code(owner.app_code()).status_code == 302
        owner.new_browser().set_cookie("console", copied, path="/console")
        assert owner.client.get(CODE).location == LOGIN

    def test_two_correct_codes_at_once_finish_an_unfinished_sign_in_once(self, owner):
        owner.give_password()
        before = Session.select().count()
        assert 302 in owner.finish_at_once(owner.recovery[:4])
        assert Session.select().count() == before + 1

    def test_the_database_has_only_a_hash_of_an_unfinished_sign_in_and_deletes_expired_ones(self, owner):
        owner.give_password()
        (before,) = PendingSignIn.select()
        assert len(before.key) == 64
        assert before.key not in owner.client.get_cookie("console", path="/console").value
        owner.wait(301)
        owner.give_password()
        (after,) = PendingSignIn.select()
        assert after.key != before.key

    def test_incorrect_codes_are_limited_in_every_browser_but_a_known_device(self, signed_in):
        known = signed_in.client
        signed_in.new_browser()
        signed_in.give_password()
        assert signed_in.guess(11) == [401] * 10 + [429]
        assert entries().count("enter incorrect code") == 10
        refused = signed_in.give_code(signed_in.app_code())
        assert (refused.status_code, "Too many attempts. Try again in" in refused.text) == (429, True)
        signed_in.wait(30)
        assert signed_in.sign_in() == 429, "a new browser gets no more attempts"
        signed_in.client = known
        signed_in.sign_out()
        signed_in.give_password()
        assert signed_in.give_code(signed_in.app_code()).status_code == 302

    def test_incorrect_codes_count_for_all_services_on_one_database(self, owner, clock, instance):
        owner.give_password()
        assert owner.guess(5) == [401] * 5
        second = Person(create_app(settings_of(instance)), clock)
        second.give_password()
        assert second.guess(7) == [401] * 5 + [429] * 2
        database.close()
        assert owner.guess(1) == [429]

    def test_simultaneous_codes_do_not_exceed_the_limit(self, owner):
        owner.give_password()
        statuses = owner.finish_at_once([f"{number:06}" for number in range(16)])
        assert sorted(statuses) == [401] * 10 + [429] * 6

    def test_an_attempt_that_ends_the_hour_does_not_start_new_attempts(self, owner):
        owner.wait(3_500)
        owner.give_password()
        assert owner.guess(10) == [401] * 10
        owner.wait(100)  # another hour begins
        assert owner.give_code(owner.app_code()).status_code == 429
        owner.wait(400)
        assert owner.sign_in() == 302, "a ninth of the hour later, one is allowed"

    def test_correct_codes_are_not_limited(self, owner):
        for _ in range(11):
            owner.wait(30)
            assert owner.sign_in() == 302

    def test_the_password_of_another_account_signs_the_browser_out(self, owner):
        owner.give_password("viewer")
        sent = {"csrf_token": token_of(owner.client), "name": "demo", "password": PASSWORD}
        assert owner.client.post(LOGIN, data=sent).location == CODE
        assert not owner.is_in()

    def test_an_old_token_is_not_valid_afterwards(self, owner):
        owner.give_password()
        form = owner.form(CODE)
        owner.client.post(CODE, data=form | {"code": owner.app_code()})
        assert owner.client.post("/console/logout", data={"csrf_token": form["csrf_token"]}).status_code == 400

    def test_only_the_browser_that_set_it_up_is_still_a_known_device(self, single):
        before = [single.client, single.new_browser()]
        single.give_password()
        known = single.new_browser()
        single.give_password()
        single.set_up()
        statuses = []
        for single.client in before:
            single.give_password()
            statuses += single.guess(6)
        assert statuses == [401] * 10 + [429] * 2
        single.client = known
        single.wait(60)
        single.sign_out()
        single.give_password()
        assert single.give_code(single.app_code()).status_code == 302


class TestRecoveryCodes:
    def test_each_recovery_code_signs_in_once(self, owner):
        first, second, *_ = owner.recovery
        assert [owner.sign_in(code) for code in (first, first, second)] == [302, 401, 302]
        assert "8 recovery codes left." in owner.client.get("/console/").text
        assert entries().count("use recovery code") == 2

    def test_another_accounts_recovery_code_is_not_valid(self, owner):
        taken = owner.recovery[0]
        owner.give_password("viewer")
        owner.set_up(password="viewer-password")
        assert owner.sign_in(taken, "viewer") == 401
        assert RecoveryCode.select().count() == 20

    def test_new_recovery_codes_replace_the_old_ones(self, signed_in):
        old = signed_in.recovery
        signed_in.wait(30)
        new = re.findall(r"\d{5}-\d{5}-\d{5}-\d{5}", signed_in.confirmed("factor/renew").text)
        assert len({*new, *old}) == 20
        assert [signed_in.sign_in(code) for code in (old[0], new[0])] == [401, 302]

    @pytest.mark.usefixtures("owner")
    def test_of_simultaneous_renewals_only_ten_codes_are_left(self):
        demo = Operator.get(name="demo")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(second_factor.renew_codes, [demo] * 20))
        assert RecoveryCode.select().count() == 10


class TestConfirming:
    def test_it_requires_another_code_than_the_sign_in_and_not_the_password(self, signed_in):
        assert signed_in.confirm(REVEAL, PASSWORD).status_code == 401
        refused = signed_in.confirm(REVEAL, signed_in.app_code())
        assert (refused.status_code, "Wait for the next one." in refused.text) == (401, True)
        signed_in.wait(30)
        assert "callback_secret" in signed_in.confirmed(REVEAL).text
        signed_in.wait(301)
        assert signed_in.confirm(REVEAL, signed_in.recovery[0]).status_code == 307
        assert "9 recovery codes left." in signed_in.client.get("/console/").text

    def test_guesses_at_a_stolen_session_lock_the_owner_out_of_no_other_device(self, signed_in):
        signed_in.client.delete_cookie("console_device", path="/console")
        form = signed_in.filled(signed_in.post(REVEAL))

        def confirm(code):
            return signed_in.client.post(form.url, data=form | {"confirm-answer": code}).status_code

        assert [confirm(f"{number:06}") for number in range(12)] == [401] * 10 + [429] * 2
        assert entries().count("enter incorrect code") == 10
        signed_in.wait(30)
        assert confirm(signed_in.app_code()) == 429
        assert signed_in.sign_in() == 302

    def test_removing_it_needs_a_code_and_then_the_password_is_enough(self, signed_in):
        signed_in.wait(30)
        assert signed_in.confirmed("factor/remove").location == FACTOR
        assert entries()[-1] == "remove second factor"
        assert (SecondFactor.select().count(), RecoveryCode.select().count()) == (0, 0)
        signed_in.new_browser()
        assert signed_in.give_password().location == "/console/"

    def test_a_viewer_may_set_up_renew_and_remove_their_own(self, stranger):
        stranger.give_password("viewer")
        assert stranger.set_up(password="viewer-password").status_code == 200
        stranger.wait(60)
        assert stranger.confirmed("factor/renew").status_code == 200
        stranger.wait(301)
        assert stranger.confirmed("factor/remove").location == FACTOR
        assert SecondFactor.select().count() == 0


def test_a_command_removes_that_of_a_lost_device_and_ends_the_sessions(signed_in, flask, refuses):
    assert "all sessions ended" in flask("operator", "reset-factor", "demo").output
    assert not signed_in.is_in()
    assert Session.select().where(Session.operator == Operator.get(name="demo")).count() == 0
    assert signed_in.give_password().location == "/console/"
    row = AuditEntry.select().where(AuditEntry.action == "remove second factor").get()
    assert (row.who, row.key) == ("command line", "demo")
    assert "does not use two-factor" in refuses("operator", "reset-factor", "demo")
    assert "no operator nobody" in refuses("operator", "reset-factor", "nobody")


def test_who_has_one_is_listed(signed_in, flask_json):
    listed = {row["name"]: row["second_factor"] for row in flask_json("operator", "list")}
    assert listed == {"demo": True, "viewer": False}
    assert Shown(signed_in.client.get("/console/operators/").text).column("Two-factor") == ["on", "off"]


class TestRequired:
    """`second_factor_required`: without one, an account can only set it up."""

    @pytest.fixture
    def settings_of_app(self):
        return {"second_factor_required": True}

    def test_every_page_but_the_sign_out_redirects_to_the_setup_until_then(self, single):
        for page in ("", "orders/", "operators/", "sessions/", "nothing"):
            assert single.client.get(f"/console/{page}").location == FACTOR
        token = {"csrf_token": single.form(FACTOR)["csrf_token"]}
        for form in ("orders/export", REVEAL, "operators/", "confirm?to=/orders/export"):
            assert single.client.post(f"/console/{form}", data=token).location == FACTOR
        assert "requires two-factor authentication" in single.client.get(FACTOR).text
        assert single.client.post("/console/logout", data=token).location == LOGIN
        single.give_password()
        assert single.set_up().status_code == 200
        assert single.is_in()

    def test_once_it_is_removed_the_next_page_sets_it_up_again(self, signed_in):
        signed_in.wait(30)
        signed_in.confirmed("factor/remove")
        assert not signed_in.is_in()
        assert "requires two-factor authentication" in signed_in.client.get(FACTOR).text
