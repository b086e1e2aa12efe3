"""The list of claims, deciding on many of them at once, and matching them with an uploaded statement."""

import io
import re
from datetime import datetime, timedelta
from random import Random

import pytest

from blueprints.console import uploads
from models.tables.channel import Channel
from models.tables.ledger import Posting
from models.tables.operator import AuditEntry
from models.tables.order import Order
from models.tables.statement_layout import StatementLayout
from runtime.clock import CHINA
from runtime.money import hundredths
from services.operations import bulk
from tests.blueprints.console import acting
from tests.blueprints.console.acting import main_form, token_of
from tests.blueprints.console.reading import Shown, counted
from tests.services import walks

MANUAL = 3


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


@pytest.fixture
def sent(console):
    """`sent(page, **fields)`: send the form of a page; return the messages after it, as (category, text)."""

    def post(page, **more):
        url, fields = main_form(page.text)
        answer = console.post(url, data=fields | more)
        assert answer.status_code == 303, answer.text
        return acting.messages(console.get(answer.headers["Location"]).text)

    return post


@pytest.fixture
def ask(console):
    """`ask("confirm", [numbers])`: the confirmation page of a bulk action."""

    def opened(action, numbers, client=console):
        return client.get(f"/console/claims/{action}", query_string={"order_no": numbers})

    return opened


@pytest.fixture
def upload(console):
    """`upload(text, channel=3)`: the response to an uploaded statement."""

    def posted(content, channel=MANUAL, **form):
        raw = content if isinstance(content, bytes) else timed(content).encode()
        data = {
            "csrf_token": token_of(console),
            "channel": str(channel),
            "file": (io.BytesIO(raw), "bills.csv"),
            **form,
        }
        return console.post("/console/claims/upload", data=data, content_type="multipart/form-data")

    return posted


def timed(text):
    """The statement with the present time on lines that end before their time."""
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    return "".join(f"{line},{now}\n" if line.count(",") == 2 else f"{line}\n" for line in text.splitlines())


def status(*numbers):
    """The status of each of these orders, in this order."""
    found = {order.order_no: order.status for order in Order.select()}
    return [found[order_no] for order_no in numbers]


def test_the_list_has_the_claims_on_manual_channels_oldest_first(page, claimed, world, ahead):
    first = claimed("10.00")
    ahead(60)
    second = claimed("20.00", merchant_order_no="SHOP-77")
    walks.buy_pending(world)
    world.api.buy("30.00", MANUAL)

    def listed(query=""):
        return [row["Order number"].split()[0] for row in page(f"claims/{query}").rows]

    assert listed() == [first, second]
    assert listed("?flt_amount=20.00") == [second]
    assert listed("?search=SHOP-7") == [second]
    assert listed(f"?search={first}") == [first]
    assert "Claims 2" in page().text
    assert {"Confirm received", "Payment not received"} <= page("claims/").sends.keys()


def test_claims_of_one_amount_are_marked_and_lead_to_each_other(page, ask, claimed):
    first, other = claimed("199.00", customer_name="张三丰"), claimed("88.00")
    second = claimed("199.00", customer_name="李雷")
    shown = page("claims/")
    rows = {row["Order number"].split()[0]: row for row in shown.rows}
    mark = "2 claims of ¥199.00"
    assert [mark in rows[each]["Status"] for each in (first, second, other)] == [True, True, False]
    assert [rows[each]["Payer"] for each in (first, second, other)] == ["张*", "李*", ""]
    assert rows[first]["Method"] == "WeChat Pay"
    assert [mark in page(f"order/{each}").links for each in (first, other)] == [True, False]
    of_amount = page(shown.links[mark].removeprefix("/console/"))
    assert [row["Order number"].split()[0] for row in of_amount.rows] == [first, second]
    (row,) = Shown(ask("confirm", [first]).text).rows
    assert (mark in row["Amount (¥)"], row["Payer"]) == (True, "张*"), "the other claim is marked, though not selected"


