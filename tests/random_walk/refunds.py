"""Random refunds, whole and in parts, with silent channels, failures and restarts: no money goes back twice."""

from __future__ import annotations

from functools import partialmethod
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule
from peewee import fn

from gateways.base import ChannelRefused, ChannelUnknown, Payment, RefundRequest, Report, State
from models.tables.ledger import CLEARING, COMMISSION, LedgerAccount
from models.tables.merchant import AUTOMATIC, REFUND_FEES, REFUND_MODES, Merchant
from models.tables.order import CANCELLED, COMPLETED, CONFIRMED, PENDING, REVERSED, Order, PaymentException
from models.tables.refund import BALANCE, EXCEPTION, PLATFORM, UNCREDITED, Refund
from services.backups import after_restore
from services.deposits import settle as settle_deposit
from services.errors import ApiError, OperatorError
from services.merchants import cache
from services.orders import next_step
from services.refunds import approve, place, settle
from services.refunds.place import NotRefundable, Wanted
from tests.random_walk.life import STEPS, Crash, Life
from tests.trial_service import Trial

CHANNEL, FEN, DAY = 2, 10_000, 86_400
MOODS = ("success", "accept", "refuse", "lost", "unheard", "stuck", "low")
OF_REFUNDS = {
    "the refund": (Refund, "move_to"),
    "the refund's history": (settle.RefundHistory, "add"),
    "the refund's callback": (settle.outbox, "enqueue_refund"),
    "the deposit after a refund": (settle_deposit, "hold_or_resume"),
}


def _call(driver: Any, call: Any, about: Any) -> Any:
    return call(about)


class Channel:
    """The channel's own books: payments and refunds in fen. `mood` is what happens to the next request."""

    def __init__(self) -> None:
        self.paid: dict[str, int] = {}
        self.refunds: dict[str, tuple[str, int, State]] = {}
        self.mood, self.is_silent = "success", False

    def back(self, order_no: str) -> int:
        """What payers of an order got back."""
        return sum(fen for of, fen, state in self.refunds.values() if (of, state) == (order_no, State.PAID))

    def request(self, request: RefundRequest) -> Report:
        mood, self.mood = self.mood, "success"
        if request.refund_no not in self.refunds:
            if mood == "refuse":
                raise ChannelRefused("not this one")
            if mood in ("lost", "low"):
                raise ChannelUnknown(mood)
            assert self.back(request.order_no) + request.amount <= self.paid[request.order_no]
            state = {"accept": State.OPEN, "stuck": State.STUCK}.get(mood, State.PAID)
            self.refunds[request.refund_no] = (request.order_no, request.amount, state)
        if mood == "unheard":
            raise ChannelUnknown(mood)
        return self.report(request.refund_no)

    def check(self, request: RefundRequest) -> Report:
        if self.is_silent:
            raise ChannelUnknown("silent")
        return self.report(request.refund_no)

    def report(self, refund_no: str) -> Report:
        if refund_no not in self.refunds:
            return Report(State.ABSENT)
        _, fen, state = self.refunds[refund_no]
        return Report(state, fen if state is State.PAID else 0, f"CH-{refund_no}")

    def query(self, payment: Payment) -> Report:
        if payment.order_no not in self.paid:
            return Report(State.OPEN)
        left = self.paid[payment.order_no] - self.back(payment.order_no)
        return Report(State.PAID if left else State.FAILED, left, f"PAY-{payment.order_no}")


