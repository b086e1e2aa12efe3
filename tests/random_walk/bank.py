"""The random life of a manual channel: its bank account, the bank's files, and two operators who read them.

The bank is a model: it alone knows which payments it received and which transfers it made. The service knows what
statements, results and operators have told it, and each told payment and transfer must be in its books or an exception.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, initialize, invariant, multiple, rule

from models.tables.ledger import Posting
from models.tables.operator import AuditEntry
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PAID,
    PAYOUT_CONFLICT,
    PENDING,
    REVERSED,
    Order,
    PaymentException,
)
from models.tables.payout_batch import FAILED, SENT, PayoutBatch, PayoutBatchLine
from runtime.clock import CHINA
from services.orders.verdict import COMPLETE, CREDIT
from services.security import operators
from services.security.audit import HERE, NOT_DONE
from tests.bank_files import results
from tests.bank_files.layouts import LAYOUTS, write
from tests.bank_files.lives import Movement
from tests.bank_files.results import Payout, Result
from tests.blueprints.console.acting import Desk, signed_in
from tests.pages import CLAIM, FORM
from tests.random_walk.life import Life, exceptions_of, is_spent, order_of
from tests.upstreams.money_moves import yuan

MANUAL, CARD = 3, "6222020000000000017"
SMALL, LARGE = "20.00", "60.00"  # payouts; the large one needs a second operator
OPERATORS = st.sampled_from(["demo", "second"])
CHOICE = st.integers(0, 1_000)
TOLD_BACK = ("退票", "退汇", "退款成功", "支付成功，已退回")
REFUSED = tuple(word for word in results.WORDS[results.REFUSED] if word != "退票")


@dataclass
class Payment:
    """A payment that the account received, and what the service was told about it."""

    reference: str
    order_no: str  # the deposit that its payer means
    fen: int
    at: datetime
    note: str
    is_gone: bool = False  # the bank took it back
    told: str = ""  # the deposit that it is recorded for
    numbered: bool = True  # it is recorded under its transaction ID

    def movements(self, layout: str, how: int) -> list[Movement]:
        """Return what a statement has about it."""
        facts: dict[str, Any] = {"at": self.at, "note": self.note, "reference": self.reference}
        facts |= {"outcomes": frozenset(), "account": CARD}
        if not self.is_gone:
            return [Movement("payment", amount=self.fen, **facts)]
        if LAYOUTS[layout].has_status:
            return [Movement("returned", amount=self.fen, status="returned", **facts)]
        number = self.reference if how % 2 else f"9{self.reference}"
        again = facts | {"reference": number, "kind": "refund"}
        return [Movement("payment", amount=self.fen, **facts), Movement("refund", amount=-self.fen, **again)]


@dataclass
class Transfer:
    """A transfer that the bank made or will make, and what the service was told about it."""

    code: str  # of its line in a file, or "" if an operator made it
    order_no: str
    reference: str  # the bank's number, or "" if the bank states none
    state: str = "sent"  # then paid or failed, and a paid one may come back
    told: str = ""  # paid, failed or back
    line_result: str | None = None
    is_marked: bool = False  # an operator recorded it under the bank's number before the bank's file did

    @property
    def word(self) -> tuple[str, ...]:
        """The words by which the bank's file may state it."""
        return {
            "sent": results.WORDS["on its way"],
            "paid": results.WORDS[results.PAID],
            "failed": REFUSED,
            "back": TOLD_BACK,
        }[self.state]


Page = Callable[[], object]  # confirms a page that an operator has open