def test_a_viewer_sees_the_list_without_actions(page, viewer, claimed):
    order_no = claimed("10.00")
    shown = page("claims/", client=viewer).text
    assert (order_no in shown, "Confirm received" in shown) == (True, False)


def test_claims_are_confirmed_together_and_once_after_count_and_total(ask, claimed, sent):
    numbers = [claimed("10.00"), claimed("20.50")]
    answer = ask("confirm", numbers)
    shown = Shown(answer.text).text
    for text in ("Deposits 2 Total ¥30.50", "Available +30.32", "Channel clearing -30.50", "order.completed"):
        assert text in shown
    assert sent(answer, **{f"reference-{numbers[0]}": "BANK-1"}) == [("good", "2 deposits confirmed: ¥30.50")]
    assert status(*numbers) == ["completed", "completed"]
    assert Order.get(Order.order_no == numbers[0]).channel_reference == "BANK-1"
    entries = list(AuditEntry.select().where(AuditEntry.action.in_(("confirm claims", "mark paid"))))
    assert [each.key for each in entries] == ["", *numbers]
    assert entries[0].detail == "2 deposits, 30.50"
    again = sent(answer)
    assert [category for category, _ in again] == ["bad", "bad"]
    assert all("Not possible in the current order status: Completed." in text for _, text in again)
    assert Posting.select().where(Posting.purpose == "credit").count() == 2


def test_claims_are_reported_as_not_received_together(console, ask, claimed, sent):
    numbers = [claimed("10.00"), claimed("20.00")]
    answer = ask("not-received", numbers)
    assert ("No money moves in the ledger." in answer.text, "order.cancelled" in answer.text) == (True, True)
    assert sent(answer, reason="not in the account") == [("good", "2 deposits cancelled: ¥30.00")]
    assert status(*numbers) == ["cancelled", "cancelled"]
    assert "not in the account" in console.get(f"/console/order/{numbers[0]}").text


def test_a_claim_with_an_open_exception_is_left_out(ask, claimed, world):
    wrong, good = walks.deposit_claimed_and_wrong(world), claimed("20.00")
    for action in ("confirm", "not-received"):
        answer = ask(action, [wrong, good])
        assert "Deposits 1 Total ¥20.00" in Shown(answer.text).text
        assert "An exception of this order is open. Resolve it first." in answer.text
        assert f'value="{wrong}:' not in answer.text


def test_a_claim_that_changed_meanwhile_is_refused_and_the_others_are_done(ask, claimed, flask, sent):
    changed, other, later = claimed("10.00"), claimed("20.00"), claimed("30.00")
    page, of_later = ask("confirm", [changed, other]), ask("confirm", [later])
    flask("order", "not-received", changed)
    assert sent(page) == [
        ("good", "1 deposit confirmed: ¥20.00"),
        ("bad", f"{changed}: Not possible in the current order status: Cancelled."),
    ]
    flask("channel", "set", MANUAL, "--settlement-days", 1)
    refusal = f"{later}: The order changed since this page was loaded. Reload and try again."
    assert sent(of_later) == [("bad", refusal)], "it would now be credited later"
    assert status(changed, other, later) == ["cancelled", "completed", "paid"]


def test_one_transaction_id_confirms_one_claim(ask, claimed, sent):
    numbers = [claimed("10.00"), claimed("10.00")]
    first, second = sent(ask("confirm", numbers), **{f"reference-{each}": "BANK-1" for each in numbers})
    assert first == ("good", "1 deposit confirmed: ¥10.00")
    assert "Transaction ID BANK-1 is already recorded" in second[1]
    assert status(*numbers) == ["completed", "paid"]


