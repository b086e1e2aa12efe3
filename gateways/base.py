"""The interface of a driver: its calls, and the small values that they take and return.

A driver speaks one upstream's protocol. It never sees a row and never decides a status: it says
what the channel reported, and the services decide what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, timezone
from enum import Enum
from typing import Any, ClassVar

from marshmallow import Schema

from gateways.statement import Layout

N_ = str  # marks a text for translation
METHODS = ("wxpay", "alipay", "bank")
CHINA = timezone(timedelta(hours=8))  # in which upstreams give dates


class ChannelError(Exception):
    """Something went wrong with a channel; the text says what and holds no secret."""


class ChannelRefused(ChannelError):
    """The channel said no, explicitly: nothing will come of this call."""


class ChannelUnknown(ChannelError):
    """No usable response (a timeout, garbage): it may have happened or not, and its status is checked again.

    `has_it`: what was answered shows that the channel has the payout, and not how it is.
    """

    def __init__(self, text: str = "", has_it: bool = False):
        super().__init__(text)
        self.has_it = has_it


class BadNotice(ChannelError):
    """A notice that is not what the channel would have sent: it changes nothing."""


class State(Enum):
    """A channel's report on one order."""

    OPEN = "open"  # a deposit is not paid yet; a payout is under way
    PAID = "paid"  # the money was sent
    FAILED = "failed"  # it was not, and never will be
    ABSENT = "absent"  # the channel does not know the order
    RETURNED = "returned"  # it was paid, and some or all of it went back: the channel does not say how much
    ENDED = "ended"  # a deposit expired unpaid, or was paid and went back: the channel does not say which


@dataclass(frozen=True)
class Report:
    """The channel's word on one order.

    `amount` is what the channel has of it now, in fen, and `returned` what it sent back, as far as it says; `reference`
    is the channel's own number for the payment; `proven` is False for a mere claim (a payer's click, a
    notice without a signature).
    """

    state: State
    amount: int = 0
    reference: str = ""
    proven: bool = True
    detail: str = ""
    returned: int = 0

    @property
    def is_unsized(self) -> bool:
        """Whether the amount at the channel is unknown."""
        return self.state in (State.RETURNED, State.ENDED) or (self.state is State.PAID and not self.amount)


@dataclass(frozen=True)
class Notice:
    """A verified notice: which order it is about, and what it says."""

    order_no: str
    report: Report


@dataclass(frozen=True)
class Incoming:
    """A notice as it came in, untouched: `query` is the text after the question mark as it was sent."""

    method: str
    query: bytes
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Payer:
    """The viewer of the payment page: the IP address, and pc, mobile, wechat, alipay or qq."""

    address: str
    browser: str


@dataclass(frozen=True)
class Payment:
    """A deposit, as a driver needs to know it. `amount` in fen, `expires_at` in Unix seconds.

    `order_no` is the number that the channel knows it by: the order's, or that of a later attempt to pay it.
    `payer` is known where the channel opens a payment once the page is viewed.
    """

    order_no: str
    amount: int
    method: str
    subject: str
    notify_url: str
    pay_url: str
    expires_at: int
    payer: Payer | None = None


@dataclass(frozen=True)
class Payout:
    """A withdrawal, as a driver needs to know it. `amount` in fen; `account` is the receiving account.

    `number` is another name for the same payout, of 19 digits that begin with date and time: some upstreams want that.
    """

    order_no: str
    number: str
    amount: int
    method: str
    account: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Opened:
    """What the payment page shows: a text for a QR code, an address, an app's link, lines to read.

    Where `fields` are given, the browser sends them to `redirect` as a form.
    """

    qr: str = ""
    redirect: str = ""
    scheme: str = ""
    lines: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """One result of a channel check: about the keys, a payment method or the clock.

    `good` is None if unknown, or neither good nor bad. `text` is in English for translation.
    """

    about: str
    good: bool | None
    text: str
    args: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Acknowledgement:
    """The answer that the upstream's protocol wants to a notice."""

    body: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


