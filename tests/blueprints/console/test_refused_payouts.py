"""Payouts that the bank refused: the reason on their pages, another account, and the end of a bank file."""

from dataclasses import replace

import pytest

from models.tables.operator import AuditEntry
from models.tables.order import Order
from services.security import operators
from tests.blueprints.console.acting import Desk
from tests.blueprints.console.bulk import confirm, confirmation
from tests.blueprints.console.conftest import ACCOUNT, MANUAL
from tests.blueprints.console.reading import Shown
from tests.blueprints.console.test_payout_batches import table
from tests.support import CARD, PERSON

OTHER = "6222020000000000999"
HEADER = ["编号", "收款账号", "金额", "状态", "流水号", "失败原因"]
PAGE = "payouts/batch"


def paid(code, amount="10.00"):
    return [code, ACCOUNT, amount, "成功", f"BANK-{code}", ""]


def failed(code, amount="10.00"):
    return [code, ACCOUNT, amount, "失败", "", "户名不符"]


@pytest.fixture
def imports(result, record):
    """`imports(path, row, ...)`: record a bank's result; return the page that follows."""

    def done(path, *rows):
        return record(path, result(path, [HEADER, *rows]))

    return done


@pytest.fixture
def refused(accepted, create, download, imports):
    """The number of a payout of ¥10.00 that the bank refused."""
    (order_no,) = accepted("10.00")
    path = create([order_no])
    download(path)
    imports(path, failed("P1-1"))
    return order_no


@pytest.fixture
def new_account(flask):
    """`new_account()`: add another payout account to the merchant."""
    return lambda number=OTHER: flask("account", "add", "demo", "--card-number", number, "--real-name", "张三")


def account_of(order_no):
    return Order.get(order_no=order_no).account_id


def test_the_batch_ends_with_the_sums_of_each_result_and_leads_to_the_refused_ones(
    accepted, create, download, imports, page, send
):
    numbers = accepted("1000.00", "1000.00", "10.00")
    path = create(numbers)
    assert "The download starts." in page(path).text
    assert "The file was not downloaded yet." in page(path).text
    download(path)
    shown = page(path)
    assert "File downloaded. Import the bank's result when it is ready." in shown.text
    imports(path, paid("P1-1", "1000.00"))
    shown = page(path)
    assert "2 payouts without a result, ¥1,010.00. The next download contains only these." in shown.text
    assert [row[1] for row in table(download(path))[1:]] == numbers[1:]
    recorded = imports(path, paid("P1-2", "1000.00"), failed("P1-3"))
    shown = page(path)
    told = "All 3 payouts have a result: 2 paid out ¥2,000.00, 1 refused by the bank ¥10.00."
    assert told in shown.text
    assert f"2 results recorded: 1 paid out, 1 refused by the bank. {told}" in recorded.text
    assert ("notice warn" in recorded.text, "notice good" in recorded.text) == (True, False), "one box, in amber"
    assert page("batches/").column("Refused") == ["1"]
    (row,) = page(shown.links["Show the refused payouts"].removeprefix("/console/")).rows
    assert (row["Order number"], "Refused by the bank 户名不符" in row["To do"]) == (numbers[2], True)
    assert page("payouts/?flt_state=send&flt_batch=2").rows == page("payouts/?flt_state=send&flt_batch=x").rows == []


def test_payouts_that_are_not_in_the_next_download_are_counted(accepted, create, download, flask, page):
    numbers = accepted("10.00", "10.00", "10.00")
    path = create(numbers)
    page(path)
    download(path)
    flask("order", "paid", numbers[0], "--amount", "9.00", "--reference", "HAND-1", "--in-bank-file")
    assert "3 payouts without a result, ¥30.00. The next download contains 2 of them." in page(path).text
    for order_no in numbers[1:]:
        flask("order", "reject", order_no, "--reason", "no", "--in-bank-file")
    assert "No payout is left for the file." in page(path).text


def test_payouts_that_ended_before_the_download_are_decided_without_the_file(accepted, create, flask, page):
    numbers = accepted("10.00")
    path = create(numbers)
    flask("order", "reject", *numbers, "--reason", "no")
    assert "1 payout has a result: 1 decided without the file ¥10.00." in page(path).text


def test_the_order_says_why_the_bank_refused_it_with_what_to_do(refused, desk, page, viewer):
    shown = desk.order(refused)
    assert "Refused by the bank: 户名不符" in shown.text
    assert "Refused by the bank, payout P1-1: 户名不符" in shown.text, "the timeline"
    assert "The merchant has no other payout account on file." in shown.text
    assert shown.links["Batch 1"].endswith("/batch/1")
    assert shown.links["Add account"] == "/console/merchant/demo/account"
    assert "reject" in shown.actions
    assert "change-account" not in shown.actions
    seen = page(f"order/{refused}", client=viewer)
    assert ("Refused by the bank: 户名不符" in seen.text, seen.actions) == (True, {})


