"""After the upgrade of each release's database, its orders show the same texts as before, now by codes."""

import re
import shutil
import sqlite3
from contextlib import closing

import pytest

from models.db.base import database
from tests.blueprints.console.acting import Desk
from tests.support import ROOT

pytestmark = [pytest.mark.sqlite, pytest.mark.usefixtures("demo")]  # a release's database is its demo's

DATA = ROOT / "tests" / "data"
RELEASES = ("0.1.0", "0.2.0", "0.3.0")  # the later ones write codes
ORDER = "shop/2026-1004"  # every kept database has it
# The history that a release wrote: who, the sentence, and its present code.
WRITTEN = [
    ("merchant", "created", "created"),
    ("seed", "seeded", "seeded"),
    ("payer", "the payer says that it is paid", "claimed"),
    ("operator", "accepted", "accepted"),
    ("service", "accepted by rule", "accepted_by_rule"),
    ("operator", "marked paid", "marked_paid"),
    ("channel", "the channel was asked", "channel_asked"),
    ("service", "settled", "settled"),
    ("service", "expired", "expired"),
    ("service", "the settlement delay is over", "settlement_delay_over"),
    ("operator", "paid an amount that does not match", "wrong_amount_ended"),
    ("channel", "refused: 余额不足 100%", "refused"),
]
OWN_WORDS = [
    ("operator", "wrong card 卡号 100%(text)s"),
    ("operator", "refused: by the bank"),
    ("operator", "exception wrong_amount: see the e-mail"),
    ("operator", "exception paid_twice: refund"),  # no such exception was resolved so
    ("service", "exception reversed: failed although completed"),  # there is no such exception
    ("channel", "trade closed"),
    ("channel", ""),
    ("channel", "accepted"),
]
# Today's text of what a release wrote, where it differs.
TODAY = {
    "notice": "Channel notice",
    "created": "Order created",
    "seeded": "Order created",
    "the payer says that it is paid": "The payer says they paid",
    "accepted": "Approved",
    "accepted by rule": "Approved automatically",
    "marked paid": "Confirmed by an operator",
    "the channel was asked": "Status check",
    "settled": "Settled",
    "expired": "Expired",
    "the settlement delay is over": "Settlement delay ended",
    "paid an amount that does not match": "Paid a different amount",
    "refused: 余额不足 100%": "Rejected: 余额不足 100%",
    "paid after it was cancelled": "Paid after cancellation",
    "paid once more, under another number": "Paid again with another transaction ID",
    "paid after an operator had credited other money": "Paid after an operator credited other money",
    "paid out although cancelled": "Paid out at the channel. Order status: cancelled",
    "paid out an amount that does not match": "Paid out a different amount",
    "failed although completed": "Failed at the channel. Order status: completed",
}
# The kind of an exception, its detail, the code of that, its resolution.
RAISED = [
    ("wrong_amount", "paid an amount that does not match", "paid_other_amount", "refund"),
    ("wrong_amount", "paid an amount that does not match", "paid_other_amount", None),
    ("late_payment", "paid after it was cancelled", "paid_after_end", None),
    ("paid_twice", "paid once more, under another number", "paid_again", None),
    ("paid_twice", "paid after an operator had credited other money", "paid_after_credit", "credit"),
    ("payout_conflict", "paid out although cancelled", "payout_unexpected", None),
    ("payout_conflict", "paid out an amount that does not match", "payout_other_amount", None),
    ("reversed", "failed although completed", "payout_returned", None),
    ("reversed", "说不清", "text", None),
    ("unknown_outcome", "read timed out", "no_answer", None),
]


def today(text):
    """Today's text of a sentence of a release."""
    exception = re.fullmatch(r"exception (\w+): (.*)", text)
    return f"Exception {exception[1]}: {today(exception[2])}" if exception else TODAY.get(text, text)


@pytest.fixture(params=RELEASES)
def old(request, tmp_path):
    """The open database of a release; the instance folder of its service is next to it."""
    folder = tmp_path / "instance"
    folder.mkdir()
    shutil.copy(DATA / f"{request.param}.key", folder / "vault.key")
    with closing(sqlite3.connect(folder / "orders.sqlite", isolation_level=None)) as opened:
        opened.executescript((DATA / f"{request.param}.sql").read_text("utf-8"))
        yield opened


@pytest.fixture
def instance(old, tmp_path):
    """The instance folder of a service of that release."""
    return tmp_path / "instance"


@pytest.fixture
def order_no(old):
    """The number of the order to which the tests write."""
    return old.execute('SELECT order_no FROM "order" WHERE merchant_order_no = ?', (ORDER,)).fetchone()[0]


@pytest.fixture
def written(old):
    """`written(who, why)` writes a line of the order's history as that release did."""
    line = (
        'INSERT INTO history (order_id, "before", "after", who, why, at) '
        'SELECT id, status, status, ?, ?, createtime FROM "order" WHERE merchant_order_no = ?'
    )
    return lambda who, why: old.execute(line, (who, why, ORDER))


