"""The list of payouts: its tabs, the payees' details, the way from one payout to the next, and bulk actions."""

import html

import pytest

from models.tables.operator import AuditEntry
from services.security import operators
from tests.blueprints.console.bulk import confirm, confirmation
from tests.blueprints.console.conftest import ACCOUNT, MANUAL
from tests.blueprints.console.reading import Shown

AT_CHANNEL = 2


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000}


@pytest.fixture
def sells(api):
    """`sells("10.00", "20.00")`: the numbers of new withdrawals on the manual channel."""
    return lambda *amounts, channel=MANUAL: [api.sell(each, channel=channel).data["order_no"] for each in amounts]


@pytest.fixture
def listed(page):
    """`listed("?flt_state=send")`: what to do by order number."""
    return lambda query="": {row["Order number"]: row["To do"] for row in page(f"payouts/{query}").rows}


def test_the_tabs_separate_what_to_approve_what_to_send_and_what_is_in_progress(
    page, listed, sells, accepted, api, flask
):
    to_approve = sells("10.00", "10.00", channel=AT_CHANNEL)
    (by_hand,), (at_channel,) = accepted("10.00"), accepted("10.00", channel=AT_CHANNEL)
    api.buy()
    assert listed("?flt_state=approve") == dict.fromkeys(to_approve, "Review")
    assert listed("?flt_state=send") == {by_hand: "Send manually"}
    assert listed("?flt_state=under_way") == {at_channel: "At the channel"}
    assert (len(listed("?flt_state=all")), len(listed("?flt_state=waiting"))) == (4, 3)
    shown = page("payouts/").text
    assert ("To approve 2" in shown, "To send 1" in shown, "Payouts 3" in page().text) == (True, True, True)
    assert listed() == dict.fromkeys(to_approve, "Review")
    for order_no in to_approve:
        flask("order", "reject", order_no, "--reason", "no")
    assert listed() == {by_hand: "Send manually"}, "with nothing to approve, what to send"


def test_the_oldest_payout_comes_first_also_on_the_next_page(page, sells):
    numbers = sells(*["10.00"] * 103)
    first = page("payouts/")
    assert [row["Order number"] for row in first.rows] == numbers[:100]
    assert "Payouts 99+" in first.text, "the menu counts no further"
    rest = page(first.links["Newer"].removeprefix("/console/"))
    assert [row["Order number"] for row in rest.rows] == numbers[100:]
    assert page(rest.links["Older"].removeprefix("/console/")).rows == first.rows


def test_payees_to_send_are_masked_until_they_are_revealed_once_and_recorded(
    page, console, viewer, sign_in, sells, accepted, send
):
    sells("10.00")
    (order_no,) = accepted("10.00")
    (row,) = page("payouts/?flt_state=send").rows
    assert (ACCOUNT in row["Payee"], row["Payee"][:2]) == (False, "张*")
    assert send("payouts/reveal?flt_state=send", client=viewer).status_code == 403
    late = send("payouts/reveal?flt_state=send", client=sign_in("demo", confirmed=False))
    assert (late.status_code, "confirm-answer" in late.text, ACCOUNT in late.text) == (403, True, False)
    assert "Reveal payees" not in page("payouts/").sends, "payouts to approve stay masked"
    assert ACCOUNT not in send("payouts/reveal?flt_state=approve").text
    assert AuditEntry.select().where(AuditEntry.action == "reveal").count() == 0
    revealed = send("payouts/reveal?flt_state=send")
    assert revealed.status_code == 200
    for text in (ACCOUNT, "张三", "Copy all payees", f"{order_no}\t张三\t{ACCOUNT}\t"):
        assert text in revealed.text
    entry = AuditEntry.select().order_by(AuditEntry.id.desc()).get()
    assert (entry.who, entry.action, entry.about, entry.key) == ("demo", "reveal", "order", order_no)
    assert console.get("/console/payouts/reveal?flt_state=send").status_code == 302


def test_all_rows_of_the_page_can_be_selected_without_script_except_by_viewers(page, viewer, sells):
    (order_no, *_) = sells("10.00", "10.00", "10.00")
    shown = page("payouts/?flt_state=approve")
    selected = page(shown.links["Select all on this page"].removeprefix("/console/"))
    assert (shown.html.count(" checked>"), selected.html.count(" checked>")) == (0, 3)
    assert f'value="{order_no}"' in shown.html
    assert f'value="{order_no}"' not in page("payouts/", client=viewer).html


