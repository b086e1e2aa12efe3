"""Bulk actions on payouts: one confirmation, then each payout once or not at all."""

import html

import pytest

from models.tables.operator import AuditEntry
from services.security import operators
from tests.blueprints.console.bulk import confirm, confirmation
from tests.blueprints.console.reading import Shown

MANUAL, AT_CHANNEL = 3, 2


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000}


@pytest.fixture
def sells(api):
    """`sells("10.00", "20.00")`: the numbers of new withdrawals on the manual channel."""
    return lambda *amounts, channel=MANUAL: [api.sell(each, channel=channel).data["order_no"] for each in amounts]


@pytest.fixture
def accepted(flask, sells):
    """The same, approved."""

    def made(*amounts, **how):
        numbers = sells(*amounts, **how)
        for order_no in numbers:
            flask("order", "accept", order_no)
        return numbers

    return made


@pytest.fixture
def statuses(api):
    """`statuses(numbers)`: their statuses."""
    return lambda numbers: [api.status(order_no) for order_no in numbers]


def log(*actions):
    """The audit entries of these actions."""
    rows = AuditEntry.select().where(AuditEntry.action.in_(actions)).order_by(AuditEntry.id)
    return [(row.action, row.key, row.detail) for row in rows]


def test_the_confirmation_shows_count_total_and_subtotals(console, sells):
    numbers = [*sells("10.00", "20.50"), *sells("1000.00", channel=AT_CHANNEL)]
    page = confirmation(console, "approve", numbers)
    assert page.sealed == numbers
    for text in ("Approve 3 payouts", "3 payouts · ¥1,030.50", "Manual C 2 30.50", "Demo Shop 演示商户 3 1,030.50"):
        assert text in page.text


def test_one_confirmation_approves_all(console, sells, statuses):
    numbers = [*sells(*["10.00"] * 68), *sells("5.00", channel=AT_CHANNEL)]
    answer = confirm(console, "approve", confirmation(console, "approve", numbers))
    assert "69 payouts approved" in answer.text
    assert set(statuses(numbers)) == {"confirmed"}
    assert log("approve payouts") == [("approve payouts", "", "69 payouts, 685.00")]
    assert sorted(key for _, key, _ in log("accept order")) == sorted(numbers)


def test_approval_is_refused_as_a_whole_if_a_row_changed(console, sells, statuses, flask):
    numbers = sells("10.00", "20.00", "30.00")
    page = confirmation(console, "approve", numbers)
    flask("order", "reject", numbers[1], "--reason", "no")
    answer = confirm(console, "approve", page)
    assert answer.status_code == 303
    again = Shown(console.get(answer.location).text)
    assert f"Order {numbers[1]} changed since this page was loaded, so no payout was approved." in again.text
    assert statuses(numbers) == ["pending", "cancelled", "pending"]
    assert "not done" in log("approve payouts")[-1][2]
    assert not log("accept order")
    assert "2 payouts · ¥40.00" in again.text
    assert "1 payout is left out" in again.text


def test_a_seal_of_another_order_approves_nothing(console, sells, statuses):
    one, two = sells("10.00", "20.00")
    page = confirmation(console, "approve", [one])
    seal = page.rows_sent[0].partition(".")[2]
    form = {"csrf_token": page.fields["csrf_token"], "row": [f"{one}.{seal}", f"{two}.{seal}", f"{'1' * 24}.{seal}"]}
    assert console.post("/console/payouts/approve", data=form).status_code == 303
    assert statuses([one, two]) == ["pending", "pending"]


@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_a_payout_that_is_not_as_shown_is_left_as_it_was(console, sells, statuses, kind):
    one, two = sells("10.00", "20.00")
    page = confirmation(console, kind, [one])
    seal = page.rows_sent[0].partition(".")[2]
    form = {"csrf_token": page.fields["csrf_token"], "row": [f"{two}.{seal}"], "reason": "no"}
    answer = console.post(f"/console/payouts/{kind}", data=form)
    shown = console.get(answer.location) if kind == "approve" else answer
    assert "changed since this page was loaded" in Shown(shown.text).text
    assert statuses([one, two]) == ["pending", "pending"]


def test_a_bulk_rejection_needs_a_reason_and_returns_the_reserve(console, sells, statuses, balances, order_details):
    before = balances()
    numbers = sells("10.00", "20.00")
    page = confirmation(console, "reject", numbers)
    refused = confirm(console, "reject", page)
    assert refused.text.count("Enter a reason for the rejection.") == 2
    assert "Enter a reason for the rejection." in html.unescape(refused.text)
    answer = confirm(console, "reject", page, reason="wrong account")
    assert "2 payouts rejected" in answer.text
    assert statuses(numbers) == ["cancelled", "cancelled"]
    assert balances() == before
    assert "wrong account" in str(order_details(numbers[0])["history"])


def test_a_rejection_checks_each_payout_at_its_channel(console, accepted, statuses, due, ahead):
    numbers = accepted("10.00", "20.00", channel=AT_CHANNEL)
    due()  # the channel has them
    ahead(700)
    page = confirmation(console, "reject", numbers)
    answer = confirm(console, "reject", page, reason="stop")
    assert "2 payouts were not changed" in answer.text
    assert "cancelled" not in statuses(numbers)