def test_nothing_or_too_many_selected_is_refused_and_a_slow_action_leaves_the_rest(
    console, ask, send, claimed, monkeypatch, sent
):
    for numbers in ([], [str(number) for number in range(201)]):
        answer = ask("confirm", numbers)
        assert answer.status_code == 302
        assert "Select 1 to 200 deposits." in console.get(answer.headers["Location"]).text
    assert send("claims/confirm", row=["no seal", "1:2"]).status_code == 303
    numbers = [claimed("10.00"), claimed("20.00")]
    monkeypatch.setattr(bulk, "LONGEST", -1)
    assert sent(ask("confirm", numbers)) == [("bad", "2 were left unchanged. Repeat them.")]
    assert status(*numbers) == ["paid", "paid"]


HEAD = "流水号,收入金额,附言,交易时间\n"


def test_a_statement_confirms_its_matches_with_their_transaction_ids_and_once(upload, claimed, sent):
    first, second, third = claimed("100.00"), claimed("100.00"), claimed("88.00")
    statement = f"{HEAD}B1,100.00,{first}\nB2,100.00,\nB3,88.00,{third}\nB4,5.00,x\n"
    answer = upload(statement)
    shown = Shown(answer.text)
    assert counted(shown.html) == {
        "Matched": ("2", "188.00", "0.00"),
        "To decide": ("2", "105.00", "0.00"),
        "Recorded before": ("0", "0.00", "0.00"),
        "Not an incoming payment": ("0", "0.00", "0.00"),
        "File": ("4", "293.00", "0.00"),
    }
    assert ("Deposits 2 Total ¥188.00" in shown.text, second in shown.text) == (True, True)
    assert sent(answer) == [("good", "2 deposits confirmed: ¥188.00")]
    assert status(first, second, third) == ["completed", "paid", "completed"]
    assert Order.get(Order.order_no == third).channel_reference == "B3"

    again = Shown(upload(statement).text)
    assert counted(again.html)["Recorded before"] == ("2", "188.00", "0.00")
    for reference, order_no in (("B1", first), ("B3", third)):
        assert re.search(rf"{reference} .*?{order_no}", again.text)
    assert {category for category, _ in sent(answer)} == {"bad"}
    assert Posting.select().where(Posting.purpose == "credit").count() == 2


def choices(page):
    """The deposits that can be chosen for a payment, by the field of the payment: the values by order number."""
    found = {}
    for field, value in re.findall(r'type="radio" name="(row-\d+)" value="([^"]+)"', page):
        found.setdefault(field, {})[value.split(":")[0]] = value
    return found


def test_a_payment_that_several_claims_may_be_for_is_confirmed_for_the_chosen_one(upload, claimed, sent):
    first, second, third = claimed("199.00", customer_name="张三丰"), claimed("199.00"), claimed("88.00")
    statement = "流水号,收入金额,附言,对方户名,交易时间\n"
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    answer = upload(f"{statement}B1,199.00,转账,张三丰,{now}\nB3,88.00,{third},韩梅梅,{now}\n")
    assert choices(answer.text).keys() == {"row-2"}
    assert choices(answer.text)["row-2"].keys() == {first, second}
    assert re.search(r'name="row-2" value="" checked', answer.text), "nothing is chosen beforehand"
    shown = Shown(answer.text)
    (row,) = (row for row in shown.rows if row.get("Order number", "").startswith(first))
    assert [row[name] for name in ("Payer", "Merchant", "Amount (¥)")] == [
        "张* same payer",
        "Demo Shop 演示商户",
        "199.00",
    ]
    assert row["Method"].startswith("WeChat")
    assert row["Claimed at"]
    assert re.search(r"¥199.00 .*B1 张三丰 转账", shown.text), "what the bank says"
    assert "Confirm 1 matched and the chosen deposits" in shown.sends
    assert "Confirm only the 1 matched deposit" in shown.sends
    assert shown.html.count('<button class="primary"') == 1

    assert sent(answer, matched="1", **{"row-2": choices(answer.text)["row-2"][first]}) == [
        ("good", "1 deposit confirmed: ¥88.00")
    ], "the button for the matched ones ignores the choice"
    assert sent(answer, row=[], **{"row-2": choices(answer.text)["row-2"][first]}) == [
        ("good", "1 deposit confirmed: ¥199.00")
    ]
    assert status(first, second, third) == ["completed", "paid", "completed"]
    assert Order.get(Order.order_no == first).channel_reference == "B1"