@pytest.fixture
def raised(old, written):
    """`raised(kind, detail, resolution)` opens an exception of the order as that release did, and resolves it."""
    row = (
        "INSERT INTO payment_exception (order_id, kind, amount, reference, detail, createtime, resolution, resolved_by,"
        " resolvedtime) SELECT id, ?, 100, ?, ?, createtime, ?, 'operator', createtime + 60"
        ' FROM "order" WHERE merchant_order_no = ?'
    )

    def write(kind, detail, resolution=None):
        number = f"R-{old.execute('SELECT COUNT(*) FROM payment_exception').fetchone()[0]}"
        old.execute(row, (kind, number, detail, resolution, ORDER))
        written("service", f"exception {kind}: {detail}")
        if resolution:
            written("operator", f"exception {kind}: {resolution}")

    return write


@pytest.fixture
def upgraded(old, request):
    """`upgraded()` upgrades the database."""

    def upgrade():
        old.close()
        assert request.getfixturevalue("flask")("db", "migrate").exit_code == 0

    return upgrade


def test_every_order_shows_the_same_sentences(old, upgraded, order_details):
    steps = 'SELECT order_no, why FROM history JOIN "order" ON "order".id = order_id ORDER BY history.id'
    causes = 'SELECT order_no, detail FROM payment_exception JOIN "order" ON "order".id = order_id'
    before, details = old.execute(steps).fetchall(), old.execute(causes).fetchall()
    upgraded()
    orders = {number: order_details(number) for number in {number for number, _ in before}}
    for number, told in orders.items():
        sentences = [today(why) for no, why in before if no == number]
        assert [line["why"] for line in told["history"]] == sentences
        assert [each["detail"] for each in told["exceptions"]] == [today(text) for no, text in details if no == number]
    codes = [line["code"] for told in orders.values() for line in told["history"] + told["exceptions"]]
    assert len(codes) > 200
    assert codes.count("text") == len([why for _, why in before if why == "unknown account"])


def test_sentences_of_a_release_get_their_codes_and_peoples_own_texts_are_unchanged(
    written, raised, upgraded, order_details, order_no
):
    raised("paid_twice", "paid once more, under another number", "credit")
    for who, why, *_ in (*WRITTEN, *OWN_WORDS):
        written(who, why)
    upgraded()
    lines = order_details(order_no)["history"][-len(WRITTEN + OWN_WORDS) :]
    assert [(line["who"], line["why"], line["code"]) for line in lines] == [
        *((who, today(why), code) for who, why, code in WRITTEN),
        *((who, why, "text") for who, why in OWN_WORDS),
    ]


def test_an_exception_names_the_line_that_opened_it(old, raised, upgraded, order_details, order_no):
    for kind, detail, _, resolution in RAISED:
        raised(kind, detail, resolution)
    raised("unknown_outcome", "read timed out")
    later = "UPDATE payment_exception SET detail = 'no route', createtime = createtime + 600 WHERE id = (SELECT MAX(id)"
    old.execute(f"{later} FROM payment_exception)")
    upgraded()
    told = order_details(order_no)
    *found, silent = told["exceptions"]
    assert [(each["kind"], each["detail"], each["code"], each["resolution"]) for each in found] == [
        (kind, today(detail), *others) for kind, detail, *others in RAISED
    ]
    assert silent["detail"] == "no route"
    assert told["history"][-1]["why"] == "Exception unknown_outcome: read timed out", "the line of the first silence"
    rows = database.execute_sql(
        "SELECT each.code = line.code, each.order_id = line.order_id, line.who FROM payment_exception AS each "
        "JOIN history AS line ON line.id = each.history_id"
    ).fetchall()
    assert len(rows) > len(RAISED)
    assert set(rows) == {(1, 1, "service")}


ENGLISH = (
    *("Wrong amount Paid a different amount", "Payout conflict Paid out at the channel. Order status: Cancelled"),
    *("The payer says they paid · payer", "wrong card 卡号 · operator", "resolved: Sent back operator"),
)
CHINESE = (
    *("金额不符 付款金额不符", "出款结果冲突 渠道显示已出款，订单状态：已取消"),
    *("付款人称已付款 · 付款人", "wrong card 卡号 · 操作员", "已处理：已退回付款人"),
)


def test_its_page_shows_each_exception_once_in_the_readers_language(written, raised, upgraded, order_no, request):
    raised("wrong_amount", "paid an amount that does not match", "refund")
    raised("payout_conflict", "paid out although cancelled")
    written("payer", "the payer says that it is paid")
    written("operator", "wrong card 卡号")
    upgraded()
    desk = Desk(request.getfixturevalue("sign_in"))
    for language, first, next_part, texts in (
        ("en", "Timeline", "Postings", ENGLISH),
        ("zh", "时间线", "记账", CHINESE),
    ):
        desk.client.get(f"/console/language/{language}?to=/console/")
        shown = desk.order(order_no).text
        timeline = shown[shown.index(first) :].partition(next_part)[0]
        assert [timeline.count(text) for text in texts] == [1] * len(texts), timeline