def test_marking_as_sent_records_each_reference(console, accepted, statuses, order_details):
    numbers = accepted("10.00", "20.00", "30.00")
    page = confirmation(console, "sent", numbers)
    given = {f"reference-{numbers[0]}": "BANK-1", f"reference-{numbers[1]}": "BANK-1"}
    answer = confirm(console, "sent", page, **given)
    assert "2 payouts marked as paid out" in answer.text
    assert f"Transaction ID BANK-1 is already recorded for order {numbers[0]}." in html.unescape(answer.text)
    assert statuses(numbers) == ["completed", "confirmed", "completed"]
    assert order_details(numbers[0])["channel_reference"] == "BANK-1"
    assert [key for _, key, detail in log("mark paid") if "not done" in detail] == [numbers[1]]


def test_sending_the_form_again_changes_nothing(console, accepted, statuses, balances, exceptions):
    numbers = accepted("10.00", "20.00")
    page = confirmation(console, "sent", numbers)
    confirm(console, "sent", page)
    after = balances()
    again = confirm(console, "sent", page, **{f"reference-{numbers[0]}": "BANK-9"})
    assert "2 payouts were not changed" in again.text
    assert "Not possible in the current order status: Completed." in again.text
    assert (balances(), exceptions()) == (after, {})
    later = confirmation(console, "sent", numbers)
    assert (later.sealed, "Nothing to do" in later.text) == ([], True)


def test_payouts_that_do_not_allow_the_action_are_left_out_with_the_reason(console, sells, accepted):
    numbers = [*sells("1.00"), *accepted("2.00"), *accepted("3.00", channel=AT_CHANNEL)]
    page = confirmation(console, "sent", numbers)
    assert page.sealed == [numbers[1]]
    for text in ("2 payouts are left out", "Approve the withdrawal first.", "The channel reports payments itself."):
        assert text in page.text


def test_a_deposit_and_an_unknown_number_are_ignored(console, api, sells):
    numbers = [api.buy().data["order_no"], "1" * 24, *sells("1.00")]
    assert confirmation(console, "approve", numbers).sealed == numbers[-1:]


def test_nothing_selected_leads_back(console):
    answer = console.get("/console/payouts/approve")
    assert (answer.status_code, answer.location) == (302, "/console/payouts/")


def test_only_operators_may_confirm(viewer, sells, send, statuses):
    numbers = sells("1.00")
    assert viewer.get(f"/console/payouts/approve?order_no={numbers[0]}").status_code == 403
    assert send("payouts/approve", client=viewer, row=f"{numbers[0]}.x").status_code == 403
    assert statuses(numbers) == ["pending"]


class TestOfTwo:
    """`second_operator_above`: large payouts are only requested."""

    @pytest.fixture
    def settings_of_app(self):
        return {"second_operator_above": 5_000}

    def test_large_ones_are_requested_and_another_operator_approves_them(self, sign_in, console, sells, statuses):
        operators.add("second", "second-password")
        second, numbers = sign_in("second"), sells("50.00", "50.01")
        page = confirmation(console, "approve", numbers)
        assert "1 of them needs a second operator." in page.text
        answer = confirm(console, "approve", page)
        assert "1 payout approved" in answer.text
        assert "1 payout waits for a second operator" in answer.text
        assert statuses(numbers) == ["confirmed", "pending"]
        own = confirmation(console, "approve", numbers)
        assert (own.sealed, "another operator must approve it" in own.text) == ([], True)
        confirm(second, "approve", confirmation(second, "approve", numbers))
        assert statuses(numbers) == ["confirmed", "confirmed"]

    def test_marking_large_ones_as_sent_is_requested_too(self, sign_in, console, sells, statuses):
        operators.add("second", "second-password")
        second, numbers = sign_in("second"), sells("50.01")
        for client in (console, second):
            confirm(client, "approve", confirmation(client, "approve", numbers))
        given = {f"reference-{numbers[0]}": "BANK-7"}
        confirm(console, "sent", confirmation(console, "sent", numbers), **given)
        assert statuses(numbers) == ["confirmed"]
        confirm(second, "sent", confirmation(second, "sent", numbers))
        assert statuses(numbers) == ["completed"]


class TestConfirmed:
    """`confirm_above`: the total needs the password again."""

    @pytest.fixture
    def settings_of_app(self):
        return {"confirm_above": 5_000}

    def test_many_small_payouts_need_it_as_one_large_payout(self, sign_in, sells, statuses):
        client, numbers = sign_in("demo", confirmed=False), sells("20.00", "20.00", "20.00")
        assert confirm(client, "approve", confirmation(client, "approve", numbers)).status_code == 403
        assert set(statuses(numbers)) == {"pending"}
        assert confirm(client, "approve", confirmation(client, "approve", numbers[:2])).status_code == 200
        assert statuses(numbers) == ["confirmed", "confirmed", "pending"]