def test_a_candidate_whose_payer_the_statement_names_is_marked_and_not_chosen(upload, claimed):
    names = {claimed("66.00", customer_name=name): name for name in ("赵子龙", "赵云", "Maria Gómez")}
    names[claimed("66.00")] = ""
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    answer = upload(f"流水号,收入金额,附言,对方户名,交易时间\nB1,66.00,,赵子龙,{now}\nB2,66.00,,,{now}\n")
    rows = [row for row in Shown(answer.text).rows if row.get("Order number")]
    marked = [names[row["Order number"].split()[0]] for row in rows if "same payer" in row["Payer"]]
    assert marked == ["赵子龙"]
    assert answer.text.count("checked>") == answer.text.count('value="" checked>'), "nothing is chosen beforehand"


def test_a_claim_that_is_chosen_for_two_payments_is_not_confirmed_and_the_others_are(upload, claimed, sent):
    first, second, third = (claimed("199.00") for _ in range(3))
    answer = upload(f"{HEAD}B1,199.00,\nB2,199.00,\nB3,199.00,\n")
    picked = [choices(answer.text)[f"row-{line}"][order_no] for line, order_no in ((2, first), (3, first), (4, third))]
    assert sent(answer, **dict(zip(("row-2", "row-3", "row-4"), picked, strict=True))) == [
        ("bad", f"{first}: Not confirmed, because you chose it for several payments. Upload the file again."),
        ("good", "1 deposit confirmed: ¥199.00"),
    ]
    assert status(first, second, third) == ["paid", "paid", "completed"]


def test_a_claim_can_not_be_chosen_if_anything_speaks_against_it(upload, claimed, world):
    matched, other = claimed("199.00"), claimed("199.00")
    wrong = walks.deposit_claimed_and_wrong(world)
    amount = hundredths(Order.get(Order.order_no == wrong).amount)
    early = f"{datetime.now(CHINA) - timedelta(hours=1):%Y-%m-%d %H:%M:%S}"
    answer = upload(
        f"{HEAD}B1,199.00,{matched}\nB2,199.00,\nB3,198.00,{other}\nB4,199.00,,{early}\nB5,{amount},\nB5,{amount},\n"
    )
    assert choices(answer.text) == {"row-3": {other: choices(answer.text)["row-3"][other]}}
    assert "Matched with line 2" in answer.text


def test_a_payment_that_may_be_recorded_already_is_offered_for_no_claim(upload, claimed, flask):
    done = claimed("199.00")
    flask("order", "paid", done)  # without its transaction ID
    claimed("199.00")
    for _ in range(2):  # with one other claim of the amount, and with two
        answer = upload(f"{HEAD}B1,199.00,\n")
        assert choices(answer.text) == {}
        assert "so this payment may be recorded already" in answer.text
        assert done in answer.text
        claimed("199.00")


def test_ids_of_one_file_that_are_alike_do_not_stop_each_other(upload, claimed, sent):
    first, second = claimed("50.00"), claimed("50.00")
    answer = upload(f"{HEAD}1000123,50.00,{first}\n10001234,50.00,{second}\n")
    assert sent(answer) == [("good", "2 deposits confirmed: ¥100.00")]