class Refunds(Life):
    """One service with a channel that refunds, and its merchant."""

    orders: Bundle[str] = Bundle("orders")

    def __init__(self) -> None:
        super().__init__()
        self.channel, self.paused, self.numbers = Channel(), False, 0
        channel = self.channel
        for name, call in (("refund", channel.request), ("query_refund", channel.check), ("query", channel.query)):
            self.closing.enter_context(mock.patch.object(Trial, name, partialmethod(_call, call)))
        self.closing.enter_context(mock.patch.dict(STEPS, OF_REFUNDS))
        self._merchant(refund_mode=AUTOMATIC, refund_auto_max=FEN * 10)

    def _merchant(self, **facts: Any) -> None:
        Merchant.update(facts).where(Merchant.key == "demo").execute()
        cache.forget()

    def teardown(self) -> None:
        """Whatever happened, all that the channel has comes to its end once it responds."""
        try:
            self.failing, self.channel.mood, self.channel.is_silent = "", "success", False
            self.an_operator_resumes()
            for number, (order_no, fen, state) in self.channel.refunds.items():
                if state in (State.OPEN, State.STUCK):
                    self.channel.refunds[number] = (order_no, fen, State.PAID)
            for _ in range(12):
                self.clock.shift(4_000)
                self._sweep()
            waiting = Refund.select().where(Refund.status.in_([PENDING, CONFIRMED]), Refund.approved_by != "")
            assert [each.refund_no for each in waiting] == []
            for order_no in self.channel.paid:
                completed = self._refunds(order_no, COMPLETED)
                assert sum(each.amount for each in completed) == self.channel.back(order_no)
            self.every_check_of_the_ledger_passes()
        finally:
            super().teardown()

    @staticmethod
    def _refunds(order_no: str, *statuses: str) -> list[Refund]:
        return list(Refund.select().join(Order).where(Order.order_no == order_no, Refund.status.in_(statuses)))

    # --- steps

    @initialize(days=st.sampled_from([0, 0, 1]), target=orders)
    def a_first_deposit(self, days: int) -> str:
        self._command("channel", "set", str(CHANNEL), "--settlement-days", str(days))
        return self.a_deposit_is_paid()

    @rule(target=orders)
    def a_deposit_is_paid(self) -> str:
        order_no = str(self.api.buy("100.00", CHANNEL).data["order_no"])
        self.channel.paid[order_no] = FEN
        with self._work():
            self.api.notice(order_no, FEN, reference=f"PAY-{order_no}")
        return order_no

    @rule(percent=st.sampled_from(["0", "0.38", "100"]))
    def the_channels_cost_changes(self, percent: str) -> None:
        self._command("channel", "set", str(CHANNEL), "--cost", percent)

    @rule(mode=st.sampled_from(REFUND_MODES), fees=st.sampled_from(REFUND_FEES))
    def the_merchants_settings_change(self, mode: str, fees: str) -> None:
        self._merchant(refund_mode=mode, refund_fees=fees)

    @rule(order_no=orders, fen=st.sampled_from([FEN, 4_000, 6_000, 1]), again=st.booleans())
    def the_merchant_refunds(self, order_no: str, fen: int, again: bool) -> None:
        self.numbers += not again
        wanted = {
            "order_no": order_no,
            "cny_amount": f"{fen // 100}.{fen % 100:02d}",
            "merchant_refund_no": f"R{self.numbers}",
        }
        with self._work():
            self.api.call("createRefund", wanted)

    @rule(order_no=orders, by_platform=st.booleans())
    def an_operator_refunds(self, order_no: str, by_platform: bool) -> None:
        order = Order.find(order_no)
        wanted = Wanted(None, "operator ann", "operator ann", by_platform=by_platform)
        try:
            with self._work():
                place.place(order, wanted)
        except (NotRefundable, OperatorError, ApiError, Crash):
            return
        self._sweep()

    @rule(approves=st.booleans())
    def an_operator_decides_about_the_oldest(self, approves: bool) -> None:
        waiting = Refund.select().where(Refund.status == PENDING, Refund.approved_by == "").order_by(Refund.id).first()
        if waiting is None:
            return
        try:
            if approves:
                approve.approve(waiting, "operator ann")
            else:
                approve.reject(waiting, "no", "operator ann")
        except OperatorError:
            assert self.paused  # the channel has it, or does not respond

    @rule(mood=st.sampled_from(MOODS), silent=st.booleans())
    def the_channels_mood_changes(self, mood: str, silent: bool) -> None:
        self.channel.mood, self.channel.is_silent = mood, silent

    @rule()
    def the_channel_finishes_what_it_accepted(self) -> None:
        for number, (order_no, fen, state) in self.channel.refunds.items():
            if state is State.OPEN:
                self.channel.refunds[number] = (order_no, fen, State.PAID)

    @rule(order_no=orders)
    def the_channel_reports_the_payment_again(self, order_no: str) -> None:
        with self._work():
            self.api.notice(order_no, FEN, reference=f"PAY-{order_no}")
        left = FEN - self.channel.back(order_no)
        report = Report(State.PAID if left else State.FAILED, left, f"PAY-{order_no}")
        settle_deposit.apply_report(Order.find(order_no), report)

    @rule(amount=st.sampled_from(["5000.00", "100.00"]))
    def a_withdrawal_takes_the_balance(self, amount: str) -> None:
        self.api.sell(amount, CHANNEL)

    @rule(seconds=st.sampled_from([5, 61, 301, 3_700, DAY + 1]))
    def time_passes(self, seconds: int) -> None:
        self.clock.shift(seconds)
        self._sweep()

    @rule()
    def refunds_pause_as_after_a_restore(self) -> None:
        if not self.paused:
            after_restore.mark()
            self.paused = True

    @rule()
    def an_operator_resumes(self) -> None:
        if self.paused:
            after_restore.resume()
            self.paused = False

    # --- invariants

    @invariant()
    def a_refund_ends_as_it_did_at_the_channel(self) -> None:
        for each in Refund.select():
            state = self.channel.report(each.refund_no).state
            if each.status == COMPLETED:
                assert state is State.PAID
            if each.status == CANCELLED:
                assert state is State.ABSENT

    @invariant()
    def own_refunds_are_never_taken_for_returns(self) -> None:
        assert [each.order_id for each in PaymentException.select().where(PaymentException.kind == REVERSED)] == []

    @invariant()
    def no_payer_gets_more_than_they_paid(self) -> None:
        for order_no, fen in self.channel.paid.items():
            assert self.channel.back(order_no) <= fen
            refunds = self._refunds(order_no, PENDING, CONFIRMED, COMPLETED)
            assert sum(each.amount for each in refunds) <= fen

    @invariant()
    def the_merchant_has_what_its_orders_say(self) -> None:
        credited = Order.select(fn.COALESCE(fn.SUM(Order.merchant_actual_amount), 0))
        credited = credited.where(Order.order_type == 1, Order.status == COMPLETED).scalar()
        done = Refund.select(Refund, Order).join(Order).where(Refund.status == COMPLETED)
        taken = [each for each in done if each.paid_from == BALANCE]
        taken += [each for each in done if each.paid_from == UNCREDITED and each.order.status == COMPLETED]
        row = {each.kind: each.balance for each in LedgerAccount.select().where(LedgerAccount.owner == 1)}
        deducted = sum(each.merchant_actual_amount for each in taken)
        assert row["available"] + row["held"] == 1_000_000 + credited - deducted

    @invariant()
    def the_channel_owes_what_it_has_less_what_it_keeps(self) -> None:
        credited = (Order.order_type == 1, Order.status == COMPLETED, Order.channel == CHANNEL)
        received, kept = (
            int(Order.select(fn.COALESCE(fn.SUM(each), 0)).where(*credited).scalar())
            for each in (Order.amount, Order.cost_amount)
        )
        done = Refund.select(Refund, Order).join(Order).where(Refund.status == COMPLETED)
        back = sum(each.amount for each in done if each.paid_from in (BALANCE, PLATFORM))
        back += sum(each.amount for each in done if each.paid_from == UNCREDITED and each.order.status == COMPLETED)
        assert -LedgerAccount.balance_of(CLEARING, CHANNEL) == received - kept - back
        assert -LedgerAccount.balance_of(COMMISSION, 0) == kept  # a refund returns none
        assert not [each for each in done if each.paid_from == EXCEPTION]

    @invariant()
    def every_refund_has_a_next_step(self) -> None:
        assert [refund.refund_no for refund in next_step.missing_refunds(5)] == []
