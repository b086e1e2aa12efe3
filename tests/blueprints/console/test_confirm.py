"""Pages that show or change secrets, balances, accounts or channels require the password every five minutes."""

import pytest

from models.tables.operator import AuditEntry, FailedSignIn, Session
from models.tables.outbox import Callback
from services.security import operators
from tests.blueprints.console.acting import token_of
from tests.blueprints.console.reading import Shown

PASSWORD = "demo-password"
NEEDED = [
    "channel/1",
    "channel/new?driver=manual",
    "factor/remove",
    "factor/renew",
    "merchant/demo/account",
    "merchant/demo/adjust",
    "merchant/demo/epay/rotate/md5",
    "merchant/demo/epay/rotate/rsa",
    "merchant/demo/reveal",
    "merchant/demo/rotate/api",
    "merchant/demo/rotate/callback",
    "notifications/1",
    "operators/",
    "operators/2/change",
    "operators/2/password",
]


@pytest.fixture
def console(sign_in):
    """The operator `demo`, signed in, who has not entered the password again."""
    return sign_in("demo", confirmed=False)


@pytest.fixture
def confirmation_form(send):
    """`confirmation_form(path, **fields)`: the form that requires the password, in the response to a form."""

    def ask(path="merchant/demo/reveal", **fields):
        answer = send(path, **fields)
        assert answer.status_code == 403
        return next(form for form in Shown(answer.text).forms if "confirm-answer" in form)

    return ask


@pytest.fixture
def confirm(console, confirmation_form):
    """`confirm(password)`: the response to that form."""

    def confirmed(password=PASSWORD, path="merchant/demo/reveal", **fields):
        form = confirmation_form(path, **fields)
        return console.post(form.url, data=form | {"confirm-answer": password})

    return confirmed


def confirmed(console, confirmation_form):
    """Enter the password into this form; return what the browser sends again on 307, and the response to that."""
    sent = confirmation_form | {"confirm-answer": PASSWORD}
    answer = console.post(confirmation_form.url, data=sent)
    assert answer.status_code == 307
    return console.post(answer.location, data=sent)


def entries():
    return [row.action for row in AuditEntry.select().order_by(AuditEntry.id)]


def test_a_page_requires_the_password_and_does_nothing_before_and_then_the_browser_repeats_the_form(
    console, confirmation_form
):
    forms = {path: confirmation_form(path) for path in NEEDED}
    assert entries() == ["sign in"]
    for path, form in forms.items():
        answer = console.post(form.url, data=form | {"confirm-answer": PASSWORD})
        assert (answer.status_code, answer.location) == (307, f"/console/{path}")
    assert entries() == ["sign in", *["confirm identity"] * len(NEEDED)]


def test_the_forms_values_are_kept_and_then_applied(console, confirmation_form, balances):
    page = Shown(console.get("/console/merchant/demo/adjust").text)
    form = next(form for form in page.forms if "amount" in form)
    typed = {"amount": "12.50", "reason": "a gift", "channel": "", "sure": "1"}
    form = confirmation_form("merchant/demo/adjust", **form | typed)
    before, _ = balances()
    assert confirmed(console, form).location == "/console/merchant/demo"
    assert balances()[0] == before + 1_250


def test_the_page_names_the_action_and_leads_back_to_the_page_before(console):
    form = {"csrf_token": token_of(console)}
    before = {"Referer": "http://localhost/console/orders/?flt_status=paid"}
    asked = console.post("/console/payouts/reveal", data=form, headers=before)
    for answer in (asked, console.post(Shown(asked.text).forms[-1].url, data=form | {"confirm-answer": "wrong"})):
        shown = Shown(answer.text)
        assert (answer.status_code in (401, 403), "Reveal payees" in shown.text) == (True, True)
        assert shown.links["Cancel"] == "/console/orders/?flt_status=paid"
    elsewhere = console.post("/console/payouts/reveal", data=form, headers={"Referer": "https://evil.example//a.b"})
    assert Shown(elsewhere.text).links["Cancel"] == "/console/"


def test_an_orders_personal_data_is_revealed_after_the_password(api, console, confirmation_form):
    order_no = api.buy(customer_name="Zhang San").data["order_no"]
    form = confirmation_form(f"order/{order_no}/reveal")
    assert "Zhang San" in confirmed(console, form).text
    assert entries()[-2:] == ["confirm identity", "reveal"]


def test_a_wrong_password_confirms_nothing_and_can_be_corrected(console, confirm, confirmation_form):
    refused = confirm("wrong-password")
    assert (refused.status_code, "Incorrect password." in refused.text) == (401, True)
    assert "wrong-password" not in refused.text
    assert confirmation_form()
    form = next(form for form in Shown(refused.text).forms if "confirm-answer" in form)
    assert console.post(form.url, data=form | {"confirm-answer": PASSWORD}).status_code == 307


def test_a_repeated_field_keeps_each_value(send):
    answer = send("channel/1", methods=["wxpay", "alipay"])
    assert [answer.text.count(f'name="methods" value="{each}"') for each in ("wxpay", "alipay")] == [1, 1]


