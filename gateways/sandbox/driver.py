"""The sandbox driver: calls the simulator as other drivers call their upstreams."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import replace

from marshmallow import Schema, ValidationError, fields, validate

from gateways.base import (
    METHODS,
    BadNotice,
    ChannelRefused,
    ChannelUnknown,
    Driver,
    Incoming,
    Notice,
    Opened,
    Payment,
    Payout,
    RefundRequest,
    Report,
    State,
)
from gateways.config import texts
from gateways.sandbox.records import (
    LATE_PAYOUT_SECONDS,
    OUTCOMES,
    PAYOUT_SECONDS,
    REFUND_OUTCOMES,
    SIGNATURE_HEADER,
    UNANSWERED,
    Play,
    RefundPlay,
    books,
    notice,
    refund_notice,
    sign,
)
from runtime import clock
from runtime.texts import N_

MOST_FEN = 10**15
PAYOUT_OUTCOMES = tuple(outcome for outcome in OUTCOMES if outcome != "duplicate")


class SandboxConfig(Schema):
    """`open`: the outcome of new deposits; `payout` and `refund`: the default outcomes of withdrawals and refunds."""

    secret = fields.String(
        load_default=lambda: secrets.token_hex(16),
        validate=validate.Length(min=8),
        metadata=texts(
            N_("Notice secret"), N_("The simulator signs its notices with it. Generated if empty."), secret=True
        ),
    )
    open = fields.String(
        load_default="accept",
        validate=validate.OneOf(["accept", "refuse", "timeout"]),
        metadata=texts(
            N_("New deposits"), N_("How the simulator responds to new deposits: accept, reject or time out.")
        ),
    )
    payout = fields.String(
        load_default="success",
        validate=validate.OneOf(PAYOUT_OUTCOMES),
        metadata=texts(N_("Withdrawals"), N_("Outcome of withdrawals without a chosen outcome.")),
    )
    refund = fields.String(
        load_default="success",
        validate=validate.OneOf(REFUND_OUTCOMES),
        metadata=texts(N_("Refunds"), N_("Outcome of refunds without a chosen outcome.")),
    )


class SandboxNotice(Schema):
    """A notice's body; `amount` in fen. With `refund_no`, it is about that refund of the order."""

    order_no = fields.String(required=True)
    state = fields.String(required=True, validate=validate.OneOf([state.value for state in State]))
    amount = fields.Integer(required=True, strict=True, validate=validate.Range(0, MOST_FEN))
    reference = fields.String(required=True, validate=validate.Length(1, 64))
    refund_no = fields.String(load_default="", validate=validate.Length(max=64))


_notice = SandboxNotice()


