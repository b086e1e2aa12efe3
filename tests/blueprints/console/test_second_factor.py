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
from services.security import operators, second_factor, sessions
from tests.blueprints.console.acting import Forms
from tests.conftest import NOON
from tests.databases import settings_of

LOGIN, CODE, FACTOR = "/console/login", "/console/login/code", "/console/factor"
PASSWORD = "demo-password"


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
        form = Forms(answer.text).forms[-1]
        form.url = form.url or url
        return form

    def send(self, url, **given):
        form = self.form(url)
        return self.client.post(form.url, data=form | given)

    def give_password(self, name="demo"):
        return self.send(LOGIN, name=name, password=f"{name}-password")

    def give_code(self, code):
        return self.send(CODE, code=code)

    def set_up(self, **given):
        """Set the second factor up, with fields changed by the test."""
        form = self.form(FACTOR)
        self.secret = form["secret"]
        answer = self.client.post(FACTOR, data=form | {"code": self.app_code(), "password": PASSWORD} | given)
        self.recovery = re.findall(r"\d{5}-\d{5}-\d{5}-\d{5}", answer.text)
        return answer

    def is_in(self):
        return self.client.get("/console/orders/").status_code == 200


@pytest.fixture
def stranger(app, clock):
    """A user who has not signed in."""
    seeding.seed_operators()
    return Person(app, clock)


@pytest.fixture
def owner(stranger):
    """The operator `demo` with a second factor, in another browser."""
    stranger.give_password()
    assert stranger.set_up().status_code == 200
    stranger.new_browser()
    stranger.wait(60)
    return stranger


def entries():
    return [row.action for row in AuditEntry.select().order_by(AuditEntry.id)]


class TestSettingUp:
    def test_the_page_shows_a_qr_code_and_the_same_secret_as_text(self, stranger):
        stranger.give_password()
        page = stranger.client.get(FACTOR)
        secret = stranger.filled(page)["secret"]
        assert " ".join(re.findall("....", secret)) in page.text
        assert 'src="data:image/svg+xml' in page.text
        assert stranger.form(FACTOR)["secret"] != secret, "each page has a new one"

    def test_the_page_with_the_codes_has_no_link_that_loses_them(self, stranger):
        stranger.give_password()
        assert "/console/language/" in stranger.client.get(FACTOR).text
        assert "/console/language/" not in stranger.set_up().text

    def test_it_requires_a_code_and_the_password_and_shows_ten_recovery_codes_once(self, stranger):
        stranger.give_password()
        assert stranger.set_up().status_code == 200
        assert len(set(stranger.recovery)) == 10
        later = stranger.client.get(FACTOR).text
        assert not set(stranger.recovery) & set(re.findall(r"[\d-]{23}", later))
        assert "10 unused codes left" in later
        assert entries()[-1] == "set up second factor"

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"password": "another-password"}, "Incorrect password."),
            ({"code": "12345"}, "The code is incorrect"),
            ({"code": "１２３４５６"}, "The code is incorrect"),
            ({"code": ""}, "This field is required."),
        ],
    )
    def test_without_either_nothing_is_set_up_and_the_secret_stays(self, wrong, said, stranger):
        stranger.give_password()
        refused = stranger.set_up(**wrong)
        assert refused.status_code == 422
        assert said in refused.text
        assert SecondFactor.select().count() == 0
        assert stranger.filled(refused)["secret"] == stranger.secret

    def test_guesses_of_the_password_are_limited(self, stranger):
        stranger.give_password()
        for _ in range(10):
            stranger.set_up(password="another-password")
        assert "Too many attempts. Try again in" in stranger.set_up().text
        assert SecondFactor.select().count() == 0

    def test_a_secret_that_the_page_never_made_is_replaced(self, stranger):
        stranger.give_password()
        refused = stranger.set_up(secret="ABC")
        assert refused.status_code == 422
        assert len(stranger.filled(refused)["secret"]) == 32

    def test_neither_secret_nor_codes_are_in_the_database_in_plain_text(self, owner):
        stored = " ".join([SecondFactor.get().secret, *(row.key for row in RecoveryCode)])
        assert owner.secret not in stored
        assert not any(code.replace("-", "") in stored for code in owner.recovery)

    def test_the_accounts_other_sessions_end(self, stranger):
        stranger.give_password()
        elsewhere = stranger.client
        stranger.new_browser()
        stranger.give_password()
        stranger.set_up()
        assert stranger.is_in()
        assert elsewhere.get("/console/orders/").status_code == 302

    def test_a_sign_in_that_found_none_just_before_starts_no_session(self, stranger):
        found = Operator.get(name="demo")
        stranger.give_password()
        stranger.set_up()
        assert sessions.begin(found, "192.0.2.1", "") is None
        assert sessions.wait_for_code(found) is None

    def test_a_second_one_cannot_replace_it_from_an_open_page(self, stranger):
        stranger.give_password()
        old = stranger.form(FACTOR)
        stranger.set_up()
        secret, stranger.secret = stranger.secret, old["secret"]
        stranger.client.post(FACTOR, data=old | {"code": stranger.app_code(), "password": PASSWORD})
        stranger.secret = secret
        stranger.new_browser()
        stranger.wait(60)
        stranger.give_password()
        assert stranger.give_code(stranger.app_code()).status_code == 302

    def test_an_account_that_was_changed_meanwhile_gets_none(self, stranger):
        found, secret = Operator.get(name="demo"), second_factor.new_secret()
        operators.end_sessions(Operator.get(name="demo"))
        with pytest.raises(OperatorError, match="was changed"):
            second_factor.set_up(found, secret, pyotp.TOTP(secret).at(NOON), session_id=1)
        assert SecondFactor.select().count() == 0

    def test_viewers_have_one_too(self, stranger):
        stranger.give_password("viewer")
        assert stranger.set_up(password="viewer-password").status_code == 200
        assert "10 unused codes left" in stranger.client.get(FACTOR).text