class BankWalk(Life):
    """A manual channel, its bank, two operators with open pages, and decisions about exceptions."""

    orders: Bundle[str] = Bundle("orders")
    pages: Bundle[Page] = Bundle("pages")
    settings = {"second_operator_above": 5_000, "claim_expiry": 200_000}

    def __init__(self) -> None:
        self.numbers = 0
        super().__init__()
        operators.add("second", "second-password")

    @rule()
    def restart(self) -> None:
        super().restart()
        self.desks: dict[str, Desk] = {}

    @rule(page=consumes(pages))
    def a_page_that_was_left_open_is_confirmed(self, page: Page) -> None:
        page()

    @rule(
        order_no=orders,
        how=st.sampled_from(["--credit", "--refund", "--complete", "--cancel"]),
        which=CHOICE,
    )
    def an_operator_resolves_an_exception(self, order_no: str, how: str, which: int) -> None:
        if able := [each for each in exceptions_of(order_of(order_no)) if each.is_open]:
            exception = able[which % len(able)]
            more = {"--complete": ["--yes"], "--refund": ["--reference", f"BACK{order_no}"]}.get(how, [])
            self._command("order", "resolve", order_no, how, "--exception", str(exception.id), *more)

    @rule(seconds=st.sampled_from([1, 900, 90_000]))
    def time_passes_and_what_is_due_is_done(self, seconds: int) -> None:
        self.clock.shift(seconds)
        self._sweep()

    @invariant()
    def each_decision_moves_money_once(self) -> None:
        resolved = PaymentException.select().join(Order)
        credits = resolved.where(PaymentException.resolution == CREDIT).count()
        out_after_all = (PaymentException.kind == PAYOUT_CONFLICT) & (Order.status == CANCELLED)
        paid = resolved.where(out_after_all, PaymentException.resolution == COMPLETE)
        by_decision = Posting.purpose.startswith("exception ") | Posting.purpose.startswith("return ")
        # A cancelled withdrawal that was paid twice is deducted once.
        least, most = len({each.order_id for each in paid}), paid.count()
        assert least <= Posting.select().where(by_decision).count() - credits <= most

    # --- the operators' pages

    def _desk(self, who: str) -> Desk:
        if who not in self.desks:
            self.desks[who] = Desk(lambda name: signed_in(self.app, name), who)
        return self.desks[who]

    def _post(self, who: str, path: str, **fields: Any) -> Any:
        desk = self._desk(who)
        token = desk.see("claims/upload").fields["csrf_token"]
        return desk.client.post(f"/console/{path}", data={"csrf_token": token, **fields})

    @staticmethod
    def _confirmed(page: Page, later: bool) -> Any:
        """Confirm a page now, or leave it open: a step returns the pages that it left open."""
        if later:
            return page
        page()
        return multiple()

    def _act(self, order_no: str, who: str, key: str, **given: str) -> bool:
        """Perform an action of the order's page; False if the page does not offer it, or it was refused."""
        desk = self._desk(who)
        form = desk.order(order_no).actions.get(key)
        return form is not None and desk.send(form, **{name: given[name] for name in given})[0] != "bad"

    def _number(self) -> str:
        self.numbers += 1
        return f"8826{self.numbers:012d}"