class Driver:
    """Base of every driver; what it does not override, the channel can't do. Several threads use one at once."""

    name: ClassVar[str]
    # The name and a sentence on its use, for the choice of a driver; in English for translation.
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    config_schema: ClassVar[type[Schema]] = Schema
    # The payment methods that the upstream knows, and those of them that it pays out by.
    methods: ClassVar[tuple[str, ...]] = METHODS
    payout_methods: tuple[str, ...] = ()
    # Seconds after a payout was handed over for which the upstream may not show it yet: ABSENT proves nothing then.
    shows_payouts_after: ClassVar[int] = 600
    # The fields of its config that identify the account: open orders exist in that account only.
    account_fields: ClassVar[tuple[str, ...]] = ()
    # An operator moves the money by hand: the channel can't be asked.
    by_hand: ClassVar[bool] = False
    simulated: ClassVar[bool] = False  # no real money moves
    # What the payment page shows depends only on the payment and the config, so it is made when the page is viewed.
    opens_locally: bool = False
    # What the upstream gives a payer depends on the browser.
    depends_on_browser: ClassVar[bool] = False
    # How the upstream's downloaded statement looks (gateways/statement.py).
    statement: ClassVar[Layout] = Layout()

    def __init__(self, config: Mapping[str, Any]):
        """`config` is what `config_schema` loaded."""
        self.config = config

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Driver:
        """The driver for this config: of another class, where the config chooses between versions of a protocol."""
        return cls(config)

    @property
    def asks_again(self) -> bool:
        """A notice only makes the service ask the upstream, whose answer is what is believed."""
        return bool(self.config.get("ask_again", False))

    @property
    def opens_on_view(self) -> bool:
        """A deposit is opened upstream when the payer views the page, and not when the order is created."""
        return bool(self.config.get("open_on_view", False)) and not self.opens_locally

    def open_payment(self, payment: Payment) -> Opened:
        """Register a deposit upstream; the same order number again is the same deposit.

        Raises:
            ChannelRefused: nothing will come of it.
            ChannelUnknown: no usable answer.
        """
        raise ChannelRefused(f"{self.name} takes no deposits")

    def read_notice(self, incoming: Incoming) -> Notice:
        """Verify a notice over its raw bytes. Raises BadNotice."""
        raise BadNotice(f"{self.name} sends no notices")

    def acknowledge(self, accepted: bool) -> Acknowledgement:
        """The answer to a notice that was taken in, or was not."""
        return Acknowledgement("success") if accepted else Acknowledgement("fail", 400)

    def query(self, payment: Payment) -> Report:
        """Ask about a deposit. Raises ChannelUnknown."""
        raise ChannelUnknown(f"{self.name} can't be asked about deposits")

    def check(self, payments: Sequence[Payment]) -> list[Finding]:
        """Find out whether the channel can be used.

        Args:
            payments: deposits that were never made, one for each payment method of the channel.

        Raises:
            ChannelUnknown: no usable answer, or our keys are not accepted.
        """
        report = self.query(payments[0])
        if report.state not in (State.ABSENT, State.OPEN):
            raise ChannelUnknown(f"it says of an order that was never made that it is {report.state.value}")
        return [Finding("keys", True, N_("the channel answers, and accepts our keys"))]

    def close(self, payment: Payment) -> bool:
        """Close an unpaid deposit upstream; False if the upstream may still accept money for it.

        Raises:
            ChannelRefused: it was paid.
            ChannelUnknown: no usable answer.
        """
        return False

    def pay_out(self, payout: Payout) -> Report:
        """Hand a withdrawal over; the same order number again is the same payout.

        Raises:
            ChannelRefused: nothing was or will be paid.
            ChannelUnknown: no usable answer.
        """
        raise ChannelRefused(f"{self.name} pays nothing out")

    def query_payout(self, payout: Payout) -> Report:
        """Ask about a withdrawal. Raises ChannelUnknown."""
        raise ChannelUnknown(f"{self.name} can't be asked about withdrawals")
