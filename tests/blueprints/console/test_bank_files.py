"""Statements and result files as banks write them, from random lives: the right orders move, the rest is listed.

`BANK_FILE_SEEDS=20` runs each of these tests on more lives.
"""

import html
import io
import os
import re
from dataclasses import replace
from datetime import timedelta, timezone
from functools import cache
from random import Random

import pytest

from models.tables.order import Order
from models.tables.payout_batch import PayoutBatchLine
from tests.bank_files import corruptions, lives, results
from tests.bank_files.layouts import LAYOUTS, as_csv, table, write
from tests.bank_files.lives import DECIDE, MATCHED, NOT_IN, RECORDED
from tests.blueprints.console.acting import main_form, token_of
from tests.blueprints.console.reading import Shown, counted
from tests.services import walks

MANUAL, CARD = 3, "6222020000000000017"
CHINA = timezone(timedelta(hours=8))
SEEDS = range(int(os.environ.get("BANK_FILE_SEEDS", "1")))


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000}


@pytest.fixture
def place(app, world, other, flask, time_machine):
    """`place(life)`: place its orders shortly after midnight in China; return their numbers by key."""

    def placed(life):
        time_machine.move_to(lives.PLACED.replace(tzinfo=CHINA))
        flask("channel", "link", MANUAL, "other")
        apis, numbers = {"demo": world.api, "other": other}, {}
        for each in life.deposits:
            more = {"merchant_order_no": each.number} if each.number else {}
            answer = apis[each.merchant].buy(lives_yuan(each.amount), MANUAL, **more)
            number = numbers[each.key] = answer.data["order_no"]
            if each.state != "pending":
                walks.claim(world, number)
            if each.state == "cancelled":
                flask("order", "not-received", number)
            elif each.state.startswith("completed"):
                flask("order", "paid", number, *(("--reference", each.reference) if each.reference else ()))
        for key, amount in life.withdrawals.items():
            numbers[key] = world.api.sell(lives_yuan(amount), MANUAL).data["order_no"]
        time_machine.move_to(lives.READ.replace(tzinfo=CHINA))
        return numbers

    return placed


def lives_yuan(fen):
    return f"{fen // 100}.{fen % 100:02d}"


def pays(movements, numbers, may=None):
    """Return the orders that the movements (or those at the indices `may`) pay, by number: their movements."""
    found = {}
    for index, each in enumerate(movements):
        if each.pays and (may is None or index in may):
            found.setdefault(numbers[each.pays], []).append(each)
    return found


def told(movements):
    """Return what movements are about, for a message."""
    return "; ".join(f"{m.story}, {m.amount} fen ({m.amount_as}), ID {m.reference_as}, {m.note!r}" for m in movements)


@pytest.fixture
def read(sign_in):
    """`read(content)`: the service's page about a statement, after the operator confirmed the roles of its columns."""

    def send(client, form, content):
        form = form | {"file": (io.BytesIO(content), "bills.csv")}
        return client.post("/console/claims/upload", data=form, content_type="multipart/form-data")

    @cache
    def session():
        client = sign_in("demo")
        return client, token_of(client)

    def shown(content, layout=None):
        client, token = session()
        form = {"csrf_token": token, "channel": str(MANUAL)}
        shown = Read(client, send(client, form, content))
        for choose in (Read.row_of_names, Read.meaning) if layout else ():
            if shown.asks:
                shown = Read(client, send(client, form | choose(shown, layout), content))
        return shown

    return shown


