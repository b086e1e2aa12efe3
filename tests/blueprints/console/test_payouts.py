"""The list of payouts: its tabs, the payees' details, and the way from one payout to the next."""

import pytest

from models.tables.operator import AuditEntry
from tests.blueprints.console.acting import Forms

ACCOUNT = "6222020000000000017"


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000}


@pytest.fixture
def sells(api):
    """`sells(3, channel=3)`: the numbers of new withdrawals, the oldest first."""
    return lambda count, amount="10.00", channel=3: [
        api.sell(amount, channel=channel).data["order_no"] for _ in range(count)
    ]


@pytest.fixture
def accepted(flask, sells):
    """`accepted(3)`: the same, approved."""

    def made(count, **how):
        numbers = sells(count, **how)
        for order_no in numbers:
            flask("order", "accept", order_no)
        return numbers

    return made


@pytest.fixture
def listed(page):
    """`listed("?flt_state=send")`: what to do by order number."""
    return lambda query="": {row["Order number"]: row["To do"] for row in page(f"payouts/{query}").rows}


def test_the_tabs_separate_what_to_approve_what_to_send_and_what_is_in_progress(page, listed, sells, accepted, api):
    to_approve = sells(2, channel=2)
    by_hand, at_channel = accepted(1)[0], accepted(1, channel=2)[0]
    api.buy()
    assert listed("?flt_state=approve") == dict.fromkeys(to_approve, "Review")
    assert listed("?flt_state=send") == {by_hand: "Send manually"}
    assert listed("?flt_state=under_way") == {at_channel: "At the channel"}
    assert len(listed("?flt_state=all")) == 4
    assert len(listed("?flt_state=waiting")) == 3
    assert "To approve 2" in page("payouts/").text
    assert "To send 1" in page("payouts/").text
    assert "Payouts 3" in page().text


def test_without_a_choice_it_shows_what_to_approve_or_else_what_to_send(listed, sells, accepted, flask):
    by_hand, to_approve = accepted(1)[0], sells(1)[0]
    assert listed() == {to_approve: "Review"}
    flask("order", "reject", to_approve, "--reason", "no")
    assert listed() == {by_hand: "Send manually"}


def test_the_oldest_payout_comes_first_also_on_the_next_page(page, sells):
    numbers = sells(103)
    first = page("payouts/")
    assert [row["Order number"] for row in first.rows] == numbers[:100]
    rest = page(first.links["Newer"].removeprefix("/console/"))
    assert [row["Order number"] for row in rest.rows] == numbers[100:]
    assert page(rest.links["Older"].removeprefix("/console/")).rows == first.rows


def test_payees_are_masked_until_they_are_revealed_once_and_recorded(page, console, accepted, send):
    (order_no,) = accepted(1)
    (row,) = page("payouts/?flt_state=send").rows
    assert ACCOUNT not in row["Payee"]
    assert row["Payee"].startswith("张*")
    revealed = send("payouts/reveal?flt_state=send")
    assert revealed.status_code == 200
    for text in (ACCOUNT, "张三", "Copy all payees", f"{order_no}\t张三\t{ACCOUNT}\t"):
        assert text in revealed.text
    entry = AuditEntry.select().order_by(AuditEntry.id.desc()).get()
    assert (entry.who, entry.action, entry.about, entry.key) == ("demo", "reveal", "order", order_no)
    assert console.get("/console/payouts/reveal?flt_state=send").status_code == 302


def test_revealing_needs_an_operator_and_a_recent_sign_in(viewer, sign_in, send, accepted):
    accepted(1)
    assert send("payouts/reveal?flt_state=send", client=viewer).status_code == 403
    late = send("payouts/reveal?flt_state=send", client=sign_in("demo", confirmed=False))
    assert (late.status_code, "confirm-answer" in late.text) == (403, True)
    assert ACCOUNT not in late.text


def test_payouts_to_approve_stay_masked(send, sells, page):
    sells(1)
    assert "Reveal payees" not in page("payouts/").sends
    assert ACCOUNT not in send("payouts/reveal?flt_state=approve").text
    assert AuditEntry.select().where(AuditEntry.action == "reveal").count() == 0


def test_a_viewer_gets_no_checkboxes(page, viewer, sells):
    (order_no,) = sells(1)
    assert f'value="{order_no}"' in page("payouts/").html
    assert f'value="{order_no}"' not in page("payouts/", client=viewer).html


def test_all_rows_of_the_page_can_be_selected_without_script(page, sells):
    sells(3)
    shown = page("payouts/?flt_state=approve")
    selected = page(shown.links["Select all on this page"].removeprefix("/console/"))
    assert (shown.html.count(" checked"), selected.html.count(" checked")) == (0, 3)


def test_approve_and_send_shows_the_payee_and_marks_as_paid_out(desk, sells, api):
    (order_no,) = sells(1)
    form = next(form for form in desk.order(order_no).forms if form.url.partition("#")[0].endswith("/send"))
    answer = desk.client.post(form.url, data=form)
    assert answer.status_code == 200
    assert ACCOUNT in answer.text
    assert api.status(order_no) == "confirmed"
    assert desk.send(Forms(answer.text).actions["paid"], reference="BANK-1")[0] == "good"
    assert api.status(order_no) == "completed"


def test_approve_and_send_reveals_nothing_if_the_order_changed(desk, sells, flask):
    (order_no,) = sells(1)
    form = next(form for form in desk.order(order_no).forms if form.url.partition("#")[0].endswith("/send"))
    flask("order", "reject", order_no, "--reason", "no")
    answer = desk.client.post(form.url, data=form)
    assert answer.status_code == 303
    assert ACCOUNT not in answer.text


def test_only_manual_channels_offer_it(desk, sells):
    (order_no,) = sells(1, channel=2)
    assert not [form for form in desk.order(order_no).forms if form.url.partition("#")[0].endswith("/send")]


def test_the_next_payout_is_the_oldest_after_it_and_then_the_oldest_of_all(console, page, sells, flask):
    first, second, third = sells(3)

    def following(order_no):
        return console.get(f"/console/payouts/next?after={order_no}").location

    assert page(f"order/{first}").links["Next payout"].endswith(first)
    assert following(first) == f"/console/order/{second}"
    flask("order", "reject", second, "--reason", "no")
    assert following(first) == f"/console/order/{third}"
    assert following(third) == f"/console/order/{first}"
    assert following("unknown") == f"/console/order/{first}"
    for order_no in (first, third):
        flask("order", "reject", order_no, "--reason", "no")
    assert following(first) == "/console/payouts/"