class TestSigningIn:
    def test_the_password_alone_starts_no_session_and_is_logged(self, owner, caplog):
        caplog.set_level("INFO")
        assert owner.give_password().location.startswith(CODE)
        assert not owner.is_in()
        assert entries().count("sign in") == 1
        assert "demo at 127.0.0.1 gave the password and must give a code" in caplog.text

    def test_password_and_code_lead_to_the_requested_page(self, owner):
        form = owner.form(f"{LOGIN}?next=/orders/")
        there = owner.client.post(f"{LOGIN}?next=/orders/", data=form | {"name": "demo", "password": PASSWORD})
        assert there.location == f"{CODE}?next=/orders/"
        form = owner.form(there.location)
        assert owner.client.post(there.location, data=form | {"code": owner.app_code()}).location == "/console/orders/"
        assert owner.is_in()

    @pytest.mark.parametrize(("offset", "status"), [(-2, 401), (-1, 302), (0, 302), (1, 302), (2, 401)])
    def test_the_clock_of_the_phone_may_differ_by_one_step(self, offset, status, owner):
        owner.wait(60)
        owner.give_password()
        assert owner.give_code(owner.app_code(offset)).status_code == status

    def test_a_code_counts_once(self, owner):
        code = owner.app_code()
        for status in (302, 401):
            owner.new_browser()
            owner.give_password()
            assert owner.give_code(code).status_code == status

    def test_an_earlier_code_does_not_count_after_a_later_one(self, owner):
        for code, status in ((owner.app_code(1), 302), (owner.app_code(), 401)):
            owner.new_browser()
            owner.give_password()
            assert owner.give_code(code).status_code == status

    def test_the_code_of_the_setup_is_used_already(self, stranger):
        stranger.give_password()
        stranger.set_up()
        stranger.new_browser()
        stranger.give_password()
        assert stranger.give_code(stranger.app_code()).status_code == 401

    def test_a_code_may_be_typed_with_a_space(self, owner):
        owner.give_password()
        code = owner.app_code()
        assert owner.give_code(f" {code[:3]} {code[3:]} ").status_code == 302

    def test_without_a_password_no_code_is_requested(self, owner):
        assert owner.client.get(CODE).location == LOGIN
        token = owner.form(LOGIN)["csrf_token"]
        sent = {"csrf_token": token, "code": owner.app_code()}
        assert owner.client.post(CODE, data=sent).location == LOGIN

    def test_the_code_must_follow_the_password_within_five_minutes(self, owner):
        owner.give_password()
        owner.wait(301)
        assert owner.client.get(f"{CODE}?next=/orders/").location == f"{LOGIN}?next=/orders/"

    def test_a_copied_cookie_of_an_unfinished_sign_in_is_worthless_once_that_is_finished(self, owner):
        owner.give_password()
        copied = owner.client.get_cookie("console", path="/console").value
        assert owner.give_code(owner.app_code()).status_code == 302
        owner.new_browser()
        owner.client.set_cookie("console", copied, path="/console")
        assert owner.client.get(CODE).location == LOGIN

    def test_two_correct_codes_at_once_finish_an_unfinished_sign_in_once(self, owner):
        owner.give_password()
        form, copied = owner.form(CODE), owner.client.get_cookie("console", path="/console").value

        def finish(code):
            client = owner.new_browser()
            client.set_cookie("console", copied, path="/console")
            return client.post(CODE, data=form | {"code": code}).status_code

        before = Session.select().count()
        with ThreadPoolExecutor(4) as pool:
            assert 302 in list(pool.map(finish, owner.recovery[:4]))
        assert Session.select().count() == before + 1

    def test_signing_out_elsewhere_ends_an_unfinished_sign_in(self, owner):
        owner.give_password()
        waiting = owner.client
        owner.new_browser()
        owner.give_password()
        owner.give_code(owner.app_code())
        token = Forms(owner.client.get("/console/").text).forms[0]["csrf_token"]
        owner.client.post("/console/sessions/others", data={"csrf_token": token})
        assert waiting.get(CODE).location == LOGIN
        assert owner.is_in()

    def test_the_database_has_only_a_hash_of_an_unfinished_sign_in_and_deletes_expired_ones(self, owner):
        owner.give_password()
        (before,) = PendingSignIn.select()
        assert len(before.key) == 64
        assert before.key not in owner.client.get_cookie("console", path="/console").value
        owner.wait(301)
        owner.give_password()
        (after,) = PendingSignIn.select()
        assert after.key != before.key

    def test_a_new_password_ends_an_unfinished_sign_in(self, owner, flask):
        owner.give_password()
        flask("operator", "password", "demo", typed="four words not together\n")
        assert owner.client.get(CODE).location == LOGIN

    def test_a_disabled_account_cannot_finish_either(self, owner, flask):
        owner.give_password()
        flask("operator", "set", "demo", "--disabled")
        assert owner.client.get(CODE).location == LOGIN

    def test_incorrect_codes_are_limited_and_recorded(self, owner):
        owner.give_password()
        statuses = [owner.give_code(f"{number:06}").status_code for number in range(11)]
        assert statuses == [401] * 10 + [429]
        assert entries().count("enter incorrect code") == 10
        refused = owner.give_code(owner.app_code())
        assert refused.status_code == 429
        assert "Too many attempts. Try again in" in refused.text

    def test_incorrect_codes_count_for_all_services_on_one_database(self, owner, app, clock, instance):
        owner.give_password()
        assert [owner.give_code(f"{number:06}").status_code for number in range(5)] == [401] * 5
        second = Person(create_app(settings_of(instance)), clock)
        second.give_password()
        assert [second.give_code(f"{number:06}").status_code for number in range(7)] == [401] * 5 + [429] * 2
        database.close()
        assert owner.give_code("000000").status_code == 429

    def test_simultaneous_codes_do_not_exceed_the_limit(self, owner):
        owner.give_password()
        form, copied = owner.form(CODE), owner.client.get_cookie("console", path="/console").value

        def guess(number):
            client = owner.new_browser()
            client.set_cookie("console", copied, path="/console")
            return client.post(CODE, data=form | {"code": f"{number:06}"}).status_code

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(guess, range(16))) == [401] * 10 + [429] * 6

    def test_an_attempt_that_ends_the_hour_does_not_start_new_attempts(self, owner):
        owner.wait(3_500)
        owner.give_password()
        assert [owner.give_code(f"{number:06}").status_code for number in range(10)] == [401] * 10
        owner.wait(100)  # another hour begins
        assert owner.give_code(owner.app_code()).status_code == 429
        owner.wait(400)
        owner.give_password()
        assert owner.give_code(owner.app_code()).status_code == 302, "a ninth of the hour later, one is allowed"

    def test_correct_codes_are_not_limited(self, owner):
        for _ in range(11):
            owner.new_browser()
            owner.wait(30)
            owner.give_password()
            assert owner.give_code(owner.app_code()).status_code == 302

    def test_the_password_of_another_account_signs_the_browser_out(self, owner):
        owner.give_password("viewer")
        token = Forms(owner.client.get("/console/").text).forms[0]["csrf_token"]
        sent = {"csrf_token": token, "name": "demo", "password": PASSWORD}
        assert owner.client.post(LOGIN, data=sent).location == CODE
        assert not owner.is_in()

    def test_an_old_token_is_not_valid_afterwards(self, owner):
        owner.give_password()
        form = owner.form(CODE)
        owner.client.post(CODE, data=form | {"code": owner.app_code()})
        assert owner.client.post("/console/logout", data={"csrf_token": form["csrf_token"]}).status_code == 400

    def test_a_new_browser_gets_no_more_attempts(self, owner):
        owner.give_password()
        for number in range(10):
            owner.give_code(f"{number:06}")
        owner.new_browser()
        owner.give_password()
        assert owner.give_code(owner.app_code()).status_code == 429

    def test_strangers_who_know_the_password_do_not_lock_a_known_device_out(self, owner):
        owner.give_password()
        owner.give_code(owner.app_code())
        known = owner.client
        owner.new_browser()
        owner.give_password()
        assert [owner.give_code(f"{number:06}").status_code for number in range(11)][-1] == 429
        owner.client = known
        owner.wait(30)
        known.post("/console/logout", data=Forms(known.get("/console/").text).forms[0])
        owner.give_password()
        assert owner.give_code(owner.app_code()).status_code == 302

    def test_browsers_from_before_the_setup_are_not_known_devices(self, stranger):
        before = []
        for _ in range(2):
            stranger.new_browser()
            stranger.give_password()
            before.append(stranger.client)
        stranger.new_browser()
        stranger.give_password()
        stranger.set_up()
        statuses = []
        for stranger.client in before:
            stranger.give_password()
            statuses += [stranger.give_code(f"{number:06}").status_code for number in range(6)]
        assert statuses == [401] * 10 + [429] * 2

    def test_the_browser_that_set_it_up_is_still_a_known_device(self, stranger):
        stranger.give_password()
        stranger.set_up()
        known = stranger.client
        stranger.new_browser()
        stranger.wait(60)
        stranger.give_password()
        assert [stranger.give_code(f"{number:06}").status_code for number in range(11)][-1] == 429
        stranger.client = known
        known.post("/console/logout", data=Forms(known.get("/console/").text).forms[0])
        stranger.give_password()
        assert stranger.give_code(stranger.app_code()).status_code == 302