class Read:
    """The page about a statement: each row of the file with its result.

    `is_read` is false if the file was refused or its columns are unknown. `orders` are the references by the numbers
    of the orders that a confirmation would complete. `choices` are the deposits that an operator can choose for a
    payment, each as its field, its value, its number and the payment's reference.
    """

    SECTIONS = {"TO_DECIDE": DECIDE, "RECORDED": RECORDED, "NOT_MONEY_IN": NOT_IN}

    def __init__(self, client, answer):
        self.client = client
        self.status, self.text = answer.status_code, answer.get_data(as_text=True)
        self.is_read = self.status == 200 and "Matched payments" in self.text
        told = re.search(r'role="alert">([^<]*)<', self.text)
        self.problem = html.unescape(told[1]) if told else self.text[:300]
        self.asks = "Columns of the statement" in self.text
        self.orders = dict(map(self._chosen, re.findall(r'name="row" value="([^"]+)"', self.text)))
        radios = re.findall(r'type="radio" name="(row-\d+)" value="([^"]+)"', self.text)
        self.choices = [(name, html.unescape(value), *self._chosen(value)) for name, value in radios]

    @staticmethod
    def _chosen(value):
        order_no, _, reference = html.unescape(value).split(":", 2)
        return order_no, reference

    def row_of_names(self, layout):
        """Return the form's fields by which an operator chooses the row that names the columns."""
        rows = re.findall(r'<option value="(\d+)"[^>]*>\d+: ([^<]*)', self.text)
        first = " | ".join(filter(None, layout.header))[:40]
        at = next((at for at, row in rows if html.unescape(row).startswith(first)), rows[0][0])
        return self.meaning(layout) | {"header": at}

    def meaning(self, layout):
        """Return the form's fields by which an operator says what each column has."""
        page = Shown(self.text)
        names = [html.unescape(name) for name in re.findall(r'name="name" value="([^"]*)"', self.text)]
        roles = [layout.means.get(title, "ignored") for title in page.column("Column")]
        return {"header": page.fields["header"], "name": names, "role": roles}

    def confirm(self, **chosen):
        """Confirm what the page shows, and the deposits that an operator chose, by field."""
        url, fields = main_form(self.text, **chosen)
        assert self.client.post(url, data=fields).status_code == 303

    def rows(self):
        """Return the rows of the file from its top, as the page lists them: (line, outcome, order_no or empty)."""
        found = [
            (int(row["Payment"].split()[-1]), MATCHED, row["Order number"].split()[0])
            for row in Shown(self.text).rows
            if "Matched by" in row
        ]
        for name, content in re.findall(r'<section[^>]*aria-labelledby="(\w+)">(.*?)</section>', self.text, re.S):
            lines = re.findall(r'<span class="quiet">Line (\d+)</span>\s*<p>', content)
            found += [(int(line), self.SECTIONS[name], "") for line in lines if name in self.SECTIONS]
        return sorted(found)

    def sums(self):
        """Return the table of counts and sums by result: (rows, fen in, fen out)."""

        def fen(text):
            return int(text.replace(",", "").replace(".", ""))

        return {name: (int(rows), fen(came), fen(went)) for name, (rows, came, went) in counted(self.text).items()}


def faults(shown, movements, numbers, layout):
    """Return what is wrong on the page of a statement, as texts."""
    if not shown.is_read:
        return [f"{layout.name}: not read: {shown.problem}"] if layout.has_id else []
    found, paid = [], pays(movements, numbers)
    for order_no, reference in shown.orders.items():
        ways = [each for each in paid.get(order_no, ()) if MATCHED in layout.outcomes(each)]
        if not ways:
            near = paid.get(order_no) or [m for m in movements if m.reference == reference]
            found.append(f"{layout.name}: confirms {order_no}, which it may not: {told(near)}")
        elif layout.has_id and reference not in {"", *(each.reference for each in ways if not each.placeholder)}:
            found.append(f"{layout.name}: {order_no} would have the transaction ID {reference!r}: {told(ways)}")
    for order_no, ways in paid.items():
        if any(layout.outcomes(each) == {MATCHED} for each in ways) and order_no not in shown.orders:
            found.append(f"{layout.name}: does not confirm {order_no}: {told(ways)}")
    return found


def offered(shown, movements, numbers):
    """Return which choices the page offers although their payments are no new ones of the amount, as texts."""
    orders = {order.order_no: order for order in Order.select()}
    ended = {no for no, order in orders.items() if order.status not in ("pending", "paid")}
    recorded = {order.channel_reference for order in orders.values()}
    found = []
    for field, _, order_no, reference in shown.choices:
        ways = [m for m in movements if m.reference == reference and m.amount == orders[order_no].amount]
        new = [m for m in ways if (m.status, m.currency) == (lives.OK, "CNY") and m.at >= lives.PLACED]
        new = [m for m in new if numbers.get(m.pays) not in ended]
        if not new or reference in recorded or order_no in ended:
            found.append(f"{field}: offers {order_no} for {reference!r}: {told(ways)}")
    return found