class ClaimsWalk(BankWalk):
    """Payers whose payments an operator records, or confirms by statements."""

    references: Bundle[str] = Bundle("references")

    def __init__(self) -> None:
        self.payments: dict[str, Payment] = {}
        self.told: dict[tuple[str, str], int] = {}  # by deposit and transaction ID: the amount told last, in fen
        super().__init__()

    @initialize(target=BankWalk.orders, amounts=st.lists(st.sampled_from(["10.00", "20.00"]), min_size=1, max_size=2))
    def claims_wait_for_their_payments(self, amounts: list[str]) -> Any:
        return multiple(*(self.a_deposit_is_placed(amount, "", True) for amount in amounts))

    @rule(
        target=BankWalk.orders,
        amount=st.sampled_from(["10.00", "10.00", "20.00"]),
        number=st.sampled_from(["", "", "SHOP-0001", "SHOP-0002"]),
        claimed=st.booleans(),
    )
    def a_deposit_is_placed(self, amount: str, number: str, claimed: bool) -> str:
        order_no = str(self.api.buy(amount, MANUAL, merchant_order_no=number).data["order_no"])
        if claimed:
            self.the_payer_claims(order_no)
        return order_no

    @rule(order_no=BankWalk.orders)
    def the_payer_claims(self, order_no: str) -> None:
        self.api.send("POST", CLAIM, f"order_no={order_no}".encode(), FORM)

    @rule(
        target=references,
        order_no=BankWalk.orders,
        fen=st.sampled_from([0, 0, 0, 1_000, 2_000]),
        note=st.sampled_from(["own", "merchant's", "", ""]),
    )
    def the_payer_pays(self, order_no: str, fen: int, note: str) -> str:
        """The bank receives money; the service does not know it yet. `fen` is 0 for the order's amount."""
        order = order_of(order_no)
        note = {"own": order_no, "merchant's": order.merchant_order_no}.get(note, "")
        paid = Payment(self._number(), order_no, fen or order.amount, datetime.now(CHINA).replace(tzinfo=None), note)
        self.payments[paid.reference] = paid
        return paid.reference

    @rule(target=BankWalk.orders, recorded=st.booleans())
    def one_of_several_equal_claims_is_paid(self, recorded: bool) -> Any:
        """The note names none of them, and an operator may record the payment without its transaction ID."""
        numbers = [self.a_deposit_is_placed("10.00", "", True) for _ in range(3)]
        reference = self.the_payer_pays(numbers[0], 0, "")
        if recorded:
            self.an_operator_records_a_payment(reference, False, 0)
        return multiple(*numbers)

    @rule(reference=references)
    def the_bank_takes_a_payment_back(self, reference: str) -> None:
        self.payments[reference].is_gone = True

    @rule(reference=references, numbered=st.sampled_from([True, True, False]), slip=st.sampled_from([0, 0, 0, 100]))
    def an_operator_records_a_payment(self, reference: str, numbered: bool, slip: int) -> None:
        """An operator reads the account and records what is there now; `slip` is a mistyped amount, in fen."""
        paid = self.payments[reference]
        order_no = paid.told or paid.order_no
        numbered = paid.numbered if paid.told else numbered
        if not numbered and (paid.is_gone or slip):
            return
        fen = 0 if paid.is_gone else paid.fen + slip
        number = reference if numbered else ""
        said = self._command("order", "paid", order_no, "--reference", number, "--amount", yuan(fen))
        if said.exit_code == 0:
            paid.told, paid.numbered = order_no, numbered
            about = [each for each in exceptions_of(order_of(order_no)) if each.reference == number and each.is_open]
            # A reversal stays until it is resolved, also if its payment is confirmed again: the page may be an old one.
            is_reversed = any(each.kind == REVERSED for each in about)
            if not (is_reversed and "already recorded" in said.output and fen > self.told[order_no, number]):
                self.told[order_no, number] = fen

    @rule(order_no=BankWalk.orders)
    def an_operator_says_that_nothing_was_received(self, order_no: str) -> None:
        self._command("order", "not-received", order_no)

    @rule(days=st.sampled_from([0, 1]))
    def the_channel_gets_a_settlement_delay(self, days: int) -> None:
        self._command("channel", "set", str(MANUAL), "--settlement-days", str(days))

    @rule(
        target=BankWalk.pages,
        layout=st.sampled_from(["alipay-account", "wechat-csv", "cmb-company"]),
        newest=st.sampled_from([1, 2, 100]),
        who=OPERATORS,
        how=CHOICE,
        kept=st.booleans(),
        chooses=st.booleans(),
    )
    def a_statement_is_uploaded(self, layout: str, newest: int, who: str, how: int, kept: bool, chooses: bool) -> Any:
        """An operator confirms what the page matched, or also the deposits that the payers mean where it offers them.

        The page offers no deposit for a payment that is recorded, whatever the operator would choose.
        """
        shown = list(self.payments.values())[-newest:]
        movements = [each for paid in shown for each in paid.movements(layout, how)]
        if not movements:
            return multiple()
        content = write(movements, LAYOUTS[layout], Random(how))
        answer = self._post(who, "claims/upload", channel=str(MANUAL), file=(io.BytesIO(content), "bill.csv"))
        assert answer.status_code == 200, answer.text
        rows = [_row_of(value) for value in re.findall(r'name="row" value="([^"]+)"', answer.text)]
        offered = [_row_of(value) for value in re.findall(r'type="radio" name="row-\d+" value="([^"]+)"', answer.text)]
        for order_no, _, number in offered:
            paid, order = self.payments[number], order_of(order_no)
            assert not paid.told, f"{paid} is offered for {order_no}"
            assert not paid.is_gone, f"{paid} is offered for {order_no}"
            assert (order.status in (PENDING, PAID), order.amount) == (True, paid.fen), f"{order_no} for {paid}"
        chosen = [row for row in offered if chooses and self.payments[row[2]].order_no == row[0]]
        matched, recorded, decide, not_in = (
            {number for _, _, number in rows},
            *(
                set(re.findall(r'<span class="number"><bdi>(\d+)</bdi>', _section(answer.text, name)))
                for name in ("RECORDED", "TO_DECIDE", "NOT_MONEY_IN")
            ),
        )
        for paid in shown:
            number = paid.reference
            there = 0 if paid.is_gone else paid.fen
            told = self.told[paid.told, number] if paid.told and paid.numbered else 0
            is_listed = bool({number, f"9{number}"} & decide)
            assert number in matched | recorded | decide | not_in, f"{paid} is not on the page"
            assert number not in recorded or told or (paid.told and paid.numbered), f"{paid} is not recorded"
            assert told == there or is_listed or (number in matched and not told), f"{paid}: nobody has to decide"
            assert number not in matched or not paid.is_gone, f"{paid} is matched"
        if not rows and not chosen:
            return multiple()
        return self._confirmed(lambda: self._confirm_claims(who, rows + chosen), later=kept)

    def _confirm_claims(self, who: str, rows: list[tuple[str, str, str]]) -> None:
        before = {order_no: order_of(order_no).status for order_no, _, _ in rows}
        assert self._post(who, "claims/confirm", row=[":".join(row) for row in rows]).status_code == 303
        for order_no, _, reference in rows:
            order = order_of(order_no)
            if before[order.order_no] not in (PENDING, PAID) or order.status not in (CONFIRMED, COMPLETED):
                continue
            paid = self.payments[reference]
            assert not paid.told, f"{reference} is recorded for {paid.told} and credits {order.order_no}"
            assert (order.channel_reference, order.amount) == (reference, paid.fen)
            paid.told, paid.numbered = order.order_no, True
            self.told[order.order_no, reference] = paid.fen

    # --- invariants

    @invariant()
    def each_payment_that_was_told_is_in_the_books_once(self) -> None:
        """Told = credited + confirmed and not credited yet + in open exceptions + sent back - reversed."""
        for order in Order.select().where(Order.order_type == 1):
            exceptions = exceptions_of(order)
            own = {order.channel_reference} if order.status in (CONFIRMED, COMPLETED) else set()
            numbers = own | {each.reference for each in exceptions}
            for number in numbers | {number for order_no, number in self.told if order_no == order.order_no}:
                about = [each for each in exceptions if each.reference == number]
                money = [each for each in about if each.kind in MONEY_IN]
                least = order.received if number in own else 0
                least += sum(each.amount for each in money if each.resolution in (None, "credit"))
                sent = sum(each.amount for each in money if each.resolution == "refund")
                gone = sum(each.amount for each in about if each.kind == REVERSED)
                there = self.told.get((order.order_no, number), 0)
                assert least - gone <= there <= least - gone + sent, (order.order_no, number, there, least, gone, sent)

    @invariant()
    def no_payment_is_recorded_for_two_deposits(self) -> None:
        recorded: dict[str, set[str]] = {}
        for order in Order.select().where(Order.order_type == 1):
            numbers = {each.reference for each in exceptions_of(order)} | {order.channel_reference}
            for number in numbers - {""}:
                recorded.setdefault(number, set()).add(order.order_no)
        assert all(len(orders) == 1 for orders in recorded.values()), recorded


