"""The interface of a driver: its calls, and the values that they take and return.

A driver speaks one upstream's protocol. It never sees a row and never decides a status: it returns what the channel
reported, and the services decide the effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Any, ClassVar

from marshmallow import Schema

from gateways.statement import Layout
from runtime.texts import N_

METHODS = ("wxpay", "alipay", "bank")
NO_STATUS_CHECKS = N_(
    "This channel has no status checks. Unpaid deposits expire by time. If a notice is lost, its payment is not found. "
    "Compare your orders with the platform's regularly."
)


class ChannelError(Exception):
    """A channel call failed; the text gives the reason, is never empty and contains no secret."""

    def __str__(self) -> str:
        return super().__str__() or type(self).__name__


class ChannelRefused(ChannelError):
    """The channel refused explicitly: the call has no effect."""


class Problem(Enum):
    """Why there was no usable response, with the remedy: the subject of the finding, and its text for translation."""

    NO_SUCH_HOST = ("connection", N_("%(host)s does not exist. Check the address for typing errors."))
    NO_CONNECTION = ("connection", N_("%(host)s was not reached. Check the address and this server's firewall."))
    TIMEOUT = ("connection", N_("%(host)s did not respond in time. Test again, then check the address."))
    TLS = ("connection", N_("%(host)s has no valid TLS certificate. Check the address and this server's clock."))
    PROXY = ("connection", N_("The proxy did not connect. Check the proxy of this channel."))
    PRIVATE = (
        "connection",
        N_("%(host)s is a private address and was not called. Use a public address, or set private_channels = 1."),
    )
    NOT_THE_API = (
        "connection",
        N_("HTTP %(status)s from %(host)s, which is not a response of the payment API. Check the address."),
    )
    REJECTED = ("keys", N_("The channel rejected the request: %(why)s. Check the merchant number and the keys."))
    NOT_AUTHENTIC = (
        "keys",
        N_("The signature of the response is not valid. Check the channel's public key or certificate."),
    )


class ChannelUnknown(ChannelError):
    """No usable response (a timeout, garbage): the call may have succeeded, so its status is checked again.

    `has_it`: the response shows that the channel has the payout, but not its status. `problem`: a known reason, with
    the `values` of its text. `sent` is False if no byte of the call's only request left this machine.
    """

    def __init__(
        self,
        text: str = "",
        has_it: bool = False,
        problem: Problem | None = None,
        *,
        sent: bool = True,
        **values: str,
    ):
        super().__init__(text)
        self.has_it, self.problem, self.sent, self.values = has_it, problem, sent, values

    @property
    def was_reached(self) -> bool:
        """Return whether the channel itself responded, and not another server or a proxy."""
        return self.problem is not None and self.problem.value[0] != "connection"

    def finding(self) -> Finding:
        """Return the reason as a finding."""
        if self.problem is None:
            text = N_("No usable response: %(why)s. Check the address, the merchant number and the keys.")
            return Finding("keys", False, text, {"why": str(self)})
        return Finding(self.problem.value[0], False, self.problem.value[1], self.values)

    def findings(self) -> list[Finding]:
        """Return the result of a channel check that ended with this error."""
        problem = self.finding()
        if self.problem is None:
            return [problem]
        if self.was_reached:
            return [Finding("connection", True, N_("The channel responds.")), problem]
        return [problem, Finding("keys", None, N_("Not tested, because there is no connection."))]


class NumberTaken(ChannelUnknown):
    """A payment can't be opened under its number, because the channel has one with other details under it."""


class StatementNotReady(ChannelUnknown):
    """The upstream is still making the statement of the day."""


class BadNotice(ChannelError):
    """A notice that the channel can't have sent: it has no effect."""


class State(Enum):
    """A channel's report on one order."""

    OPEN = "open"  # a deposit is not paid yet; a payout is in progress
    PAID = "paid"  # the money was sent
    FAILED = "failed"  # it was not sent, and never will be
    ABSENT = "absent"  # the channel does not know the order
    RETURNED = "returned"  # it was paid, and some or all of it was refunded: the channel does not report how much
    ENDED = "ended"  # a deposit expired unpaid, or was paid and refunded: the channel does not report which
    STUCK = "stuck"  # a refund does not reach the payer: an operator must act at the channel