class TestRecoveryCodes:
    def test_each_recovery_code_signs_in_once(self, owner):
        for code, status in ((owner.recovery[0], 302), (owner.recovery[0], 401), (owner.recovery[1], 302)):
            owner.new_browser()
            owner.give_password()
            assert owner.give_code(code).status_code == status
        assert "8 recovery codes left." in owner.client.get("/console/").text
        assert entries().count("use recovery code") == 2

    def test_another_accounts_recovery_code_is_not_valid(self, owner):
        taken = owner.recovery[0]
        owner.give_password("viewer")
        owner.set_up(password="viewer-password")
        owner.new_browser()
        owner.give_password("viewer")
        assert owner.give_code(taken).status_code == 401
        assert RecoveryCode.select().count() == 20

    def test_new_recovery_codes_replace_the_old_ones(self, owner):
        old = owner.recovery
        owner.give_password()
        owner.give_code(owner.app_code())
        owner.wait(30)
        shown = confirmed(owner, f"{FACTOR}/renew")
        new = re.findall(r"\d{5}-\d{5}-\d{5}-\d{5}", shown.text)
        assert len({*new, *old}) == 20
        owner.new_browser()
        owner.give_password()
        assert owner.give_code(old[0]).status_code == 401
        assert owner.give_code(new[0]).status_code == 302

    @pytest.mark.usefixtures("owner")
    def test_of_simultaneous_renewals_only_ten_codes_are_left(self):
        demo = Operator.get(name="demo")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(second_factor.renew_codes, [demo] * 20))
        assert RecoveryCode.select().count() == 10