def test_an_order_that_was_completed_with_another_amount_meanwhile_stops_nothing(upload, claimed, flask, sent):
    first, second, other = claimed("199.00"), claimed("199.00"), claimed("55.00")
    answer = upload(f"{HEAD}B1,199.00,{first}\nB2,55.00,{other}\n")
    flask("order", "paid", second, "--amount", "200.00", "--reference", "BANK-777")
    flask("order", "resolve", second, "--complete", "--yes")
    assert Order.get(Order.order_no == second).status == "completed"
    assert sent(answer) == [("good", "2 deposits confirmed: ¥254.00")]


def test_a_payment_that_another_operator_may_have_recorded_meanwhile_is_not_confirmed(upload, claimed, flask, sent):
    first, second, third, other = claimed("199.00"), claimed("199.00"), claimed("50.00"), claimed("88.00")
    answer = upload(f"{HEAD}B1,199.00,{first}\nB2,50.00,\nB3,88.00,{other}\n")
    flask("order", "paid", second)  # without its transaction ID
    recorded = flask("order", "paid", claimed("50.00"), "--reference", "B9")
    assert recorded.exit_code == 0, recorded.output
    refusal = (
        "An order of this amount was confirmed without or with a similar transaction ID after the upload. "
        "Upload the file again."
    )
    assert sent(answer) == [("good", "2 deposits confirmed: ¥138.00"), ("bad", f"{first}: {refusal}")]
    assert status(first, second, third, other) == ["paid", "completed", "completed", "completed"]


def test_the_transfer_of_a_returned_payout_is_recorded_and_no_payment_of_a_claim(upload, claimed, world, flask):
    claimed("50.00")
    payout = walks.sell_accepted(world, MANUAL)
    flask("order", "paid", payout, "--reference", "OUT-77001")
    flask("order", "returned", payout, "--yes", "--reference", "RET-99001")
    answer = upload(f"{HEAD}RET-99001,50.00,\n")
    assert counted(answer.text)["Recorded before"] == ("1", "50.00", "0.00")
    assert (payout in answer.text, 'name="row' in answer.text) == (True, False)


def test_a_statement_leaves_no_payer_behind_and_its_cells_are_text(upload, claimed, rows, caplog):
    order_no = claimed("88.00")
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    hostile = '"<script>alert(1)</script>\u202e"'
    rows_of_bank = (f"B1,88.00,{order_no},张三丰", "B2,5.00,张三丰付款,张三丰", f"B3,5.00,{hostile},")
    lines = "".join(f"{line},{now}\n" for line in rows_of_bank)
    shown = upload(f"流水号,收入金额,附言,对方户名,交易时间\n{lines}").text
    assert "张三丰付款" in shown
    assert not [text for text in ("<script>alert", "\u202e") if text in shown]
    assert not any("张三丰" in str(found) for found in rows().values())
    assert "张三丰" not in caplog.text
    entry = AuditEntry.get(AuditEntry.action == "match statement")
    assert (entry.about, entry.key, entry.detail) == ("channel", "3", "3 rows, 1 matched")


@pytest.mark.parametrize(
    ("content", "channel", "words"),
    [
        (HEAD + "B1,1.00,x\n", 2, "Choose the channel whose account the statement is for."),
        (HEAD + "B1,1.00,x\n", "", "Choose the channel whose account the statement is for."),
        (b"", MANUAL, "The file is empty."),
        (b"PK\x03\x04 workbook", MANUAL, "The Excel workbook is damaged."),
        (b"\x00" * 4_000, MANUAL, "neither a CSV file"),
    ],
    ids=["sandbox channel", "no channel", "empty", "workbook", "zeros"],
)
def test_a_file_that_can_not_be_used_is_refused_with_the_remedy(upload, content, channel, words):
    answer = upload(content, channel)
    assert (answer.status_code, words in answer.text) == (422, True)


OTHER = "某某银行,,,\n日期,凭证,金额,收/支,说明\n"


def of_columns(page):
    """The form that asks for the columns: its hidden names, and the roles that it suggests."""
    names = re.findall(r'name="name" value="([^"]*)"', page)
    return {"name": names, "role": re.findall(r'<option value="(\w+)" selected>(?!\d)', page), "header": "2"}


