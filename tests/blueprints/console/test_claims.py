"""The list of claims, deciding on many of them at once, and matching them with an uploaded statement."""

import io
import re
from datetime import datetime

import pytest

from models.tables.channel import Channel
from models.tables.ledger import Posting
from models.tables.operator import AuditEntry
from models.tables.order import Order
from models.tables.statement_layout import StatementLayout
from runtime.clock import CHINA
from services.operations import bulk
from tests.blueprints.console import acting
from tests.blueprints.console.acting import Forms, main_form, token_of
from tests.services import walks

MANUAL = 3


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


def messages(client, answer):
    """The messages after a form, as (category, text)."""
    assert answer.status_code == 303, answer.text
    return acting.messages(client.get(answer.headers["Location"]).text)


@pytest.fixture
def ask(console):
    """`ask("confirm", [numbers])`: the confirmation page of a bulk action."""

    def opened(action, numbers, client=console):
        return client.get(f"/console/claims/{action}", query_string={"order_no": numbers})

    return opened


@pytest.fixture
def upload(console, page):
    """`upload(text, channel=3)`: the response to an uploaded statement."""

    def sent(content, channel=MANUAL, client=console):
        raw = content if isinstance(content, bytes) else timed(content).encode()
        token = token_of(client)
        data = {"csrf_token": token, "channel": str(channel), "file": (io.BytesIO(raw), "bills.csv")}
        return client.post("/console/claims/upload", data=data, content_type="multipart/form-data")

    return sent


def timed(text):
    """The statement with the present time on lines that end before their time."""
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    return "".join(f"{line},{now}\n" if line.count(",") == 2 else f"{line}\n" for line in text.splitlines())


def status(order_no):
    return Order.get(Order.order_no == order_no).status


def credits(order_no):
    return Posting.select().join(Order).where(Order.order_no == order_no, Posting.purpose == "credit").count()


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


def test_a_viewer_sees_the_list_without_actions(page, viewer, claimed, ask):
    order_no = claimed("10.00")
    shown = page("claims/", client=viewer)
    assert order_no in shown.text
    assert "Confirm received" not in shown.text
    assert ask("confirm", [order_no], client=viewer).status_code == 403
    assert viewer.get("/console/claims/upload").status_code == 403


def test_claims_are_confirmed_together_after_count_and_total(console, ask, claimed):
    numbers = [claimed("10.00"), claimed("20.50")]
    answer = ask("confirm", numbers)
    shown = Forms(answer.text).text
    assert "Deposits 2 Total ¥30.50" in shown
    assert "Available +30.32" in shown
    assert "Channel clearing -30.50" in shown
    assert "order.completed" in shown
    url, fields = main_form(answer.text)
    data = fields | {f"reference-{numbers[0]}": "BANK-1"}
    assert messages(console, console.post(url, data=data)) == [("good", "2 deposits confirmed: ¥30.50")]
    assert [status(each) for each in numbers] == ["completed", "completed"]
    assert Order.get(Order.order_no == numbers[0]).channel_reference == "BANK-1"
    entries = list(AuditEntry.select().where(AuditEntry.action.in_(("confirm claims", "mark paid"))))
    assert [each.key for each in entries] == ["", *sorted(numbers, key=numbers.index)]
    assert entries[0].detail == "2 deposits, 30.50"


def test_sending_the_confirmation_again_changes_nothing(console, ask, claimed):
    numbers = [claimed("10.00"), claimed("20.00")]
    url, fields = main_form(ask("confirm", numbers).text)
    assert messages(console, console.post(url, data=fields)) == [("good", "2 deposits confirmed: ¥30.00")]
    found = messages(console, console.post(url, data=fields))
    assert [category for category, _ in found] == ["bad", "bad"]
    assert all("Not possible in the current order status: Completed." in text for _, text in found)
    assert [credits(each) for each in numbers] == [1, 1]