def test_the_list_says_why_the_bank_refused_it_and_suggests_what_to_do(refused, new_account, desk, page, viewer):
    listed = page("payouts/?flt_state=send")
    assert listed.rows[0]["To do"] == "Refused by the bank 户名不符 Reject or change account"
    assert listed.links["Reject or change account"] == f"/console/order/{refused}#refused"
    assert "change account" not in page("payouts/?flt_state=send", client=viewer).rows[0]["To do"]
    new_account()
    desk.act(refused, "change-account")
    assert page("payouts/?flt_state=send").rows[0]["To do"] == "Send manually Account changed"


def test_the_next_file_names_the_refusals_of_its_payouts(refused, accepted, console):
    (new,) = accepted("20.00")
    shown = console.get(f"/console/{PAGE}", query_string={"order_no": [refused, new]})
    text = Shown(shown.text).text
    assert "The bank refused 1 of them before. Check the account first." in text
    assert "Refused by the bank: 户名不符" in text


class TestChangeAccount:
    def test_the_payout_goes_to_the_merchants_present_account(
        self, refused, new_account, desk, create, download, balances, page
    ):
        new_account()
        before = balances()
        shown = desk.order(refused)
        assert "***************0999" in shown.text
        category, text = desk.send(shown.actions["change-account"])
        assert (category, text) == ("good", "The payout now goes to the account ending in 0999.")
        shown = desk.order(refused)
        assert "ending in 0017 changed to the one ending in 0999" in shown.text
        assert "The account was changed since. Put the payout into the next bank file." in shown.text
        assert (
            "refused 1 of them before" not in desk.see(shown.links["Create bank file"].removeprefix("/console/")).text
        )
        assert AuditEntry.get(action="change payout account").key == refused
        assert "put the payout of" in page("audit/").text
        assert balances() == before
        assert table(download(create([refused])))[1][3] == OTHER

    def test_it_is_changed_only_to_the_account_that_the_page_showed(self, refused, new_account, desk):
        before = account_of(refused)
        new_account()
        form = desk.order(refused).actions["change-account"]
        new_account("6222020000000000888")
        assert desk.send(form)[0] == "bad"
        assert account_of(refused) == before
        assert desk.act(refused, "change-account")[0] == "good"
        assert desk.send(form)[0] == "bad"

    def test_a_page_from_before_the_next_file_changes_nothing(self, refused, new_account, desk, create):
        new_account()
        form, before = desk.order(refused).actions["change-account"], account_of(refused)
        create([refused])
        assert desk.send(form)[0] == "bad"
        assert "Refused by the bank: " not in desk.order(refused).text
        assert account_of(refused) == before

    def test_only_a_payout_that_the_bank_refused_can_get_another_account(
        self, accepted, create, download, new_account, desk, send
    ):
        (fresh,), (at_channel,), (in_file,) = accepted("10.00"), accepted("10.00", channel=2), accepted("10.00")
        path = create([in_file])
        download(path)
        new_account()
        for order_no in (fresh, at_channel, in_file):
            assert "change-account" not in desk.order(order_no).actions
        send(f"{path}/discard", not_given="1")
        assert "change-account" not in desk.order(in_file).actions

    def test_a_card_of_the_order_stays(self, api, flask, flask_json, create, download, imports, new_account, desk):
        kind = ("--driver", "manual", "--category", "gateway_a", "--pay-method", "bank")
        channel = flask_json("channel", "add", "--name", "Cards", *kind)["id"]
        flask("channel", "link", str(channel), "demo")
        sent = {"gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}
        order_no = api.sell("10.00", channel=channel, **sent).data["order_no"]
        flask("order", "accept", order_no)
        path = create([order_no])
        download(path)
        imports(path, ["P1-1", CARD["card_no"], "10.00", "失败", "", "户名不符"])
        new_account()
        shown = desk.order(order_no)
        assert "The merchant sent this account with the withdrawal." in shown.text
        assert ("change-account" in shown.actions, "Add account" in shown.links) == (False, False)

    def test_an_open_exception_comes_first(self, refused, new_account, desk, flask):
        new_account()
        flask("order", "paid", refused, "--amount", "9.00", "--reference", "HAND-1")
        assert "change-account" not in desk.order(refused).actions


EARLIER = "The bank paid the earlier account ending in 0017."
ANOTHER_FILE = "It is also in batch 2: make sure that the bank does not send it again."
WITHOUT_ACCOUNTS = ["编号", "金额", "状态", "流水号"]


class TestResultForTheEarlierAccount:
    """The bank corrects the result of a payout whose account was changed since."""

    @pytest.fixture
    def changed(self, refused, new_account, desk):
        """The number of a refused payout that was put to another account."""
        new_account()
        assert desk.act(refused, "change-account")[0] == "good"
        return refused

    @pytest.fixture
    def seen(self, result):
        """`seen("batch/1", row)`: the text of the page that shows what the row would change."""
        return lambda path, *rows: Shown(result(path, [HEADER, *rows]).text).text

    @pytest.mark.parametrize("has_accounts", [True, False])
    def test_the_order_has_the_account_that_the_bank_paid(self, changed, has_accounts, result, record, desk):
        rows = [HEADER, paid("P1-1")] if has_accounts else [WITHOUT_ACCOUNTS, ["P1-1", "10.00", "成功", "BANK-P1-1"]]
        shown = result("batch/1", rows)
        assert EARLIER in Shown(shown.text).text
        assert account_of(changed) == 2
        record("batch/1", shown)
        assert (account_of(changed), Order.get(order_no=changed).channel_reference) == (1, "BANK-P1-1")
        told = desk.order(changed).text
        assert "***************0017" in told
        assert "changed back from the one ending in 0999 to the one ending in 0017, which the bank paid" in told
        assert "Already recorded" in result("batch/1", rows).text

    def test_the_page_says_that_the_next_file_can_pay_it_again(self, changed, create, download, seen):
        path = create([changed])
        assert ANOTHER_FILE not in seen("batch/1", paid("P1-1"))
        download(path)
        told = seen("batch/1", paid("P1-1"))
        assert (EARLIER in told, ANOTHER_FILE in told) == (True, True)

    def test_a_second_payout_to_it_is_an_exception(self, changed, create, download, imports, seen, exceptions):
        path = create([changed])
        download(path)
        imports(path, ["P2-1", OTHER, "10.00", "成功", "BANK-P2-1", ""])
        assert EARLIER in seen("batch/1", paid("P1-1"))
        imports("batch/1", paid("P1-1"))
        assert (exceptions(), account_of(changed)) == ({changed: "payout_conflict"}, 2)

    def test_the_payout_that_the_next_file_sends_too_is_an_exception(
        self, changed, create, download, imports, exceptions
    ):
        path = create([changed])
        download(path)
        imports("batch/1", paid("P1-1"))
        imports(path, ["P2-1", OTHER, "10.00", "成功", "BANK-P2-1", ""])
        assert (exceptions(), account_of(changed)) == ({changed: "payout_conflict"}, 1)

    def test_each_file_is_compared_with_the_account_in_it(self, changed, create, download, seen):
        path = create([changed])
        download(path)
        different = "It has a different account number."
        for code, right, wrong in (("P1-1", ACCOUNT, OTHER), ("P2-1", OTHER, ACCOUNT)):
            batch = f"batch/{code[1]}"
            assert different not in seen(batch, [code, right, "10.00", "成功", "", ""])
            assert different in seen(batch, [code, wrong, "10.00", "成功", "", ""])

    def test_a_page_from_before_the_change_records_nothing(self, refused, new_account, result, desk, record, statuses):
        shown = result("batch/1", [HEADER, paid("P1-1")])
        new_account()
        desk.act(refused, "change-account")
        assert "The order changed since this page was loaded." in record("batch/1", shown).text
        assert statuses([refused]) == ["confirmed"]

    def test_an_exception_that_completes_it_counts_like_a_result(self, changed, accepted, flask, imports, exceptions):
        (other,) = accepted("10.00")
        flask("order", "paid", other, "--reference", "BANK-P1-1")
        imports("batch/1", paid("P1-1"))
        assert exceptions() == {changed: "payout_conflict"}
        flask("order", "resolve", changed, "--complete")
        assert account_of(changed) == 1

    def test_both_accounts_are_masked_in_the_banks_reason(self, changed, seen):
        told = seen("batch/1", [*failed("P1-1")[:-1], f"{ACCOUNT} {OTHER} 户名不符"])
        assert (ACCOUNT in told, OTHER in told, "*** *** 户名不符" in told) == (False, False, True)


class TestOfTwo:
    """`second_operator_above`: the second operator approved the payout with its account."""

    @pytest.fixture
    def settings_of_app(self):
        return {"second_operator_above": 999}

    def test_a_large_payout_keeps_its_account(self, refused, new_account, desk):
        new_account()
        shown = desk.order(refused)
        assert "A second operator approved this account." in shown.text
        assert "change-account" not in shown.actions

    def test_the_account_that_two_approved_stays_when_the_amount_is_raised(
        self, app, api, sign_in, desk, create, download, imports, new_account
    ):
        order_no = api.sell("10.00", channel=MANUAL).data["order_no"]
        desk.act(order_no, "approve")
        operators.add("second", "second-password")
        Desk(sign_in, "second").act(order_no, "second-approval")
        download(create([order_no]))
        runtime = app.extensions["runtime"]
        runtime.settings = replace(runtime.settings, second_operator_above=5_000)
        imports("batch/1", failed("P1-1"))
        new_account()
        shown = desk.order(order_no)
        assert "A second operator approved this account." in shown.text
        assert "change-account" not in shown.actions


class TestConfirmed:
    """`confirm_above`: another account of a large payout needs the password."""

    @pytest.fixture
    def settings_of_app(self):
        return {"confirm_above": 999}

    def test_it_is_asked_for_before_the_account_changes(self, refused, new_account, sign_in):
        new_account()
        client, before = sign_in("demo", confirmed=False), account_of(refused)
        form = Shown(client.get(f"/console/order/{refused}").text).actions["change-account"]
        assert client.post(form.url, data=form).status_code == 403
        assert account_of(refused) == before


class TestTheWayToTheFile:
    """From the approval to the download, without a choice twice."""

    def test_an_approval_leads_to_a_file_of_its_manual_payouts(self, api, console):
        numbers = [api.sell("10.00", channel=MANUAL).data["order_no"] for _ in range(2)]
        at_channel = api.sell("10.00", channel=2).data["order_no"]
        page = confirmation(console, "approve", [*numbers, at_channel])
        shown = Shown(confirm(console, "approve", page).text)
        form = Shown(console.get(shown.links["Create bank file of 2 payouts"]).text)
        assert form.html.count('name="order_no"') == 2
        assert "2 payouts · ¥20.00" in form.text

    def test_the_last_template_of_the_channel_is_selected(self, accepted, create, page, console):
        def selected(*numbers):
            shown = console.get(f"/console/{PAGE}", query_string={"order_no": numbers})
            return Shown(shown.text).fields["template"]

        first, second, third = accepted("10.00", "10.00", "10.00")
        assert selected(third) == ""
        create([first], "icbc")
        create([second], "cmb")
        assert selected(third) == "cmb"

    def test_payouts_of_two_channels_are_two_files(self, accepted, flask, flask_json, console):
        kind = ("--driver", "manual", "--category", "gateway_c", "--pay-method", "bank")
        channel = flask_json("channel", "add", "--name", "Second", *kind)["id"]
        flask("channel", "link", str(channel), "demo")
        numbers, others = accepted("10.00", "10.00"), accepted("30.00", channel=channel)
        shown = Shown(console.get(f"/console/{PAGE}", query_string={"order_no": [*numbers, *others]}).text)
        assert "Create and download file" not in shown.text
        form = Shown(console.get(shown.links["Second"]).text)
        assert ("1 payout · ¥30.00" in form.text, "Create and download file" in form.text) == (True, True)

    def test_the_page_of_a_new_file_starts_the_download_once(self, accepted, create, console, download):
        path = create(accepted("10.00"))
        first, second = (console.get(f"/console/{path}").text for _ in range(2))
        assert ("data-start" in first, "data-start" in second) == (True, False)
        assert "The download starts." in first

    def test_a_file_with_names_that_gbk_lacks_is_not_started(self, accepted, create, flask, console):
        flask("account", "add", "demo", "--card-number", OTHER, "--real-name", "𠮷三")
        path = create(accepted("10.00"), "icbc")
        assert "data-start" not in console.get(f"/console/{path}").text

    def test_a_page_that_renews_itself_starts_nothing(self, accepted, create, console):
        path = create(accepted("10.00"))
        assert "data-start" not in console.get(f"/console/{path}", headers={"X-Live": "1"}).text
        assert "data-start" in console.get(f"/console/{path}").text

    def test_after_the_password_the_page_of_the_file_starts_the_download(self, accepted, create, sign_in, send):
        path = create(accepted("10.00"))
        client = sign_in("demo", confirmed=False)
        asked = send(f"{path}/file", client=client)
        assert (asked.status_code, ACCOUNT in asked.text) == (403, False)
        form = next(form for form in Shown(asked.text).forms if "confirm-answer" in form)
        again = client.post(form.url, data=form | {"confirm-answer": "demo-password"})
        assert (again.status_code, again.location) == (307, f"/console/{path}/download")
        back = client.post(again.location, data=form)
        assert (back.status_code, back.location) == (303, f"/console/{path}")
        assert "data-start" in client.get(back.location).text
        assert ACCOUNT in send(f"{path}/file", client=client).text

    def test_the_lists_rows_link_to_their_open_files(self, accepted, create, page):
        create(accepted("10.00", "10.00"))
        shown = page("payouts/?flt_state=send")
        assert shown.links["Batch 1"] == "/console/batch/1"
        assert "Batch 1 2 payouts" in shown.text