def test_the_columns_of_another_bank_are_asked_for_once_and_kept(upload, claimed):
    order_no = claimed("88.00")
    today = f"{datetime.now(CHINA):%Y年%m月%d日 %H:%M:%S}"
    text = f"{OTHER}{today},N1,88.00,收入,{order_no}\n{today},N2,5.00,支出,手续费\n".encode()
    asked = upload(text)
    assert (asked.status_code, "Check the columns of this file." in asked.text) == (422, True)
    form = of_columns(asked.text)
    assert form["name"] == ["日期", "凭证", "金额", "收/支", "说明"]
    assert form.pop("role") == ["time", "ignored", "amount", "direction", "ignored"]

    refused = upload(text, role=["time", "ignored", "amount", "direction", "note"], **form)
    assert refused.status_code == 422
    assert "No column has the transaction ID. A statement needs one." in refused.text
    untimed = upload(text, role=["ignored", "reference", "amount", "direction", "note"], **form)
    assert "No column has the time of the payment. A statement needs one." in untimed.text
    assert of_columns(refused.text)["role"][4] == "note", "the choices stay"
    signed = upload(text, role=["time", "reference", "signed", "ignored", "note"], **form)
    assert "looks like a direction" in signed.text

    matched = upload(text, role=["time", "reference", "amount", "direction", "note"], **form)
    assert (matched.status_code, order_no in matched.text) == (200, True)
    known = upload(text)
    assert (known.status_code, "Columns: as you confirmed them" in known.text) == (200, True)
    assert upload(text, role=[], **form).status_code == 200, "without roles they stay"
    assert "Choose the content of each column." in upload(text, role=[], again="1", **form).text
    entry = AuditEntry.get(AuditEntry.action == "confirm columns")
    assert (entry.key, entry.detail) == ("3", "日期=time, 凭证=reference, 金额=amount, 收/支=direction, 说明=note")


def test_a_file_with_unknown_columns_is_chosen_once(upload, console, claimed):
    order_no = claimed("88.00")
    now, random = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}", Random(1)
    notes = [order_no, *(random.randbytes(45_000).hex() for _ in range(10))]  # a large file, even if compressed
    asked = upload(OTHER + "".join(f"{now},N{at},88.00,收入,{note}\n" for at, note in enumerate(notes)))
    assert ("bills.csv" in asked.text, 'type="file"' in asked.text) == (True, False)
    (form,) = [form for form in Shown(asked.text).forms if form.url.endswith("/claims/upload")]
    form |= {"header": "2", "name": of_columns(asked.text)["name"]}

    def send(*roles, **fields):
        data = form | {"role": list(roles)} | fields
        return console.post("/console/claims/upload", data=data, content_type="multipart/form-data")

    refused = send("ignored", "reference", "amount", "direction", "note")
    assert "No column has the time of the payment." in refused.text
    assert Shown(refused.text).fields["file-content"] == form["file-content"]
    matched = send("time", "reference", "amount", "direction", "note")
    assert (matched.status_code, order_no in matched.text) == (200, True)
    changed = send("time", **{"file-content": form["file-content"].swapcase()})
    assert (changed.status_code, "Choose a file." in changed.text) == (422, True)


def test_a_file_that_is_too_large_to_be_sent_again_by_the_page_is_chosen_again(upload, monkeypatch):
    monkeypatch.setattr(uploads, "MOST_HIDDEN", 100)
    asked = upload(f"{OTHER}2026-11-25,N1,88.00,收入,x\n".encode())
    assert ("Choose the file again" in asked.text, "file-content" in asked.text) == (True, False)