class SandboxDriver(Driver):
    """A tester's click pays a deposit; withdrawals are paid out automatically within seconds."""

    name = "sandbox"
    title = N_("Sandbox")
    about = N_("A built-in simulator for testing. No real money moves.")
    config_schema = SandboxConfig
    payout_methods = METHODS
    refunds = True
    refund_days = 365
    shows_payouts_after = 0
    simulated = True

    @property
    def opens_locally(self) -> bool:  # type: ignore[override]
        """True unless the config simulates an upstream that does not open deposits."""
        return bool(self.config["open"] == "accept")

    def open_payment(self, payment: Payment) -> Opened:
        if self.config["open"] == "refuse":
            raise ChannelRefused(N_("the sandbox was told to refuse deposits"))
        if self.config["open"] == "timeout":
            raise ChannelUnknown(N_("the sandbox did not answer"))
        return Opened(qr=payment.pay_url)

    def notices(self, order_no: str) -> list[Incoming]:
        """Return the notices that the simulator sends for a deposit's outcome."""
        play = books().find(order_no)
        times = {"silent": 0, "timeout": 0, "duplicate": 2}
        if play is None:
            return []
        body, signature = notice(play, self.config["secret"])
        return [Incoming("POST", b"", {SIGNATURE_HEADER: signature}, body)] * times.get(play.outcome, 1)

    def read_notice(self, incoming: Incoming) -> Notice:
        given = incoming.headers.get(SIGNATURE_HEADER, "")
        if not hmac.compare_digest(sign(incoming.body, self.config["secret"]).encode(), given.encode()):
            raise BadNotice(N_("bad signature"))
        try:
            said = _notice.loads(incoming.body)
        except (ValidationError, ValueError) as error:
            raise BadNotice(N_("makes no sense: %(error)s") % {"error": error}) from None
        report = Report(State(said["state"]), said["amount"], said["reference"])
        if said["refund_no"]:
            return Notice(said["order_no"], None, said["refund_no"], report)
        return Notice(said["order_no"], report)

    def _answer(self, play: Play) -> Report:
        """Return the simulator's response to a status check of an order with an outcome."""
        if play.outcome == "timeout" and play.asked < UNANSWERED:
            books().count_unanswered(play.order_no)
            raise ChannelUnknown(N_("the sandbox did not answer"))
        state = State.FAILED if play.outcome == "fail" else State.PAID
        return Report(state, play.reported_amount, f"SB{play.order_no}")

    def query(self, payment: Payment) -> Report:
        play = books().find(payment.order_no)
        report = self._answer(play) if play else Report(State.OPEN)
        order_no = payment.order_no.partition("_")[0]  # without the number of an attempt
        returned = sum(each.amount for each in books().refunds(order_no) if each.state is State.PAID)
        if report.state is not State.PAID or not returned:
            return report
        if returned < report.amount:
            return replace(report, amount=report.amount - returned, returned=returned)
        return replace(report, state=State.FAILED, amount=0, returned=returned, detail=N_("it was paid and refunded"))

    def close(self, payment: Payment) -> bool:
        return True

    def pay_out(self, payout: Payout) -> Report:
        books().request_payout(payout.order_no, payout.amount, self.config["payout"])
        return Report(State.OPEN)

    def query_payout(self, payout: Payout) -> Report:
        play = books().find(payout.order_no)
        if play is None or play.payout_at is None:
            return Report(State.ABSENT)
        takes = LATE_PAYOUT_SECONDS if play.outcome == "late" else PAYOUT_SECONDS
        if play.outcome == "silent" or 0 <= clock.exactly() - play.payout_at < takes:
            return Report(State.OPEN)
        return self._answer(play)

    def refund(self, request: RefundRequest) -> Report:
        others = [each for each in books().refunds(request.order_no) if each.refund_no != request.refund_no]
        refunded = sum(each.amount for each in others if each.state not in (State.FAILED, State.ABSENT))
        if refunded + request.amount > request.total:
            raise ChannelRefused(N_("the refunds would exceed the payment"))
        play = books().request_refund(request.refund_no, request.order_no, request.amount, self.config["refund"])
        if play.outcome == "fail":
            raise ChannelRefused(N_("the sandbox was told to refuse refunds"))
        if play.outcome == "not_enough":
            raise ChannelUnknown(N_("the sandbox's balance is too low"))
        if play.outcome == "timeout" and play.asked < UNANSWERED:
            raise ChannelUnknown(N_("the sandbox did not answer"))
        return self._refund_report(play)

    def query_refund(self, request: RefundRequest) -> Report:
        play = books().find_refund(request.refund_no)
        if play is None:
            return Report(State.ABSENT)
        if play.outcome == "timeout" and play.asked < UNANSWERED:
            books().count_unanswered_refund(play.refund_no)
            raise ChannelUnknown(N_("the sandbox did not answer"))
        return self._refund_report(play)

    def _refund_report(self, play: RefundPlay) -> Report:
        """Return the simulator's response about a refund."""
        if play.state is State.ABSENT:
            return Report(State.ABSENT)
        return Report(play.state, play.amount, f"SBR{play.refund_no}")

    def notice_of_refund(self, play: RefundPlay) -> Incoming:
        """Return the notice that the simulator sends about a refund's end."""
        body, signature = refund_notice(play, self.config["secret"])
        return Incoming("POST", b"", {SIGNATURE_HEADER: signature}, body)