def of_sending(desk, order_no):
    """The forms of the button that approves a payout and shows its payee."""
    return [form for form in desk.order(order_no).forms if form.url.partition("#")[0].endswith("/send")]


def test_approve_and_send_shows_the_payee_and_marks_as_paid_out(desk, sells, api):
    (order_no,), (at_channel,) = sells("10.00"), sells("10.00", channel=AT_CHANNEL)
    assert of_sending(desk, at_channel) == []
    (form,) = of_sending(desk, order_no)
    answer = desk.client.post(form.url, data=form)
    assert (answer.status_code, ACCOUNT in answer.text, api.status(order_no)) == (200, True, "confirmed")
    assert desk.send(Shown(answer.text).actions["paid"], reference="BANK-1")[0] == "good"
    assert api.status(order_no) == "completed"


def test_approve_and_send_reveals_nothing_if_the_order_changed(desk, sells, flask):
    (order_no,) = sells("10.00")
    (form,) = of_sending(desk, order_no)
    flask("order", "reject", order_no, "--reason", "no")
    answer = desk.client.post(form.url, data=form)
    assert (answer.status_code, ACCOUNT in answer.text) == (303, False)


def test_the_next_payout_is_the_oldest_after_it_and_then_the_oldest_of_all(console, page, sells, flask):
    first, second, third = sells("10.00", "10.00", "10.00")

    def following(order_no):
        return console.get(f"/console/payouts/next?after={order_no}").location.removeprefix("/console/")

    assert page(f"order/{first}").links["Next payout"].endswith(first)
    assert following(first) == f"order/{second}"
    flask("order", "reject", second, "--reason", "no")
    assert [following(each) for each in (first, third, "unknown")] == [
        *(f"order/{third}", f"order/{first}", f"order/{first}")
    ]
    for order_no in (first, third):
        flask("order", "reject", order_no, "--reason", "no")
    assert following(first) == "payouts/"


# Bulk actions: one confirmation, then each payout once or not at all


def log(*actions):
    """The audit entries of these actions."""
    rows = AuditEntry.select().where(AuditEntry.action.in_(actions)).order_by(AuditEntry.id)
    return [(row.action, row.key, row.detail) for row in rows]


@pytest.mark.parametrize(
    ("channels", "told", "link"),
    [
        ([MANUAL], "Then send them yourself.", "Payouts to send"),
        ([AT_CHANNEL], "The service then sends payouts through their channels.", "Back to payouts"),
        (
            [MANUAL, AT_CHANNEL],
            "The service then sends payouts through their channels. Send those of manual channels yourself.",
            "Payouts to send",
        ),
    ],
)
def test_the_pages_of_an_approval_say_who_sends_the_selected_payouts(console, sells, channels, told, link):
    page = confirmation(console, "approve", [sells("10.00", channel=each)[0] for each in channels])
    assert f"none if one has changed. {told} Merchant" in page.text
    links = Shown(confirm(console, "approve", page).text).links
    assert [each for each in ("Payouts to send", "Back to payouts") if each in links] == [link]


def test_one_confirmation_with_count_and_totals_approves_all(console, sells, statuses, api):
    others = [api.buy().data["order_no"], "1" * 24]
    numbers = [*sells(*["10.00"] * 68), *sells("1005.50", channel=AT_CHANNEL)]
    page = confirmation(console, "approve", [*others, *numbers])
    assert page.sealed == numbers, "a deposit and an unknown number are ignored"
    for text in ("Approve 69 payouts", "69 payouts · ¥1,685.50", "Manual C 68 680.00", "演示商户 69 1,685.50"):
        assert text in page.text
    assert "69 payouts approved" in confirm(console, "approve", page).text
    assert set(statuses(numbers)) == {"confirmed"}
    assert log("approve payouts") == [("approve payouts", "", "69 payouts, 1,685.50")]
    assert sorted(key for _, key, _ in log("accept order")) == sorted(numbers)
    nothing = console.get("/console/payouts/approve")
    assert (nothing.status_code, nothing.location) == (302, "/console/payouts/")