def confirmed(owner, url, **given):
    """Send a form, enter the app's code, and repeat the form as a browser does."""
    token = Forms(owner.client.get("/console/").text).forms[0]["csrf_token"]
    asked = owner.client.post(url, data={"csrf_token": token} | given)
    assert asked.status_code == 403
    form = owner.filled(asked) | {"confirm-answer": owner.app_code()}
    answer = owner.client.post(owner.filled(asked).url, data=form)
    assert answer.status_code == 307, answer.text
    return owner.client.post(answer.location, data=form)


class TestConfirming:
    def test_it_requires_the_code_and_not_the_password(self, owner):
        owner.give_password()
        owner.give_code(owner.app_code())
        owner.wait(30)
        token = Forms(owner.client.get("/console/").text).forms[0]["csrf_token"]
        asked = owner.client.post("/console/merchant/demo/reveal", data={"csrf_token": token})
        form = owner.filled(asked)
        refused = owner.client.post(form.url, data=form | {"confirm-answer": PASSWORD})
        assert refused.status_code == 401
        assert "callback_secret" in confirmed(owner, "/console/merchant/demo/reveal").text

    def test_the_code_of_the_sign_in_does_not_confirm(self, owner):
        owner.give_password()
        owner.give_code(owner.app_code())
        token = Forms(owner.client.get("/console/").text).forms[0]["csrf_token"]
        form = owner.filled(owner.client.post("/console/merchant/demo/reveal", data={"csrf_token": token}))
        refused = owner.client.post(form.url, data=form | {"confirm-answer": owner.app_code()})
        assert refused.status_code == 401
        assert "Wait for the next one." in refused.text

    def test_guesses_at_a_stolen_session_lock_the_owner_out_of_no_other_device(self, owner):
        owner.give_password()
        owner.give_code(owner.app_code())
        owner.client.delete_cookie("console_device", path="/console")
        token = Forms(owner.client.get("/console/").text).forms[0]["csrf_token"]
        form = owner.filled(owner.client.post("/console/merchant/demo/reveal", data={"csrf_token": token}))

        def confirm(code):
            return owner.client.post(form.url, data=form | {"confirm-answer": code}).status_code

        assert [confirm(f"{number:06}") for number in range(12)] == [401] * 10 + [429] * 2
        assert entries().count("enter incorrect code") == 10
        owner.wait(30)
        assert confirm(owner.app_code()) == 429
        owner.new_browser()
        owner.give_password()
        assert owner.give_code(owner.app_code()).status_code == 302

    def test_removing_it_needs_a_code_and_then_the_password_is_enough(self, owner):
        owner.give_password()
        owner.give_code(owner.app_code())
        owner.wait(30)
        assert confirmed(owner, f"{FACTOR}/remove").location == FACTOR
        assert entries()[-1] == "remove second factor"
        assert (SecondFactor.select().count(), RecoveryCode.select().count()) == (0, 0)
        owner.new_browser()
        assert owner.give_password().location == "/console/"

    def test_a_recovery_code_confirms_too_and_the_page_says_how_many_are_left(self, owner):
        owner.give_password()
        owner.give_code(owner.app_code())
        token = Forms(owner.client.get("/console/").text).forms[0]["csrf_token"]
        form = owner.filled(owner.client.post("/console/merchant/demo/reveal", data={"csrf_token": token}))
        assert owner.client.post(form.url, data=form | {"confirm-answer": owner.recovery[0]}).status_code == 307
        assert "9 recovery codes left." in owner.client.get("/console/").text

    def test_a_viewer_may_renew_and_remove_their_own(self, stranger):
        stranger.give_password("viewer")
        stranger.set_up(password="viewer-password")
        stranger.wait(60)
        assert confirmed(stranger, f"{FACTOR}/renew").status_code == 200
        stranger.wait(301)
        assert confirmed(stranger, f"{FACTOR}/remove").location == FACTOR
        assert SecondFactor.select().count() == 0