def test_columns_of_one_channel_are_asked_for_again_on_another(upload, flask):
    flask("channel", "add", "--category", "gateway_c", "--driver", "manual", "--name", "Second bank")
    row = StatementLayout.insert(
        channel=MANUAL, header='["a", "b", "c"]', roles='["time", "reference", "signed"]', who="anna", createtime=1
    )
    row.execute()
    text = b"a,b,c\n2026-11-25,N1,1.00\n"
    assert upload(text).status_code == 200
    other = Channel.get(Channel.name == "Second bank").id
    assert upload(text, other).status_code == 422


def test_exceptions_are_found_by_amount_transaction_id_and_order_number(page, world):
    first = walks.deposit_claimed_and_wrong(world)  # 99.00 for 100.00
    second = walks.deposit_claimed_and_paid_more(world)  # 101.00

    def listed(query):
        return {row["Order number"].split()[0] for row in page(f"exceptions/?{query}").rows}

    assert listed("flt_amount=99") == {first}
    assert listed("flt_amount=100") == {first, second}
    assert listed(f"search=BANK-{second}") == {second}
    assert listed(f"search={second[-9:]}") == {second}
    assert listed(f"search={first}") == {first}
    assert listed(f"search={first}&flt_state=all") == {first}
    assert listed(f"search={first}&flt_state=settled") == set()
    assert listed("search=BANK&flt_amount=101") == {second}


def test_confirming_without_a_transaction_id_says_what_it_costs(ask, claimed, page, flask, world):
    cost = "Without it, later statements cannot recognize"
    order_no = claimed("10.00")
    assert cost in Shown(ask("confirm", [order_no]).text).text
    assert cost not in Shown(ask("not-received", [order_no]).text).text
    assert cost in page(f"order/{order_no}").text
    assert cost not in page(f"order/{walks.sell_accepted(world, MANUAL)}").text
    told = "recorded without a transaction ID: later statements cannot recognize this payment"
    assert told in flask("order", "paid", order_no).stderr
    assert told not in flask("order", "paid", claimed("20.00"), "--reference", "BANK-1").stderr


def test_a_placeholder_is_not_a_transaction_id(claimed, refuses, ask, sent):
    order_no = claimed("10.00")
    for typed in ("-", "0", "00000000", "2.02611E+27", "无", "#REF!"):
        assert f"{typed} is not a transaction ID." in refuses("order", "paid", order_no, "--reference", typed)
        (told,) = sent(ask("confirm", [order_no]), **{f"reference-{order_no}": typed})
        assert "is not a transaction ID." in told[1]
    assert status(order_no) == ["paid"]


@pytest.mark.parametrize(
    ("days", "left", "becomes", "found"),
    [
        (0, "80.00", "completed", [("reversed", "8.00")]),
        (0, "0", "completed", [("reversed", "88.00")]),
        (1, "80.00", "confirmed", [("reversed", "8.00")]),
        (1, "0", "cancelled", []),
    ],
)
def test_money_that_a_bank_took_back_is_recorded_by_the_amount_that_is_left(
    claimed, flask, desk, order_details, days, left, becomes, found
):
    flask("channel", "set", MANUAL, "--settlement-days", days)
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    assert status(order_no) == ["confirmed" if days else "completed"]
    desk.act(order_no, "paid", reference="B1", amount=left)
    told = order_details(order_no)
    assert (told["status"], [(each["kind"], each["amount"]) for each in told["exceptions"]]) == (becomes, found)
    assert "already recorded" in flask("order", "paid", order_no, "--reference", "B1", "--amount", left).output


def test_an_amount_of_0_is_refused_without_a_recorded_payment(claimed, refuses, flask, world):
    order_no, withdrawal = claimed("88.00"), walks.sell_accepted(world, MANUAL)
    flask("order", "paid", withdrawal, "--reference", "B7")
    for number, reference in ((order_no, ""), (order_no, "B1"), (withdrawal, "B7")):
        refusal = refuses("order", "paid", number, "--reference", reference, "--amount", "0")
        assert "Enter its recorded transaction ID." in refusal
    assert status(order_no) == ["paid"]