def test_approval_is_refused_as_a_whole_if_a_row_changed(console, sells, statuses, flask):
    numbers = sells("10.00", "20.00", "30.00")
    page = confirmation(console, "approve", numbers)
    flask("order", "reject", numbers[1], "--reason", "no")
    answer = confirm(console, "approve", page)
    assert answer.status_code == 303
    again = Shown(console.get(answer.location).text).text
    for text in (
        f"Order {numbers[1]} changed since this page was loaded, so no payout was approved.",
        "2 payouts · ¥40.00",
        "1 payout is left out",
    ):
        assert text in again
    assert statuses(numbers) == ["pending", "cancelled", "pending"]
    assert ("not done" in log("approve payouts")[-1][2], log("accept order")) == (True, [])


@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_a_payout_with_the_seal_of_another_one_is_left_as_it_was(console, sells, statuses, kind):
    one, two = sells("10.00", "20.00")
    page = confirmation(console, kind, [one])
    seal = page.rows_sent[0].partition(".")[2]
    form = {"csrf_token": page.fields["csrf_token"], "row": [f"{two}.{seal}", f"{'1' * 24}.{seal}"], "reason": "no"}
    answer = console.post(f"/console/payouts/{kind}", data=form)
    shown = console.get(answer.location) if kind == "approve" else answer
    assert "changed since this page was loaded" in Shown(shown.text).text
    assert statuses([one, two]) == ["pending", "pending"]


def test_a_bulk_rejection_needs_a_reason_and_returns_the_reserve(console, sells, statuses, balances, order_details):
    before = balances()
    numbers = sells("10.00", "20.00")
    page = confirmation(console, "reject", numbers)
    assert confirm(console, "reject", page).text.count("Enter a reason for the rejection.") == 2
    assert "2 payouts rejected" in confirm(console, "reject", page, reason="wrong account").text
    assert (statuses(numbers), balances()) == (["cancelled", "cancelled"], before)
    assert "wrong account" in str(order_details(numbers[0])["history"])


def test_a_rejection_checks_each_payout_at_its_channel(console, accepted, statuses, due, ahead):
    numbers = accepted("10.00", "20.00", channel=AT_CHANNEL)
    due()  # the channel has them
    ahead(700)
    page = confirmation(console, "reject", numbers)
    answer = confirm(console, "reject", page, reason="stop")
    assert "2 payouts were not changed" in answer.text
    assert "cancelled" not in statuses(numbers)


def test_marking_as_sent_records_each_reference_and_once(
    console, accepted, statuses, order_details, balances, exceptions
):
    numbers = accepted("10.00", "20.00", "30.00")
    page = confirmation(console, "sent", numbers)
    given = {f"reference-{numbers[0]}": "BANK-1", f"reference-{numbers[1]}": "BANK-1"}
    answer = confirm(console, "sent", page, **given)
    assert "2 payouts marked as paid out" in answer.text
    assert f"Transaction ID BANK-1 is already recorded for order {numbers[0]}." in html.unescape(answer.text)
    assert statuses(numbers) == ["completed", "confirmed", "completed"]
    assert order_details(numbers[0])["channel_reference"] == "BANK-1"
    assert [key for _, key, detail in log("mark paid") if "not done" in detail] == [numbers[1]]
    after = balances()
    again = confirm(console, "sent", page, **given | {f"reference-{numbers[0]}": "BANK-9"})
    assert "3 payouts were not changed" in again.text
    assert "Not possible in the current order status: Completed." in again.text
    assert (balances(), exceptions()) == (after, {})
    later = confirmation(console, "sent", [numbers[0]])
    assert (later.sealed, "Nothing to do" in later.text) == ([], True)


def test_payouts_that_do_not_allow_the_action_are_left_out_with_the_reason(console, sells, accepted):
    numbers = [*sells("1.00"), *accepted("2.00"), *accepted("3.00", channel=AT_CHANNEL)]
    page = confirmation(console, "sent", numbers)
    assert page.sealed == [numbers[1]]
    for text in ("2 payouts are left out", "Approve the withdrawal first.", "The channel reports payments itself."):
        assert text in page.text


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
        large = numbers[1:]
        given = {f"reference-{large[0]}": "BANK-7"}
        confirm(console, "sent", confirmation(console, "sent", large), **given)
        assert statuses(large) == ["confirmed"]
        confirm(second, "sent", confirmation(second, "sent", large))
        assert statuses(large) == ["completed"]


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