def test_claims_are_reported_as_not_received_together(console, ask, claimed):
    numbers = [claimed("10.00"), claimed("20.00")]
    answer = ask("not-received", numbers)
    assert "No money moves in the ledger." in answer.text
    assert "order.cancelled" in answer.text
    url, fields = main_form(answer.text)
    data = fields | {"reason": "not in the account"}
    assert messages(console, console.post(url, data=data)) == [("good", "2 deposits cancelled: ¥30.00")]
    assert [status(each) for each in numbers] == ["cancelled", "cancelled"]
    assert "not in the account" in console.get(f"/console/order/{numbers[0]}").text


def test_a_claim_with_an_open_exception_is_left_out(ask, claimed, world):
    wrong, good = walks.deposit_claimed_and_wrong(world), claimed("20.00")
    for action in ("confirm", "not-received"):
        answer = ask(action, [wrong, good])
        assert "Deposits 1 Total ¥20.00" in Forms(answer.text).text
        assert "An exception of this order is open. Resolve it first." in answer.text
        assert f'value="{wrong}:' not in answer.text


def test_a_claim_that_changed_meanwhile_is_refused_and_the_others_are_done(console, ask, claimed, flask):
    changed, other = claimed("10.00"), claimed("20.00")
    url, fields = main_form(ask("confirm", [changed, other]).text)
    flask("order", "not-received", changed)
    found = messages(console, console.post(url, data=fields))
    assert found[0] == ("good", "1 deposit confirmed: ¥20.00")
    assert found[1] == ("bad", f"{changed}: Not possible in the current order status: Cancelled.")
    assert (status(changed), status(other)) == ("cancelled", "completed")


def test_a_claim_that_would_now_be_credited_later_is_refused(console, ask, claimed, flask):
    order_no = claimed("10.00")
    url, fields = main_form(ask("confirm", [order_no]).text)
    flask("channel", "set", 3, "--settlement-days", 1)
    changed = f"{order_no}: The order changed since this page was loaded. Reload and try again."
    assert messages(console, console.post(url, data=fields)) == [("bad", changed)]
    assert status(order_no) == "paid"


def test_one_transaction_id_confirms_one_claim(console, ask, claimed):
    numbers = [claimed("10.00"), claimed("10.00")]
    url, fields = main_form(ask("confirm", numbers).text)
    data = fields | {f"reference-{each}": "BANK-1" for each in numbers}
    found = messages(console, console.post(url, data=data))
    assert found[0] == ("good", "1 deposit confirmed: ¥10.00")
    assert "Transaction ID BANK-1 is already recorded" in found[1][1]
    assert [status(each) for each in numbers] == ["completed", "paid"]


def test_nothing_or_too_many_selected_is_refused(console, ask, page):
    for numbers in ([], [str(number) for number in range(201)]):
        answer = ask("confirm", numbers)
        assert answer.status_code == 302
        assert "Select 1 to 200 deposits." in console.get(answer.headers["Location"]).text
    token = token_of(console)
    answer = console.post("/console/claims/confirm", data={"csrf_token": token, "row": ["no seal", "1:2"]})
    assert answer.status_code == 303


def test_a_slow_bulk_action_leaves_the_rest_as_it_was(console, ask, claimed, monkeypatch):
    numbers = [claimed("10.00"), claimed("20.00")]
    url, fields = main_form(ask("confirm", numbers).text)
    monkeypatch.setattr(bulk, "LONGEST", -1)
    assert messages(console, console.post(url, data=fields)) == [("bad", "2 were left unchanged. Repeat them.")]
    assert [status(each) for each in numbers] == ["paid", "paid"]


HEAD = "流水号,收入金额,附言,交易时间\n"


def counted(shown):
    """The table of the rows of a file: each result with its number of rows, and the money in and out."""
    return {row["Result"]: (row["Rows"], row["In (¥)"], row["Out (¥)"]) for row in shown.rows if "Result" in row}