class PayoutsWalk(BankWalk):
    """Payouts that operators send by files or one by one, and what the bank makes of them."""

    def __init__(self) -> None:
        self.transfers: list[Transfer] = []
        super().__init__()

    @initialize(
        target=BankWalk.orders, amounts=st.lists(st.sampled_from([SMALL, SMALL, LARGE]), min_size=1, max_size=3)
    )
    def payouts_wait_to_be_sent(self, amounts: list[str]) -> Any:
        return multiple(*(self.a_withdrawal_is_placed(amount, True) for amount in amounts))

    @rule(target=BankWalk.orders, amount=st.sampled_from([SMALL, SMALL, LARGE]), approved=st.booleans())
    def a_withdrawal_is_placed(self, amount: str, approved: bool) -> Any:
        answer = self.api.sell(amount, MANUAL)
        assert answer.code in (1, 40901), answer
        if answer.code != 1:
            return multiple()
        order_no = str(answer.data["order_no"])
        if approved:
            self._command("order", "approve", order_no)
        return order_no

    @rule(
        order_no=BankWalk.orders,
        who=OPERATORS,
        key=st.sampled_from(["approve", "second-approval", "second-approval", "withdraw-request", "reject"]),
    )
    def an_operator_acts(self, order_no: str, who: str, key: str) -> None:
        self._act(order_no, who, key, reason="no", in_file="1")

    @rule(
        target=BankWalk.pages,
        who=OPERATORS,
        template=st.sampled_from(["generic", "alipay", "icbc", "cmb"]),
        most=st.sampled_from([1, 2, 100]),
        then=st.sampled_from(["give", "give", "give", "download", "", "keep"]),
        numbered=st.booleans(),
    )
    def a_bank_file_is_created(self, who: str, template: str, most: int, then: str, numbered: bool) -> Any:
        found = Order.select(Order.order_no).where(Order.order_type == 2, Order.status == CONFIRMED).order_by(Order.id)
        wanted = "&".join(f"order_no={order_no}" for (order_no,) in found.tuples())
        shown = self._desk(who).see(f"payouts/batch?{wanted}").html
        numbers = re.findall(r'name="order_no" value="(\d+)"', shown)[:most]
        if not numbers:
            return multiple()

        def create() -> None:
            self._post(who, "payouts/batch", order_no=numbers, template=template)

        if then == "keep":
            return create
        create()
        if then:
            self._download(who, 0, then == "give", numbered)
        return multiple()

    @rule(who=OPERATORS, which=CHOICE, given=st.sampled_from([True, True, False]), numbered=st.booleans())
    def a_file_is_downloaded(self, who: str, which: int, given: bool, numbered: bool) -> None:
        self._download(who, which, given, numbered)

    def _download(self, who: str, which: int, given: bool, numbered: bool) -> None:
        """Download a file, for the first time or again; a bank that is `given` it makes each transfer once."""
        if (batch := self._batch(which)) is None:
            return
        answer = self._post(who, f"batch/{batch.id}/file")
        if answer.status_code != 200 or not given:
            return
        codes = set(re.findall(rf"P{batch.id}-\d+", answer.data.decode("gb18030", "ignore")))
        for line in PayoutBatchLine.select().where(PayoutBatchLine.batch == batch).order_by(PayoutBatchLine.line):
            if line.code in codes and all(each.code != line.code for each in self.transfers):
                number = self._number() if numbered else ""
                self.transfers.append(Transfer(line.code, line.order.order_no, number))

    @rule(which=CHOICE, fails=st.booleans())
    def the_bank_works(self, which: int, fails: bool) -> None:
        """A transfer is paid or fails, or a paid one comes back."""
        if able := [each for each in self.transfers if each.state in ("sent", "paid")]:
            transfer = able[which % len(able)]
            failed = "failed" if transfer.state == "sent" else "back"
            transfer.state = failed if fails else "paid"

    @rule(
        target=BankWalk.pages,
        who=OPERATORS,
        which=CHOICE,
        how=CHOICE,
        work=st.sampled_from(["", "paid", "paid", "failed", "back"]),
        others=st.booleans(),
        kept=st.sampled_from([False, False, True]),
    )
    def a_result_is_uploaded(self, who: str, which: int, how: int, work: str, others: bool, kept: bool) -> Any:
        """The bank's file has the transfers of a batch, or also those of another one; the bank works on them before."""
        if (batch := self._batch(which)) is None:
            return multiple()
        rng = Random(how)
        for each in self.transfers:
            if each.code and each.state == ("paid" if work == "back" else "sent") and work and rng.random() < 0.8:
                each.state = work
        stated = {each.code: each for each in self.transfers if each.code.startswith(f"P{batch.id}-")}
        foreign = [each for each in self.transfers if each.code and each.code not in stated and others]
        rows = [_row(each, rng) for each in (*stated.values(), *foreign)]
        if not stated:
            return multiple()
        content = results.write(rows, batch.template, rng)
        answer = self._post(who, f"batch/{batch.id}/upload", file=(io.BytesIO(content), "result.csv"))
        assert answer.status_code == 200, answer.text
        states = {code: each.state for code, each in stated.items()}
        for code in re.findall(r"(P\d+-\d+) <a", _effect(answer.text, "Already recorded")):
            ended = _line(code).result
            assert (ended == SENT) is (states[code] == "paid"), f"{code}: {states[code]}, but recorded as {ended}"
        confirmed = [html.unescape(row) for row in re.findall(r'name="row" value="([^"]*)"', answer.text)]
        if not confirmed:
            return multiple()

        def record() -> None:
            assert self._post(who, f"batch/{batch.id}/result/upload", row=confirmed).status_code == 200

        return self._confirmed(record, later=kept)

    @rule(who=OPERATORS, which=CHOICE)
    def a_file_is_discarded(self, who: str, which: int) -> None:
        """An operator takes a file back, and is wrong if the bank has it."""
        if (batch := self._batch(which)) is not None:
            self._post(who, f"batch/{batch.id}/discard", not_given="1")

    @rule(
        order_no=BankWalk.orders,
        who=OPERATORS,
        numbered=st.booleans(),
        alone=st.booleans(),
        amount=st.sampled_from(["", "", "", "30.00"]),
    )
    def an_operator_pays_a_payout(self, order_no: str, who: str, numbered: bool, alone: bool, amount: str) -> None:
        """An operator makes a transfer at the bank and marks the payout as paid out, whatever files say."""
        number = self._number() if numbered else ""
        made = Transfer("", order_no, number, "paid")
        if alone or not numbered:
            more = ["--amount", amount] if amount else []
            said = self._command("order", "paid", order_no, "--reference", number, "--in-bank-file", *more)
            if said.exit_code or "already recorded" in said.output:
                return
            made.told = "paid"
        elif not self._act(order_no, who, "paid", reference=number, in_file="1", amount=amount):
            return
        self.transfers.append(made)

    @rule(which=CHOICE)
    def an_operator_marks_what_the_bank_paid_by_a_file(self, which: int) -> None:
        """An operator sees a transfer of a file in the account and marks the payout, before its result is imported."""
        if paid := [each for each in self.transfers if each.state == "paid" and each.code and each.reference]:
            seen = paid[which % len(paid)]
            said = self._command("order", "paid", seen.order_no, "--reference", seen.reference, "--in-bank-file")
            if said.exit_code == 0 and not seen.told:
                seen.told, seen.is_marked = "paid", True

    @rule(order_no=BankWalk.orders)
    def an_operator_reports_that_the_payout_came_back(self, order_no: str) -> None:
        order = order_of(order_no)
        own = [each for each in self.transfers if each.order_no == order_no and _number_of(each) is not None]
        own = [each for each in own if _number_of(each) == order.channel_reference and each.told == "paid"]
        if own and own[0].state == "back" and self._returned(order_no):
            own[0].told = "back"

    def _returned(self, order_no: str) -> bool:
        said = self._command("order", "returned", order_no, "--reference", f"RET{order_no}", "--yes")
        return bool(said.exit_code == 0)

    @staticmethod
    def _batch(which: int) -> PayoutBatch | None:
        every = list(PayoutBatch.select().order_by(PayoutBatch.id.desc()).limit(3))
        return every[which % len(every)] if every else None

    # --- invariants

    @invariant()
    def each_transfer_that_was_told_is_a_payout_or_an_exception(self) -> None:
        for each in self.transfers:
            self._hear(each)
        for order in Order.select().where(Order.order_type == 2):
            exceptions, spent = exceptions_of(order), is_spent(order)
            made = [each for each in self.transfers if each.order_no == order.order_no]
            for each in made:
                number = _number_of(each)
                own = spent and order.channel_reference == number
                conflicts = [e for e in exceptions if e.kind == PAYOUT_CONFLICT and e.reference == number]
                returns = [e for e in exceptions if e.kind == REVERSED and e.reference == number]
                if each.told == "paid":
                    known = own or any(e.resolution != "failed" for e in conflicts)
                    assert known, f"{each} was paid, and {order.order_no} does not show it"
                if each.told == "back":
                    assert not own or returns, f"{each} came back, and {order.order_no} does not show it"
                    # Without numbers, the exception may be about another transfer of the order.
                    other = any(_number_of(one) == number and one.told == "paid" for one in made)
                    assert other or not any(e.is_open for e in conflicts), f"{each} came back, its exception is open"
            if spent:
                explained = [e for e in exceptions if e.kind == REVERSED or e.resolution == "complete"]
                assert explained or any(each.told == "paid" for each in made), f"{order.order_no}: nothing was paid"

    @invariant()
    def a_large_payout_in_the_console_takes_two_operators(self) -> None:
        large = Order.select(Order.order_no).where(Order.amount > self.settings["second_operator_above"])
        about = AuditEntry.select().where(AuditEntry.key.in_(large), AuditEntry.who != HERE.name)
        entries = list(about.order_by(AuditEntry.key, AuditEntry.id))
        asked: dict[str, set[str]] = {}
        for each, following in zip_longest(entries, entries[1:]):
            is_next = following and (following.key, following.action) == (each.key, each.action)
            if NOT_DONE in (each.detail[: len(NOT_DONE)], following.detail[: len(NOT_DONE)] if is_next else ""):
                continue
            if each.action == "request payout":
                asked.setdefault(each.key, set()).add(each.who)
            assert each.action not in ("accept order", "mark paid"), f"{each.who} paid {each.key} alone"
            if each.action == "approve payout":
                assert asked.get(each.key, set()) - {each.who}, f"{each.who} approved the own request for {each.key}"

    @staticmethod
    def _hear(transfer: Transfer) -> None:
        """Note what the service was told: by the line of a file, or under the transfer's number."""
        if not transfer.code:
            order = order_of(transfer.order_no)
            numbers = {each.reference for each in exceptions_of(order)} | {order.channel_reference}
            if not transfer.told and transfer.reference and transfer.reference in numbers:
                transfer.told = "paid"
            return
        result = _line(transfer.code).result
        if result != transfer.line_result:
            transfer.line_result = result
            if result == SENT and not (transfer.told == "back" and transfer.state == "back"):
                transfer.told = "paid"
            elif result == FAILED:
                transfer.told = "back" if transfer.told in ("paid", "back") else "failed"


