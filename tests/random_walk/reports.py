"""Random reports, decisions, restarts, restores and clock changes: ledger and channel agree after each step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, precondition, rule

from gateways import registry
from gateways.base import Driver, Notice, Report, State
from models.tables.ledger import AVAILABLE, CLEARING, COMMISSION, HELD
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    CONFIRMED,
    MONEY_IN,
    PENDING,
    REVERSED,
    UNKNOWN_OUTCOME,
    Order,
    PaymentException,
)
from models.tables.outbox import Callback
from models.tables.refund import Refund
from runtime import clock
from tests.backups import Backup
from tests.pages import CLAIM, FORM
from tests.random_walk.life import COST, Life, exceptions_of, is_spent, posted
from tests.upstreams.money_moves import Moves
from tests.upstreams.payout_moves import PAYOUTS

MANUAL, DAY = 3, 86_400
LEFT_ALONE = 3_600
SETTLED = ("credit", "refund", "complete", "cancel")
THEN = st.sampled_from(["", "", *SETTLED])  # an operator's immediate decision
FEN = st.sampled_from([10_000, 10_000, 12_000, 7_000])
AGAIN = ("order.credited", "order.refunded")
FEW = 2  # orders of a kind, so that many steps concern each
TELLING = st.sampled_from(["notice", "query", "query", "nothing"])


def reported(report: Report) -> int | None:
    """The amount that a report shows at the channel, in fen; None if it does not show it."""
    if report.state is State.RETURNED or (report.state is State.PAID and not report.amount):
        return None
    return report.amount if report.state is State.PAID else 0


class Reports(Life):
    """One service, one deposit channel and one payout channel of the driver, and the manual channel."""

    moves_class: ClassVar[type[Moves]]
    deposits: Bundle[str] = Bundle("deposits")
    withdrawals: Bundle[str] = Bundle("withdrawals")

    def __init__(self) -> None:
        super().__init__()
        self.server.clear()
        self.moves = self.moves_class(self.server)
        payouts: Any = PAYOUTS.get(self.moves.driver, PAYOUTS["trial"])
        self.payouts = payouts(self.server)
        self.told: dict[str, Report] = {}
        self.returned: dict[str, int] = {}
        self.paid: dict[str, int] = {}
        self.decided: set[str] = set()
        self.callback_ids: dict[tuple[str, str], str] = {}
        self.row_ids: dict[int, str] = {}
        self.promised: dict[str, float] = {}
        self.too_early: list[str] = []
        self.elapsed, self.backup = 0.0, None
        self.during: Any = None
        for driver in (registry.DRIVERS[self.moves.driver], registry.DRIVERS[self.payouts.driver]):
            for each in {*driver.__mro__[: driver.__mro__.index(Driver)], *driver.__subclasses__()}:
                self._listen(each)
        self.buys, self.sells = self._channel(self.moves), self._channel(self.payouts, "--auto-accept-max", "500")
        self._command("account", "add", "demo", "--card-number", "2088000000000009", "--real-name", "张三")
        self._command("merchant", "set", "demo", "--events", "credited,refunded")

    def _listen(self, driver: Any) -> None:
        """Record the last report that the service got about each order."""
        for name in ("query", "query_payout", "pay_out", "read_notice"):
            if name in vars(driver):
                listening = self._listening(vars(driver)[name], name == "pay_out")
                self.closing.enter_context(mock.patch.object(driver, name, listening))

    def _listening(self, call: Any, pays: bool) -> Any:
        def listening(driver: Any, about: Any) -> Any:
            if pays:
                # Recorded, because the service treats an error in a driver as an unknown outcome.
                self.too_early += [about.order_no] * (self.elapsed < self.promised.get(about.order_no, 0))
                if self.during:
                    self.during()
            heard = call(driver, about)
            order_no, report = (heard.order_no, heard.report) if isinstance(heard, Notice) else (about.order_no, heard)
            self._hear(order_no, report)
            return heard

        return listening

    def _hear(self, order_no: str, report: Report) -> None:
        order = Order.get_or_none(Order.order_no == order_no)
        if order is None or (order.is_buy and report.state in (State.OPEN, State.ABSENT)):
            return
        if not order.is_buy and report.state is State.ABSENT:
            return
        if self.told.get(order_no) == report:
            return  # an operator has already decided about this report
        self.told[order_no] = report
        self.returned[order_no] = max(self.returned.get(order_no, 0), report.returned)
        self.decided.discard(order_no)

    def _known(self) -> tuple[dict[str, Report], dict[str, int], set[str]]:
        return dict(self.told), dict(self.returned), set(self.decided)

    @contextmanager
    def _work(self) -> Iterator[Any]:
        self.before = self._known()
        with super()._work() as failed:
            yield failed

    def _lost(self) -> None:
        self.told, self.returned, self.decided = self.before

    # --- steps

    @initialize(days=st.sampled_from([0, 0, 1, 3]))
    def deposits_are_settled_after_some_days(self, days: int) -> None:
        self.days = days
        for channel in (self.buys, MANUAL):
            self._command("channel", "set", str(channel), "--settlement-days", str(days))

    @initialize(target=deposits)
    def a_deposit_waits(self) -> str:
        return self.a_deposit_is_placed()

    @initialize(target=withdrawals)
    def a_withdrawal_waits(self) -> str:
        return self.a_withdrawal_is_placed()

    def _channel(self, upstream: Any, *more: str) -> int:
        pairs = [part for name, value in upstream.config().items() for part in ("--config", f"{name}={value}")]
        new = ("channel", "add", "--category", "gateway_b", "--driver", upstream.driver, "--name", "Upstream")
        said = self._command(*new, *pairs, "--cost", COST, *more, "--json").stdout
        number = int(re.search(r'"id": (\d+)', said)[1])  # type: ignore[index]
        self._command("channel", "link", str(number), "demo")
        return number

    @precondition(lambda self: self._count_of(self.buys) < FEW)
    @rule(target=deposits)
    def a_deposit_is_placed(self) -> str:
        return str(self.api.buy("100.00", self.buys, paychannel_paymethod=self.moves.method).data["order_no"])

    @precondition(lambda self: self._count_of(MANUAL) < 1)
    @rule(target=deposits, claimed=st.booleans(), backed_up=st.booleans())
    def a_manual_deposit_is_placed(self, claimed: bool, backed_up: bool) -> str:
        order_no = str(self.api.buy("100.00", MANUAL).data["order_no"])
        if backed_up:
            self.a_backup_is_made()
            self._command("order", "paid", order_no)
        elif claimed:
            self.api.send("POST", CLAIM, f"order_no={order_no}".encode(), FORM)
        return order_no

    @precondition(lambda self: self._count_of(self.sells) < FEW)
    @rule(target=withdrawals)
    def a_withdrawal_is_placed(self) -> str:
        return str(self.api.sell("50.00", self.sells, paychannel_paymethod=self.payouts.method).data["order_no"])

    @staticmethod
    def _count_of(channel: int) -> int:
        return int(Order.select().where(Order.channel == channel).count())

    @rule(order_no=deposits, fen=FEN, late=st.booleans(), telling=TELLING, then=THEN)
    def the_payer_pays(self, order_no: str, fen: int, late: bool, telling: str, then: str) -> None:
        if self._manual(order_no):
            self._command("order", "paid", order_no, "--amount", f"{fen // 100}.00", "--reference", f"B{order_no}")
            return
        if late:
            self._pass(901)
        # A channel accepts no second payment under the number of one that it returned.
        if not self.moves.refunded(order_no):
            with self._if_there(order_no):
                self.moves.pay(order_no, fen)
                self.paid[order_no] = fen
                self._tell(order_no, telling)
                self._settle(order_no, then)

    @rule(order_no=deposits, part=st.sampled_from([1, 2]), telling=TELLING)
    def money_goes_back(self, order_no: str, part: int, telling: str) -> None:
        left = self.paid.get(order_no, 0) - self.moves.refunded(order_no)
        if left > 0 and order_no in self.told:  # the service had received the payment's report before
            fen = left // part
            self.moves.give_back(order_no, fen, left - fen)
            self._tell(order_no, telling)

    def _tell(self, order_no: str, how: str) -> None:
        """Report it to the service now, or let the service find out later."""
        if how == "notice" and not self._manual(order_no):
            with self._work() as failed:
                self.moves.notice(order_no).to(self.api.send, order_no)
            if failed.called:
                self._lost()
            self._sweep()  # a notice that may be outdated makes the service check the status at the next sweep
        elif how == "query":
            self._command("order", "ask", order_no)

    @rule(order_no=deposits | withdrawals)
    def the_operator_asks(self, order_no: str) -> None:
        self._command("order", "ask", order_no)

    @rule(order_no=withdrawals, paid=st.booleans(), then=THEN)
    def a_payout_ends(self, order_no: str, paid: bool, then: str) -> None:
        if self._exists(order_no) and self.payouts.has(order_no):
            self.payouts.end(order_no, paid)
            self._command("order", "ask", order_no)
            self._settle(order_no, then)

    @rule(order_no=withdrawals, late=st.booleans())
    def the_channel_gets_a_rejected_payout_after_all(self, order_no: str, late: bool) -> None:
        self._reject(order_no)
        order = Order.get_or_none(Order.order_no == order_no)
        if order is not None and order.status == CANCELLED:
            self.payouts.take(order_no)
            self._pass(3_601) if late else self._command("order", "ask", order_no)

    @rule(order_no=withdrawals)
    def the_operator_rejects(self, order_no: str) -> None:
        self._reject(order_no)

    def _reject(self, order_no: str) -> None:
        said = self._command("order", "reject", order_no, "--reason", "no").output
        if "not sent again for now" in said:
            self.promised[order_no] = self.elapsed + LEFT_ALONE

    @rule(order_no=deposits | withdrawals, how=st.sampled_from(SETTLED))
    def the_operator_settles(self, order_no: str, how: str) -> None:
        self._settle(order_no, how)

    def _settle(self, order_no: str, how: str) -> None:
        order = Order.get_or_none(Order.order_no == order_no)
        for exception in exceptions_of(order) if order and how else []:
            if exception.resolution is None:
                done = self._command(
                    *("order", "settle", order_no, f"--{how}", "--exception", str(exception.id)),
                    *(["--yes"] if how == "complete" else []),
                )
                if done.exit_code == 0:
                    self.decided.add(order_no)
                return

    @rule(seconds=st.sampled_from([1, 60, 900, 3_700, DAY]))
    def time_passes(self, seconds: int) -> None:
        self._pass(seconds)

    @rule(order_no=withdrawals, how=st.sampled_from(["complete", "cancel"]))
    def the_operator_settles_while_the_service_hands_over(self, order_no: str, how: str) -> None:
        self.during, self.failing = (lambda: self._settle(order_no, how)), ""
        self._pass(301)
        self.during = None

    @precondition(lambda self: self.payouts.faulty)
    @rule(order_no=withdrawals)
    def the_payout_channel_is_silent_for_a_day(self, order_no: str) -> None:
        self.payouts.fail(*["unheard"] * 3)
        self._pass(301)
        self._pass(DAY)
        self.payouts.platform.faults.clear()

    @precondition(lambda self: self.payouts.faulty and self._count_of(self.sells) < FEW)
    @rule(target=withdrawals, back=st.sampled_from([0, 0, 3_700, DAY]))
    def a_payout_is_lost_on_its_way_and_the_operator_rejects_it(self, back: int) -> str:
        order_no = self.a_withdrawal_is_placed()
        self._pass(1)  # it is approved
        self.payouts.fail(*["unheard"] * 2)
        self._pass(1)
        self.payouts.platform.faults.clear()
        self.clock.shift(46)
        self.elapsed += 46
        self._reject(order_no)
        self.the_clock_is_set_back(back)
        self._pass(60)
        return order_no

    @precondition(lambda self: hasattr(self.moves, "platform"))
    @rule()
    def the_deposit_channel_is_silent_for_nine_days(self) -> None:
        waiting = [order.id for order in Order.select().where(Order.status == CANCELLED, Order.due_at.is_null(False))]
        silent = [order for order in waiting if Order.get_by_id(order).channel_id == self.buys]
        self.moves.platform.faults.extend(["broken"] * 500)
        for _ in range(20):
            self._pass(DAY // 2)
        self.moves.platform.faults.clear()
        for order in silent:
            about = (PaymentException.order == order, PaymentException.kind == UNKNOWN_OUTCOME)
            assert PaymentException.select().where(*about).exists(), "silent to the end, without an exception"

    @rule(seconds=st.sampled_from([600, 3_700, DAY]))
    def the_clock_is_set_back(self, seconds: int) -> None:
        self.clock.shift(-seconds)
        self.restart()
        self._sweep()

    @rule()
    def a_backup_is_made(self) -> None:
        self.backup = Backup(self.instance, self.folder)
        self.restart()
        self.then = self._known()

    @precondition(lambda self: self.backup is not None)
    @rule()
    def the_backup_is_restored(self) -> None:
        ended = [order.id for order in Order.select().where(Order.channel == MANUAL, Order.status == "completed")]
        self.backup.restore()  # type: ignore[union-attr]
        self.backup = None
        self.told, self.returned, self.decided = self.then
        self.restart()
        waiting = [order.id for order in Order.select().where(Order.id.in_(ended), Order.status != CANCELLED)]
        for _ in range(3):
            self._pass(1_000)
        for order in Order.select().where(Order.id.in_(waiting)):
            assert order.status != CANCELLED, "a manual deposit that was completed after the backup was cancelled"
        self._command("db", "resume")

    # --- helpers

    def _pass(self, seconds: int) -> None:
        self.clock.shift(seconds)
        self.elapsed += seconds
        self._sweep()

    @staticmethod
    def _exists(order_no: str) -> bool:
        return Order.select().where(Order.order_no == order_no).exists()

    @staticmethod
    def _manual(order_no: str) -> bool:
        order = Order.get_or_none(Order.order_no == order_no)
        return order is None or order.channel_id == MANUAL

    def _if_there(self, order_no: str) -> ExitStack:
        """Allow that the channel does not have the deposit (any more)."""
        stack = ExitStack()
        stack.push(lambda kind, error, trace: kind is KeyError)
        return stack

    # --- invariants

    @invariant()
    def the_channel_s_money_is_in_the_books_or_in_an_exception(self) -> None:
        for order in Order.select().where(Order.order_no.in_(list(self.told))):
            report = self.told[order.order_no]
            (self._check_deposit if order.is_buy else self._check_withdrawal)(order, report)

    def _check_deposit(self, order: Order, report: Report) -> None:
        exceptions = exceptions_of(order)
        there = reported(report)
        unsized = [each for each in exceptions if not each.amount and each.kind in (*MONEY_IN, REVERSED)]
        # A refund may explain what is missing. After its failure, the status of the payment is checked.
        explains = (Refund.status != CANCELLED) | Refund.due_at.is_null(False)
        refunds = list(Refund.select().where(Refund.order == order, explains))
        if there is None or unsized:
            sent_back = any(each.kind in MONEY_IN and each.resolution == "refund" for each in exceptions)
            assert unsized or sent_back or refunds, (order.order_no, report)
            return
        if not report.returned:
            there = min(there, there + report.returned)
        credited = -posted(order, CLEARING, COMMISSION) + (order.received if order.status == CONFIRMED else 0)
        money = [each for each in exceptions if each.kind in MONEY_IN]
        least = credited + sum(each.amount for each in money if each.resolution is None)
        done = [each for each in refunds if each.status == COMPLETED]
        by_refund = {each.exception_id for each in done}
        going = sum(each.amount for each in refunds if each.status != COMPLETED)
        sent = sum(each.amount for each in done)
        sent += sum(each.amount for each in money if each.resolution == "refund" and each.id not in by_refund)
        gone = sum(each.amount for each in exceptions if each.kind == REVERSED)
        known = self.returned.get(order.order_no, 0)
        facts = (order.order_no, report, least, sent, gone, going)
        assert least - gone - going <= there <= least + sent + known, facts

    def _check_withdrawal(self, order: Order, report: Report) -> None:
        if order.order_no in self.decided or any(each.resolution is None for each in exceptions_of(order)):
            return
        held, spent = posted(order, HELD), is_spent(order)
        if report.state is State.PAID:
            assert spent, (order.order_no, report)
        elif report.state is State.FAILED:
            assert not spent, (order.order_no, report)
            assert held == 0, (order.order_no, report)
        elif order.status == CANCELLED:
            assert held > 0, (order.order_no, report)

    @invariant()
    def no_hold_is_returned_while_the_channel_has_the_payout(self) -> None:
        for order in Order.select().where(Order.order_type == 2, Order.status == CANCELLED):
            told = self.told.get(order.order_no)
            if told is None or told.state is not State.OPEN or order.order_no not in self.decided:
                continue
            still = any(each.resolution is None for each in exceptions_of(order)) or posted(order, AVAILABLE, HELD) < 0
            assert still, "an operator ended a payout that the channel has"

    @invariant()
    def somebody_waits_for_what_is_held(self) -> None:
        for order in Order.select().where(Order.order_type == 2, Order.status == CANCELLED, Order.due_at.is_null()):
            is_open = any(each.resolution is None for each in exceptions_of(order))
            assert is_open or posted(order, HELD) == 0, f"{order.order_no}: money is held without an open exception"

    @invariant()
    def no_step_is_later_than_it_can_be(self) -> None:
        now = clock.now()
        can_ask = (Order.channel != MANUAL) | (Order.status != PENDING)  # the others wait for their expiry
        for order in Order.select().where(Order.due_at.is_null(False), can_ask):
            longest = self.days * DAY if order.is_buy and order.status == CONFIRMED else DAY
            assert order.due_at <= now + longest, (order.order_no, order.status, order.due_at - now)

    @invariant()
    def nothing_is_handed_over_before_a_promise_ends(self) -> None:
        assert self.too_early == []

    @invariant()
    def each_event_keeps_its_callback_id(self) -> None:
        for row in Callback.select(Callback, Order).join(Order).where(Callback.type.not_in(AGAIN)):
            key = (row.order.order_no, row.type)
            assert self.callback_ids.setdefault(key, row.webhook_id) == row.webhook_id, key

    @invariant()
    def no_row_id_returns(self) -> None:
        for order in Order.select(Order.id, Order.order_no):
            assert self.row_ids.setdefault(order.id, order.order_no) == order.order_no
