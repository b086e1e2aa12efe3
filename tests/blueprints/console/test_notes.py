"""Operators' notes on orders: for the next shift, and for nobody outside the console."""

from models.tables.operator import AuditEntry
from models.tables.order import InternalNote
from models.tables.outbox import Callback
from runtime import clock
from runtime.clock import in_china
from tests.blueprints.console.acting import Desk, flashed, token_of
from tests.support import completed

NOTE = "Ask 王五 tomorrow."
SCRIPT = "<script>alert(1)</script>"


def write(client, order_no, text):
    """The message after a note was sent."""
    form = {"csrf_token": token_of(client), "text": text}
    answer = client.post(f"/console/order/{order_no}/note", data=form)
    assert answer.status_code == 303
    return flashed(client.get(answer.headers["Location"]).text)


def test_the_newest_note_is_at_the_top_and_the_earlier_ones_are_in_the_timeline(api, console, desk):
    order_no = completed(api)
    assert write(console, order_no, NOTE) == ("good", "Note saved.")
    write(console, order_no, f"second line:\r\n{SCRIPT}")
    shown = desk.order(order_no)
    top = shown.text[: shown.text.index("Timeline")]
    assert f"Note second line: {SCRIPT} operator demo" in top
    assert ("1 earlier note" in top, NOTE in top) == (True, False)
    timeline = shown.text[shown.text.index("Timeline") :]
    assert (NOTE in timeline, "second line:" in timeline) == (True, False)
    assert timeline.index(NOTE) < timeline.rindex("Note · operator demo")
    assert SCRIPT not in shown.html


def test_the_list_and_the_search_mark_an_order_with_a_note(api, console, page):
    order_no, other = completed(api), completed(api)
    write(console, order_no, NOTE)
    marked = {row["Order number"].split()[0]: "Note" in row["Status"] for row in page("orders/").rows}
    assert (marked[order_no], marked[other]) == (True, False)
    assert "Note" in page(f"search?q={order_no[-8:]}").text


def test_the_next_shift_lists_the_orders_with_a_note(api, console, page):
    first, second, _ = completed(api), completed(api), completed(api)
    for order_no in (first, second, first):
        write(console, order_no, NOTE)
    listed = page("orders/?flt_note=yes")
    assert [row["Order number"].split()[0] for row in listed.rows] == [second, first]
    assert "2 total" in listed.text
    assert [len(page(f"orders/?flt_note=yes&{more}").rows) for more in (f"search={first}", "flt_type=sell")] == [1, 0]


def test_a_viewer_reads_notes_and_writes_none(api, console, sign_in):
    order_no = completed(api)
    write(console, order_no, NOTE)
    viewer = Desk(sign_in, "viewer")
    assert NOTE in viewer.order(order_no).text
    assert "Add note" not in viewer.order(order_no).text
    form = {"csrf_token": token_of(viewer.client), "text": "x"}
    assert viewer.client.post(f"/console/order/{order_no}/note", data=form).status_code == 403
    assert InternalNote.select().count() == 1


def test_a_note_has_up_to_500_characters_of_text(api, console):
    order_no = completed(api)
    for text in ("", " \n ", "x" * 501, "a\x00b", "a\u202eb"):
        assert write(console, order_no, text)[0] == "bad", repr(text)
    assert not InternalNote.select().exists()
    assert write(console, order_no, "汉" * 500)[0] == "good"


def test_the_audit_log_has_the_writer_and_not_the_text(api, console):
    order_no = completed(api)
    write(console, order_no, NOTE)
    entry = AuditEntry.select().order_by(AuditEntry.id.desc()).get()
    assert (entry.who, entry.action, entry.key, entry.detail) == ("demo", "write note", order_no, "")


def test_the_command_writes_a_note_and_order_show_has_it(api, flask, flask_json, refuses, desk):
    order_no = completed(api)
    flask("order", "note", order_no, NOTE)
    (note,) = flask_json("order", "show", order_no)["notes"]
    assert (note["who"], note["text"]) == ("operator", NOTE)
    assert NOTE in flask("order", "show", order_no).output
    assert NOTE in desk.order(order_no).text
    assert "at most 500 characters" in refuses("order", "note", order_no, "x" * 501)


def test_merchants_and_payers_never_see_a_note(api, console, http, flask):
    order_no = api.buy().data["order_no"]
    write(console, order_no, NOTE)
    page = http("GET", f"/addons/paychannel/pay/index?order_no={order_no}").text
    api.play(order_no, "success")
    seen = (page, api.detail(order_no=order_no).data, api.call("orderQueryList", {}).data)
    bodies = [each.body for each in Callback.select()]
    statement = flask("merchant", "statement", "demo", f"{in_china(clock.now()):%Y-%m}", "--csv", "-").output
    assert NOTE not in f"{seen} {bodies} {statement}"