def _row(transfer: Transfer, rng: Random) -> Result:
    order = order_of(transfer.order_no)
    payout = Payout(transfer.code, transfer.order_no, "张三", CARD, order.amount)
    is_out = transfer.state in ("paid", "back")
    return Result("", payout, "", rng.choice(transfer.word), transfer.reference if is_out else "")


def _number_of(transfer: Transfer) -> str | None:
    """The number under which the service recorded a transfer; None if it did not."""
    if not transfer.code or transfer.is_marked:
        return transfer.reference
    reference: str | None = _line(transfer.code).reference
    return reference


def _line(code: str) -> PayoutBatchLine:
    batch, line = code.removeprefix("P").split("-")
    return PayoutBatchLine.get(PayoutBatchLine.batch == int(batch), PayoutBatchLine.line == int(line))


def _row_of(value: str) -> tuple[str, str, str]:
    """The order number, the seal and the transaction ID of a row of the form."""
    order_no, seal, reference = html.unescape(value).split(":", 2)
    return order_no, seal, reference


def _section(text: str, name: str) -> str:
    found = re.search(rf'<section[^>]*aria-labelledby="{name}">(.*?)</section>', text, re.S)
    return found[1] if found else ""


def _effect(text: str, label: str) -> str:
    found = re.search(rf"<summary>{label}: \d+</summary>(.*?)</details>", text, re.S)
    return found[1] if found else ""