@dataclass(frozen=True)
class Report:
    """The channel's report on one order, or on one refund.

    `amount` is the channel's present amount in fen, and `returned` what it sent back, if reported; `reference` is the
    channel's own number for the payment; `proven` is False for a mere claim (a payer's click, an unsigned notice).
    `by_operator` is True for what an operator says about the channel. `channel` is the id of the channel that
    reports on an order of a group; drivers leave it 0, and 0 is the order's own.

    On a refund, PAID means that the payer gets the money, OPEN that the channel has accepted it, FAILED that no money
    moved and none will, ABSENT that the channel does not know it; `amount` is the refund's, and `reference` the
    channel's own number for it.
    """

    state: State
    amount: int = 0
    reference: str = ""
    proven: bool = True
    detail: str = ""
    returned: int = 0
    by_operator: bool = False
    channel: int = 0

    @property
    def is_unsized(self) -> bool:
        """True if the amount at the channel is unknown."""
        return self.state in (State.RETURNED, State.ENDED) or (self.state is State.PAID and not self.amount)


@dataclass(frozen=True)
class Notice:
    """A verified notice: the order's number, and the report on its payment, None if the notice is about a refund only.

    `refund_no` is the number of the refund that caused the notice, "" if it names none, and `refund` the report on
    that refund, None if only a status check can tell. `payment` is the channel's number for the refunded payment, if
    the notice has it.
    """

    order_no: str
    report: Report | None
    refund_no: str = ""
    refund: Report | None = None
    payment: str = ""


@dataclass(frozen=True)
class Incoming:
    """A notice as received: `query` is the unparsed text after the question mark."""

    method: str
    query: bytes
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Payer:
    """The viewer of the payment page: the IP address, and pc, mobile, wechat, alipay or qq.

    `id` is the payer's id at the upstream after a sign-in there; `token` is a hash of it.
    """

    address: str
    browser: str
    id: str = field(default="", repr=False)
    token: str = ""


@dataclass(frozen=True)
class Payment:
    """A deposit, as drivers need it. `amount` in fen, `expires_at` in Unix seconds.

    `order_no` is the number that the channel knows: the order's, or that of a later payment attempt.
    `payer` is set if the channel opens a payment when the page is viewed.
    """

    order_no: str
    amount: int
    method: str
    subject: str
    notify_url: str
    pay_url: str
    expires_at: int
    payer: Payer | None = None

    @property
    def return_url(self) -> str:
        """An address of the payment page without a query, for upstreams that allow none there."""
        return self.pay_url.replace("?order_no=", "/")


@dataclass(frozen=True)
class Payout:
    """A withdrawal, as drivers need it. `amount` in fen; `account` is the payout account.

    `number` is a second name of the same payout, of 19 digits that begin with date and time, which some upstreams need.
    """

    order_no: str
    number: str
    amount: int
    method: str
    account: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class RefundRequest:
    """A refund of a deposit, as drivers need it. Amounts in fen.

    `refund_no` is the same for each request of this refund. `order_no` is the number of the order, and `reference` the
    channel's own number for the payment that is refunded; `total` is the amount of that payment, as received.
    `refunded_before` is what the channel had refunded of it before the first request, None if that is unknown.
    """

    refund_no: str
    order_no: str
    reference: str
    amount: int
    total: int
    reason: str
    notify_url: str
    refunded_before: int | None = None

    @property
    def is_whole(self) -> bool:
        """True if it refunds the whole payment at once."""
        return self.amount == self.total


@dataclass(frozen=True)
class Opened:
    """The content of the payment page: a text for a QR code, an address, an app's link, lines to read.

    `instructions` is a text on what to enter. With `fields`, the browser sends them to `redirect` as a form. `bridge`
    are the parameters with which the page asks the app that shows it to pay. `seconds`: for how long all this can be
    used; 0 if until the deposit expires.
    """

    qr: str = ""
    redirect: str = ""
    scheme: str = ""
    lines: tuple[tuple[str, str], ...] = ()
    instructions: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    bridge: Mapping[str, str] = field(default_factory=dict)
    seconds: int = 0


@dataclass(frozen=True)
class Finding:
    """One result of a channel check: about the keys, a payment method or the clock.

    `good` is None if unknown or neutral. `text` is in English for translation.
    """

    about: str
    good: bool | None
    text: str
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Acknowledgement:
    """The response to a notice that the upstream's protocol requires."""

    body: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