def test_a_statement_confirms_its_matches_with_their_transaction_ids(console, upload, claimed):
    first, second, third = claimed("100.00"), claimed("100.00"), claimed("88.00")
    statement = f"{HEAD}B1,100.00,{first}\nB2,100.00,\nB3,88.00,{third}\nB4,5.00,x\n"
    answer = upload(statement)
    shown = Forms(answer.text)
    assert counted(shown) == {
        "Matched": ("2", "188.00", "0.00"),
        "To decide": ("2", "105.00", "0.00"),
        "Recorded before": ("0", "0.00", "0.00"),
        "Not an incoming payment": ("0", "0.00", "0.00"),
        "File": ("4", "293.00", "0.00"),
    }
    assert "Deposits 2 Total ¥188.00" in shown.text
    assert second in shown.text  # to decide
    url, fields = main_form(answer.text)
    assert messages(console, console.post(url, data=fields)) == [("good", "2 deposits confirmed: ¥188.00")]
    assert [status(each) for each in (first, second, third)] == ["completed", "paid", "completed"]
    assert Order.get(Order.order_no == third).channel_reference == "B3"

    again = Forms(upload(statement).text)
    assert counted(again)["Recorded before"] == ("2", "188.00", "0.00")
    for reference, order_no in (("B1", first), ("B3", third)):
        assert re.search(rf"{reference} .*?{order_no}", again.text)
    found = messages(console, console.post(url, data=fields))
    assert {category for category, _ in found} == {"bad"}
    assert [credits(each) for each in (first, third)] == [1, 1]


def test_a_statement_leaves_no_payer_behind(upload, claimed, rows, caplog):
    order_no = claimed("88.00")
    now = f"{datetime.now(CHINA):%Y-%m-%d %H:%M:%S}"
    text = (
        f"流水号,收入金额,附言,对方户名,交易时间\nB1,88.00,{order_no},张三丰,{now}\nB2,5.00,张三丰付款,张三丰,{now}\n"
    )
    assert "张三丰付款" in upload(text).text
    assert not any("张三丰" in str(found) for found in rows().values())
    assert "张三丰" not in caplog.text
    entry = AuditEntry.get(AuditEntry.action == "match statement")
    assert (entry.about, entry.key, entry.detail) == ("channel", "3", "2 rows, 1 matched")


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
    assert answer.status_code == 422
    assert words in answer.text


def test_hostile_cells_are_shown_as_text(upload, claimed):
    claimed("88.00")
    answer = upload(HEAD + 'B1,5.00,"<script>alert(1)</script>\u202e"\n')
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "\u202e" not in answer.text


OTHER = "某某银行,,,\n日期,凭证,金额,收/支,说明\n"


def of_columns(page):
    """The form that asks for the columns: its hidden names, and the roles that it suggests."""
    names = re.findall(r'name="name" value="([^"]*)"', page)
    return {"name": names, "role": re.findall(r'<option value="(\w+)" selected>(?!\d)', page), "header": "2"}


def test_the_columns_of_another_bank_are_asked_for_once_and_kept(console, page, upload, claimed):
    order_no = claimed("88.00")
    today = f"{datetime.now(CHINA):%Y年%m月%d日 %H:%M:%S}"
    text = f"{OTHER}{today},N1,88.00,收入,{order_no}\n{today},N2,5.00,支出,手续费\n"
    asked = upload(text)
    assert asked.status_code == 422
    assert "Choose the content of each column." in asked.text
    form = of_columns(asked.text)
    assert form["name"] == ["日期", "凭证", "金额", "收/支", "说明"]
    assert form["role"] == ["time", "ignored", "amount", "direction", "ignored"]

    def answered(roles):
        token = token_of(console)
        data = {
            "csrf_token": token,
            "channel": "3",
            "file": (io.BytesIO(text.encode()), "x.csv"),
            **form,
            "role": roles,
        }
        return console.post("/console/claims/upload", data=data, content_type="multipart/form-data")

    refused = answered(["time", "ignored", "amount", "direction", "note"])
    assert refused.status_code == 422
    assert "Choose the columns of the transaction ID and of the time." in refused.text
    assert of_columns(refused.text)["role"][4] == "note", "the choices stay"
    assert "looks like a direction" in answered(["time", "reference", "signed", "ignored", "note"]).text

    matched = answered(["time", "reference", "amount", "direction", "note"])
    assert matched.status_code == 200
    assert order_no in matched.text
    known = upload(text)
    assert known.status_code == 200, "the columns are known now"
    assert "Columns as in: Confirmed columns" in known.text
    del form["role"]
    again = answered([])
    assert again.status_code == 200, "without roles they stay"
    form["again"] = "1"
    assert "Choose the content of each column." in answered([]).text
    entry = AuditEntry.get(AuditEntry.action == "confirm columns")
    assert (entry.key, entry.detail) == ("3", "日期=time, 凭证=reference, 金额=amount, 收/支=direction, 说明=note")


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