def miscounted(shown, movements, numbers, layout):
    """Return which rows of the file the page does not list once, or as something else than they are."""
    if not shown.is_read:
        return []
    rows, at = table(movements, layout, Random(0))
    below = [row for row in range(at[0], len(rows)) if any(str(cell).strip() for cell in rows[row])]
    listed, sums = shown.rows(), shown.sums()
    lines = [line for line, _, _ in listed]
    found = []
    if len(set(lines)) != len(lines) or len(lines) != len(below):
        return [f"{layout.name}: {len(below)} rows, but the page lists the lines {lines}"]
    for row, (line, outcome, order_no) in zip(below, listed, strict=True):
        if row not in at:
            if outcome == MATCHED:
                found.append(f"{layout.name}: line {line}, which is no movement, is {outcome}")
            continue
        movement = movements[at.index(row)]
        if outcome not in layout.outcomes(movement):
            found.append(f"{layout.name}: line {line} is {outcome}: {told([movement])}")
        if order_no and order_no != numbers.get(movement.pays):
            found.append(f"{layout.name}: line {line} pays {order_no}: {told([movement])}")
    whole = sums.pop("File")
    if tuple(map(sum, zip(*sums.values(), strict=True))) != whole or whole[0] != len(lines):
        found.append(f"{layout.name}: sums that do not add up: {sums}, {whole}")
    for sign, shown_sum in ((1, whole[1]), (-1, whole[2])):
        amounts = [(each, each.amount * sign) for each in movements if each.amount * sign > 0]
        every = sum(fen for _, fen in amounts)
        certain = sum(fen for each, fen in amounts if each.amount_as in lives.USUAL_AMOUNTS and each.currency == "CNY")
        if not certain <= shown_sum <= every:
            found.append(f"{layout.name}: {shown_sum} fen in total, not {certain} to {every}")
    return found


@pytest.mark.parametrize("life", [*map(lives.life, SEEDS), lives.plain(7)], ids=[*map(str, SEEDS), "plain"])
def test_a_life_reads_the_same_in_each_layout(life, place, read):
    numbers = place(life)
    found = []
    for layout in LAYOUTS.values():
        movements = [each for each in life.named(numbers) if layout.writes(each)]
        shown = read(write(movements, layout, Random(7)), layout)
        found += faults(shown, movements, numbers, layout) + miscounted(shown, movements, numbers, layout)
        found += [f"{layout.name}: {each}" for each in offered(shown, movements, numbers)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["alipay-account", "wechat-xlsx", "boc-company"])
def test_confirming_a_statement_completes_what_the_page_showed_and_once(name, place, read):
    layout, life = LAYOUTS[name], lives.life(50)
    numbers = place(life)
    movements = [each for each in life.named(numbers) if layout.writes(each)]
    content = write(movements, layout, Random(50))
    before = {order.order_no: order.status for order in Order.select()}
    shown = read(content, layout)
    payers = {numbers[each.pays]: each.reference for each in movements if each.pays}
    chosen = {no: (field, value) for field, value, no, number in shown.choices if payers.get(no) == number}
    assert chosen, "no deposit can be chosen for its payment"
    shown.confirm(**dict(chosen.values()))
    confirmed = shown.orders | {no: payers[no] for no in chosen}
    assert {order.order_no: order.status for order in Order.select()} == before | dict.fromkeys(confirmed, "completed")
    for order_no, reference in confirmed.items():
        assert Order.get(Order.order_no == order_no).channel_reference == reference
    # Read again, in this layout and in another one, the statement confirms nothing that its payments did not pay.
    for again in (layout, LAYOUTS["cmb-company"]):
        movements = [each for each in life.named(numbers) if again.writes(each)]
        shown = read(write(movements, again, Random(51)), again)
        assert not shown.orders.keys() - pays(movements, numbers).keys()
        assert not offered(shown, movements, numbers)
    assert not read(content, layout).orders


def test_values_that_end_in_tabs_are_split_at_the_commas(place, read):
    layout, life = LAYOUTS["icbc-person"], lives.plain(7)
    shown = read(write(life.named(place(life)), layout, Random(7)))
    assert " | ".join(layout.header)[:60] in shown.text


def test_a_note_in_quotes_behind_a_backtick_names_its_order(place, read):
    layout, life = LAYOUTS["wechat-funds"], lives.plain(7)
    numbers = place(life)
    one, two = [each for each in life.named(numbers) if each.note][:2]
    # The note names another order, and the amount is that of the second one.
    row = replace(one, amount=two.amount, note=f'他说"已付",\n单号{numbers[one.pays]}')
    content = as_csv(table([row], layout, Random(1))[0], "utf-16", "\t", Random(1))
    shown = read(content, layout)
    assert shown.is_read, shown.problem
    assert not shown.orders
    assert numbers[one.pays] in shown.text


@pytest.mark.parametrize("name", ["cmb-company", "alipay-account", "ccb-company"])
def test_a_later_reversal_of_a_confirmed_payment_names_its_order(name, place, read):
    layout, life = LAYOUTS[name], lives.plain(9)
    numbers = place(life)
    movements = life.named(numbers)
    read(write(movements, layout, Random(9)), layout).confirm()
    back = [lives.taken_back(each) for each in movements[:2]]
    shown = read(write(back, layout, Random(9)), layout)
    assert shown.is_read, shown.problem
    assert not shown.orders
    for each in back:
        assert numbers[each.pays] in shown.text