class Driver:
    """Base class of drivers; the channel can't do what it does not override. Threads share an instance."""

    name: ClassVar[str]
    # The name and a sentence on its use, for the choice of a provider; in English for translation.
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    config_schema: ClassVar[type[Schema]] = Schema
    # The payment methods that the upstream knows, and those that it pays out by.
    methods: ClassVar[tuple[str, ...]] = METHODS
    payout_methods: tuple[str, ...] = ()
    # Seconds after a payout request for which the upstream may not show the payout yet: ABSENT proves nothing then.
    shows_payouts_after: ClassVar[int] = 600
    # Seconds for which the upstream accepts a payment at most: a later expiry of a deposit has no effect there.
    longest_expiry: ClassVar[int] = 30 * 86_400
    # The config fields that identify the account: open orders exist in that account only.
    account_fields: ClassVar[tuple[str, ...]] = ()
    # A payment that `close` closed or `open_payment` refused can never be paid, so its status is not checked any more.
    closes_for_good: ClassVar[bool] = False
    # The upstream refunds deposits through `refund` and `query_refund`, or an operator does for a manual channel.
    refunds: ClassVar[bool] = False
    # Days after a payment for which the upstream refunds it at most; 0 if it names no limit.
    refund_days: ClassVar[int] = 0
    # An operator moves the money manually; the channel has no status check.
    by_hand: ClassVar[bool] = False
    simulated: ClassVar[bool] = False  # no real money moves
    # The page content depends only on the payment and the config, so it is made when the page is viewed.
    opens_locally: bool = False
    # By kind of browser, the config field that turns on a product of the upstream for it.
    products: ClassVar[Mapping[str, str]] = {}
    # The format of the upstream's downloaded statement (gateways/statement.py).
    statement: ClassVar[Layout] = Layout()

    def __init__(self, config: Mapping[str, Any]):
        """`config` is the output of `config_schema.load`."""
        self.config = config

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Driver:
        """Return the driver for this config; of another class if the config chooses between versions of a protocol."""
        return cls(config)

    @property
    def checks_status(self) -> bool:
        """True if the upstream reports a deposit's status when asked.

        Otherwise only a notice or an operator proves a payment, and an unpaid deposit expires by time alone.
        """
        return not self.by_hand

    @property
    def asks_again(self) -> bool:
        """True if a notice only triggers a status check, and only the check's response counts."""
        return bool(self.config.get("ask_again", False))

    @property
    def fetches_statements(self) -> bool:
        """True if the upstream offers the statement of a day through `fetch_statement`, and it is wanted."""
        return bool(self.config.get("fetch_bills", False))

    @property
    def fetches_balances(self) -> bool:
        """True if the upstream offers its account's flow of funds through `fetch_balance`, and it is wanted."""
        return bool(self.config.get("fetch_bills", False))

    @property
    def opens_on_view(self) -> bool:
        """True if a deposit is opened upstream when the payer views the page, not when the order is created."""
        fields = ("open_on_view", *self.products.values())
        return any(self.config.get(name, False) for name in fields) and not self.opens_locally

    def way(self, browser: str) -> str:
        """Return the upstream's product for this kind of browser, "" for the usual one.

        A payment fits all kinds with the same product.
        """
        product = self.products.get(browser, "")
        return product if self.config.get(product, False) else ""

    def signs_again(self, browser: str) -> bool:
        """Return whether a stored payment for this kind of browser is made again, without a call, before it is used."""
        return False

    def needs_sign_in(self, browser: str) -> bool:
        """Return whether a payment in this kind of browser needs the payer's id at the upstream."""
        return False

    def sign_in_url(self, back: str, state: str) -> str:
        """Return the upstream's address that sends the payer to `back`, with `state` and a code for `payer_id`."""
        raise NotImplementedError

    def payer_id(self, code: str) -> str:
        """Return the id of the payer with this code. Raises ChannelRefused, ChannelUnknown."""
        raise NotImplementedError

    @property
    def domain_files(self) -> Mapping[str, str]:
        """Files at the root of this service's domain with which the upstream verifies it: their texts by name."""
        return {}

    def unusable_methods(self) -> Mapping[str, str]:
        """Return the payment methods by which payers cannot pay with this config: why, in English for translation.

        An uploaded image of a QR code is not part of the config (`pictures.unusable_methods`).
        """
        return {}

    def open_payment(self, payment: Payment) -> Opened:
        """Register a deposit upstream; repeating the order number refers to the same deposit.

        It sends one request at most, so that its error says whether anything was sent.

        Raises:
            ChannelRefused: the deposit can't be opened.
            ChannelUnknown: no usable response.
        """
        raise ChannelRefused(N_("%(driver)s does not support deposits") % {"driver": self.name})

    def read_notice(self, incoming: Incoming) -> Notice:
        """Verify a notice over its raw bytes. Raises BadNotice."""
        raise BadNotice(N_("%(driver)s sends no notices") % {"driver": self.name})

    def acknowledge(self, accepted: bool) -> Acknowledgement:
        """Return the response to an accepted or rejected notice."""
        return Acknowledgement("success") if accepted else Acknowledgement("fail", 400)

    def query(self, payment: Payment) -> Report:
        """Check the status of a deposit. Raises ChannelUnknown."""
        raise ChannelUnknown(N_("%(driver)s does not support status checks of deposits") % {"driver": self.name})

    def clock(self) -> list[Finding]:
        """Return by how much this machine's clock differs from the upstream's, by its last response."""
        return []

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        """Check whether the channel can be used.

        Args:
            payments: deposits that do not exist, one for each payment method of the channel.

        Raises:
            ChannelUnknown: no usable response, or our keys are not accepted.
        """
        if not self.checks_status:
            return [Finding("status", None, NO_STATUS_CHECKS)]
        report = self.query(payments[0])
        if report.state not in (State.ABSENT, State.OPEN):
            raise ChannelUnknown(
                N_("reported status %(status)s for a nonexistent test order") % {"status": repr(report.state.value)}
            )
        return [Finding("keys", True, N_("The channel responds and accepts your keys."))]

    def close(self, payment: Payment) -> bool:
        """Close an unpaid deposit upstream; False if the upstream may still accept money for it.

        Raises:
            ChannelRefused: it was paid.
            ChannelUnknown: no usable response.
        """
        return False

    def pay_out(self, payout: Payout) -> Report:
        """Request a payout; repeating the order number refers to the same payout.

        Raises:
            ChannelRefused: nothing was or will be paid.
            ChannelUnknown: no usable response.
        """
        raise ChannelRefused(N_("%(driver)s does not support payouts") % {"driver": self.name})

    def query_payout(self, payout: Payout) -> Report:
        """Check the status of a withdrawal. Raises ChannelUnknown."""
        raise ChannelUnknown(N_("%(driver)s does not support status checks of withdrawals") % {"driver": self.name})

    def refund(self, request: RefundRequest) -> Report:
        """Request a refund, under the same number each time. The report is often OPEN, and final only if proven.

        Raises:
            ChannelRefused: no money moved, and none will under this number.
            ChannelUnknown: no usable response, or one after which the same request may succeed later (a low balance
                at the channel, too many requests, a fault of its system).
        """
        raise ChannelRefused(N_("%(driver)s does not support refunds") % {"driver": self.name})

    def query_refund(self, request: RefundRequest) -> Report:
        """Check the status of a refund. Raises ChannelUnknown."""
        raise ChannelUnknown(N_("%(driver)s does not support status checks of refunds") % {"driver": self.name})

    def repeats_refund(self, request: RefundRequest) -> bool:
        """Return whether the upstream takes a repeated request for the same refund, and never refunds it twice."""
        return True

    def refunded_sum(self, request: RefundRequest) -> int | None:
        """Return what the upstream has refunded of the payment, in fen; None if it does not tell.

        It is called before the first request of a refund that can't be repeated. Raises ChannelUnknown.
        """
        return None

    def fetch_statement(self, day: date) -> bytes | None:
        """Return the statement of a day in China, unpacked, in the format of `statement`; None if there is none.

        None proves nothing: some upstreams report the same while they are still making the statement.

        Raises:
            StatementNotReady: the upstream is still making it.
            ChannelUnknown: no usable response, no permission, or a file that is damaged or too large.
        """
        raise ChannelUnknown(N_("%(driver)s offers no statements") % {"driver": self.name})

    def fetch_balance(self, day: date) -> int | None:
        """Return the account's balance in fen at the end of a day in China, by the upstream's flow of funds.

        It is None if no money moved on that day. Raises as `fetch_statement` does.
        """
        raise ChannelUnknown(N_("%(driver)s offers no balances") % {"driver": self.name})