class TestLosingTheDevice:
    def test_a_command_removes_it_and_ends_the_sessions(self, owner, flask):
        owner.give_password()
        owner.give_code(owner.app_code())
        assert "all sessions ended" in flask("operator", "reset-factor", "demo").output
        assert not owner.is_in()
        assert Session.select().where(Session.operator == Operator.get(name="demo")).count() == 0
        assert owner.give_password().location == "/console/"
        row = AuditEntry.select().where(AuditEntry.action == "remove second factor").get()
        assert (row.who, row.key) == ("command line", "demo")

    @pytest.mark.parametrize(("name", "said"), [("demo", "does not use two-factor"), ("nobody", "no operator nobody")])
    @pytest.mark.usefixtures("stranger")
    def test_without_one_the_command_reports_that(self, name, said, refuses):
        assert said in refuses("operator", "reset-factor", name)

    def test_who_has_one_is_listed(self, owner, flask, flask_json):
        listed = {row["name"]: row["second_factor"] for row in flask_json("operator", "list")}
        assert listed == {"demo": True, "viewer": False}
        owner.give_password()
        owner.give_code(owner.app_code())
        rows = Forms(owner.client.get("/console/operators/").text).rows
        assert [row["Two-factor"] for row in rows] == ["on", "off"]


class TestRequired:
    """`second_factor_required`: without one, an account can only set it up."""

    @pytest.fixture
    def settings_of_app(self):
        return {"second_factor_required": True}

    def test_every_page_redirects_to_the_setup_until_then(self, stranger):
        stranger.give_password()
        for page in ("", "orders/", "operators/", "sessions/", "nothing"):
            assert stranger.client.get(f"/console/{page}").location == FACTOR
        token = stranger.form(FACTOR)["csrf_token"]
        for form in ("orders/export", "merchant/demo/reveal", "operators/", "confirm?to=/orders/export"):
            assert stranger.client.post(f"/console/{form}", data={"csrf_token": token}).location == FACTOR
        assert "requires two-factor authentication" in stranger.client.get(FACTOR).text
        assert stranger.set_up().status_code == 200
        assert stranger.is_in()

    def test_signing_out_is_possible_all_the_time(self, stranger):
        stranger.give_password()
        form = next(form for form in Forms(stranger.client.get(FACTOR).text).forms if form.url == "/console/logout")
        assert stranger.client.post(form.url, data=form).location == LOGIN

    def test_once_it_is_removed_the_next_page_sets_it_up_again(self, owner):
        owner.give_password()
        owner.give_code(owner.app_code())
        owner.wait(30)
        confirmed(owner, f"{FACTOR}/remove")
        assert not owner.is_in()
        assert "requires two-factor authentication" in owner.client.get(FACTOR).text