def test_guesses_are_limited_for_the_session_and_for_no_other_one(clock, sign_in, console, send, confirm):
    elsewhere = sign_in("demo", confirmed=False)
    assert [confirm(f"guess-{number}").status_code for number in range(6)] == [401] * 6
    new = {"new": "four words not together", "again": "four words not together"}
    changes = [send("password", present=f"guess-{number}", **new).status_code for number in range(6)]
    assert changes == [422] * 4 + [429] * 2
    assert confirm().status_code == 429
    form = Shown(send("merchant/demo/reveal", client=elsewhere).text).forms[-1]
    assert elsewhere.post(form.url, data=form | {"confirm-answer": PASSWORD}).status_code == 307
    assert sign_in("demo", confirmed=False).get("/console/orders/").status_code == 200
    clock(3_599)
    assert confirm().status_code == 429
    clock(5_400)  # half an hour into the next hour, half of them count
    assert [confirm(f"guess-{number}").status_code for number in range(6)] == [401] * 5 + [429]


def test_guesses_are_recorded_like_failed_sign_ins(send, confirm, page):
    confirm("guess-number-1")
    send("password", present="guess-number-2", new="four words not together", again="four words not together")
    assert entries() == ["sign in", "enter incorrect password", "enter incorrect password"]
    about = AuditEntry.select(AuditEntry.who, AuditEntry.key, AuditEntry.address).where(AuditEntry.about == "operator")
    assert set(about.tuples()) == {("demo", "demo", "127.0.0.1")}
    shown = page("audit/").html
    assert "entered an incorrect password while signed in" in shown
    assert "guess-number" not in shown
    columns = (FailedSignIn.address, FailedSignIn.passwords, FailedSignIn.codes)
    assert list(FailedSignIn.select(*columns).tuples()) == [("127.0.0.1", 2, 0)]


def test_a_confirmation_ends_after_five_minutes_and_is_for_its_own_session(
    send, sign_in, confirmation_form, confirm, ahead
):
    elsewhere = sign_in("demo", confirmed=False)
    confirm()
    assert send("merchant/demo/reveal", client=elsewhere).status_code == 403
    assert Session.select().where(Session.confirmtime > 0).count() == 1
    ahead(290)
    assert send("merchant/demo/reveal").status_code == 200
    ahead(20)
    assert confirmation_form()


def test_a_viewer_is_refused_without_the_password_form(viewer, send):
    refused = send("merchant/demo/reveal", client=viewer)
    assert refused.status_code == 403
    assert "confirm-answer" not in refused.text
    assert viewer.get("/console/merchant/demo/adjust").status_code == 403


class TestLargePayouts:
    """`confirm_above`: payouts above an amount."""

    @pytest.fixture
    def settings_of_app(self):
        return {"confirm_above": 5_000}

    @pytest.fixture
    def act(self, console):
        """`act(order_no, "approve")`: the response to an action."""

        def performed(order_no, key, **given):
            form = Shown(console.get(f"/console/order/{order_no}").text).actions[key]
            return console.post(form.url, data=form | given)

        return performed

    @pytest.fixture
    def sells(self, api):
        return lambda amount: api.sell(amount, channel=3).data["order_no"]

    def test_above_the_amount_the_password_is_needed_again(self, console, act, sells, api):
        above, exactly = sells("50.01"), sells("50.00")
        refused = act(above, "approve")
        assert (refused.status_code, api.status(above)) == (403, "pending")
        assert (act(exactly, "approve").status_code, api.status(exactly)) == (303, "confirmed")
        confirmed(console, next(form for form in Shown(refused.text).forms if "confirm-answer" in form))
        assert api.status(above) == "confirmed"

    def test_marking_as_paid_counts_by_the_larger_amount_and_rejecting_not(self, act, sells, api):
        order_no, rejected = sells("50.00"), sells("50.01")
        act(order_no, "approve")
        amounts = ("50.01", "no amount", "50.00")
        assert [act(order_no, "paid", amount=each).status_code for each in amounts] == [403, 303, 303]
        assert act(rejected, "reject", reason="no").status_code == 303
        assert (api.status(order_no), api.status(rejected)) == ("completed", "cancelled")

    def test_no_other_page_pays_out(self, console, act, sells, api, flask, send):
        flask("merchant", "set", "demo", "--events", "confirmed")
        order_no = sells("50.00")
        act(order_no, "approve")
        form = Shown(console.get(f"/console/order/{order_no}").text).actions["paid"]
        url = f"/console/callback/{Callback.get().webhook_id}/act"
        assert console.post(url, data=form | {"amount": "50.01"}).status_code == 404
        assert api.status(order_no) == "confirmed"
        assert send("order/000000000000000000000000/act", action="accept").status_code == 404


class TestLargePayoutsOfTwo:
    """The same with a second operator, whose approval pays out."""

    @pytest.fixture
    def settings_of_app(self):
        return {"confirm_above": 6_000, "second_operator_above": 5_000}

    def test_an_approval_counts_by_what_was_requested(self, sign_in, console, api):
        operators.add("second", "second-password")
        order_no = api.sell("50.01", channel=3).data["order_no"]
        second = sign_in("second", confirmed=False)

        def act(client, key, **given):
            form = Shown(client.get(f"/console/order/{order_no}").text).actions[key]
            return client.post(form.url, data=form | given).status_code

        assert (act(console, "approve"), act(second, "second-approval")) == (303, 303)
        assert act(sign_in("demo"), "paid", amount="60.01") == 303, "this session has confirmed"
        assert act(second, "second-approval") == 403
        assert api.status(order_no) == "confirmed"