@pytest.fixture
def confirms_damaged(place, read):
    """`confirms_damaged(group, every)`: what a share of the damaged statements would confirm although it may not."""

    def read_all(group, every):
        life = lives.plain(7)
        numbers = place(life)
        movements = life.named(numbers)
        found = []
        for each in corruptions.corruptions(movements, Random(7))[group][::every]:
            right = pays(movements, numbers, each.may)
            shown = read(each.content)
            found += [f"{each.name}: {wrong}" for wrong in offered(shown, movements, numbers)]
            for order_no, reference in shown.orders.items():
                if reference not in {way.reference for way in right.get(order_no, ())}:
                    found.append(f"{each.name}: confirms {order_no} with {reference!r}")
        return found

    return read_all


@pytest.mark.parametrize("group", ["cells", "rows", "bytes", "workbooks"])
class TestDamage:
    def test_a_damaged_statement_confirms_no_row_that_is_damaged(self, group, confirms_damaged):
        found = confirms_damaged(group, every=6)
        assert not found, "\n".join(found)

    def test_no_damage_to_a_statement_confirms_a_row(self, group, confirms_damaged, slow):
        found = confirms_damaged(group, every=1)
        assert not found, "\n".join(found)


@pytest.fixture
def batch(accepted, create):
    """`batch("icbc", amounts)`: the path of a new batch of approved payouts, and its lines as its file has them."""

    def made(template, amounts):
        numbers = accepted(*map(lives_yuan, amounts))
        path = create(numbers, template)
        number = path.rpartition("/")[2]
        lines = enumerate(zip(numbers, amounts, strict=True), 1)
        return path, [results.Payout(f"P{number}-{at}", no, "张三", CARD, fen) for at, (no, fen) in lines]

    return made


@pytest.fixture
def settle(upload, record):
    """`settle(path, content)`: upload a bank's result and confirm what the page shows."""

    def settled(path, content):
        shown = upload(path, content)
        if 'name="row"' in shown.text:
            assert record(path, shown).status_code == 200

    return settled


def ends(payouts):
    """Return the result of the payouts: paid, failed, or unclear while the batch still waits for the result."""
    words = {None: results.OPEN, "sent": results.PAID, "failed": results.REFUSED}
    found = {}
    for each in payouts:
        order = Order.get(Order.order_no == each.order_no)
        line = PayoutBatchLine.select().where(PayoutBatchLine.order == order).order_by(-PayoutBatchLine.id).get()
        found[each.code] = words[line.result]
        assert (order.status == "completed") is (line.result == "sent")
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("template", results.ADDED)
def test_a_banks_result_settles_exactly_the_lines_that_it_names(template, seed, batch, settle):
    rng = Random(seed)
    path, payouts = batch(template, rng.sample(range(1_000, 20_000), results.STORIES))
    _, others = batch(template, (777, 888))
    rows = results.results(payouts, others, rng)
    settle(path, results.write(rows, template, rng, workbook=template == "cmb"))
    became = ends([*payouts, *others])
    either = {results.EITHER: {results.PAID, results.OPEN}, results.UNPAID: {results.REFUSED, results.OPEN}}
    wrong = [
        f"{each.story} ({each.word}): {became[each.payout.code]}, not {each.outcome}"
        for each in rows
        if became[each.payout.code] not in either.get(each.outcome, {each.outcome})
    ]
    assert not wrong, "\n".join(wrong)
    assert {became[each.code] for each in others} == {results.OPEN}
    for each in rows:
        if became[each.payout.code] == results.PAID:
            stored = Order.get(Order.order_no == each.payout.order_no).channel_reference
            wanted = {"", each.payout.code} if each.outcome == results.EITHER else {each.reference}
            assert stored in wanted, each


@pytest.mark.parametrize("template", results.ADDED)
def test_the_result_of_another_batch_settles_nothing(template, batch, settle):
    rng = Random(5)
    amounts = (6_000, 7_000, 8_000)
    path, mine = batch(template, amounts)
    _, others = batch(template, amounts)
    rows = [results.Result("paid", each, results.PAID, "成功", f"88{at}") for at, each in enumerate(others)]
    settle(path, results.write(rows, template, rng))
    assert set(ends([*mine, *others]).values()) == {results.OPEN}


def test_a_damaged_result_settles_nothing_and_a_correct_one_each_line(batch, settle):
    path, payouts = batch("generic", (6_000, 7_000, 8_001))
    rows = [results.Result("paid", each, results.PAID, "成功", f"88{at}") for at, each in enumerate(payouts)]
    for name in results.DAMAGE:
        settle(path, results.correct(rows, name))
        assert set(ends(payouts).values()) == {results.OPEN}, name
    settle(path, results.correct(rows))
    assert set(ends(payouts).values()) == {results.PAID}