def test_a_viewer_can_not_state_columns(viewer, page):
    token = page("claims/", client=viewer).fields.get("csrf_token", "")
    answer = viewer.post("/console/claims/upload", data={"csrf_token": token, "role": ["time"]})
    assert answer.status_code in (400, 403)
    assert StatementLayout.select().count() == 0


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
    assert cost in Forms(ask("confirm", [order_no]).text).text
    assert cost not in Forms(ask("not-received", [order_no]).text).text
    assert cost in page(f"order/{order_no}").text
    assert cost not in page(f"order/{walks.sell_accepted(world, MANUAL)}").text
    told = "recorded without a transaction ID: later statements cannot recognize this payment"
    assert told in flask("order", "paid", order_no).stderr
    assert told not in flask("order", "paid", claimed("20.00"), "--reference", "BANK-1").stderr


@pytest.mark.parametrize("typed", ["-", "0", "00000000", "2.02611E+27", "无", "#REF!"])
def test_a_placeholder_is_not_a_transaction_id(claimed, refuses, console, ask, typed):
    order_no = claimed("10.00")
    assert f"{typed} is not a transaction ID." in refuses("order", "paid", order_no, "--reference", typed)
    url, fields = main_form(ask("confirm", [order_no]).text)
    (told,) = messages(console, console.post(url, data=fields | {f"reference-{order_no}": typed}))
    assert "is not a transaction ID." in told[1]
    assert status(order_no) == "paid"


@pytest.mark.parametrize(("left", "returned"), [("80.00", "8.00"), ("0", "88.00")])
@pytest.mark.parametrize("days", [0, 1])
def test_money_that_a_bank_took_back_is_recorded_by_the_amount_that_is_left(
    claimed, flask, world, left, returned, days
):
    flask("channel", "set", MANUAL, "--settlement-days", days)
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    assert status(order_no) == ("confirmed" if days else "completed")
    flask("order", "paid", order_no, "--reference", "B1", "--amount", left)
    found = [(each["kind"], each["amount"]) for each in world.flask_json("order", "show", order_no)["exceptions"]]
    if days and left == "0":
        assert (status(order_no), found) == ("cancelled", [])
    else:
        assert found == [("reversed", returned)]
    assert "already recorded" in flask("order", "paid", order_no, "--reference", "B1", "--amount", left).output


def test_an_amount_of_0_is_refused_without_a_recorded_payment(claimed, refuses, flask, world):
    order_no, withdrawal = claimed("88.00"), walks.sell_accepted(world, MANUAL)
    flask("order", "paid", withdrawal, "--reference", "B7")
    for number, reference in ((order_no, ""), (order_no, "B1"), (withdrawal, "B7")):
        assert "Enter its recorded transaction ID." in refuses(
            "order", "paid", number, "--reference", reference, "--amount", "0"
        )
    assert status(order_no) == "paid"


def test_the_console_records_that_a_bank_took_back_all_of_a_payment(claimed, flask, desk, exceptions):
    order_no = claimed("88.00")
    flask("order", "paid", order_no, "--reference", "B1")
    desk.act(order_no, "paid", reference="B1", amount="0")
    assert exceptions() == {order_no: "reversed"}
