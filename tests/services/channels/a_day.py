"""Lives a planned day through the service's interfaces, and checks what must hold at every moment and at the end.

Merchants place deposits by the signed API, payers view pages and pay, platforms send notices, workers sweep. One or two
hosts do it on one database. The clock is simulated: a call without a response takes 12 seconds of it.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count, pairwise
from typing import Any

from flask import Flask
from peewee import SQL, fn
from pytest_httpserver import HTTPServer

from blueprints.checkout.parts import inline_code
from models.tables.channel import Channel, ChannelHealth, ChannelMember, MemberDay
from models.tables.ledger import CLEARING, LedgerAccount
from models.tables.order import (
    CANCELLED,
    COMPLETED,
    LATE_PAYMENT,
    MONEY_IN,
    PAID_TWICE,
    WRONG_AMOUNT,
    History,
    Order,
    PaymentException,
)
from runtime.money import hundredths
from services.channels import groups, health
from services.channels.order_numbers import order_no_of
from services.deposits import attempts
from services.jobs import sweep as reconciliation
from services.ledger import integrity
from services.merchants import links, merchant_setup
from services.orders import next_step
from services.orders.reasons import Why
from services.orders.verdict import COMPLETE
from tests.payers import Payer
from tests.services.channels.day_plan import (
    DAY,
    DISABLED,
    HOUR,
    LATER,
    LEAVES,
    MINUTE,
    NEVER,
    PAYS_OTHER_AMOUNT,
    PAYS_TWICE,
    RUSH,
    TWICE,
    UNREACHABLE,
    Limits,
    Plan,
    Wanted,
)
from tests.services.channels.day_platforms import REFUSED, Call, Platform
from tests.support import Answer, Api, InlinePool, through_flask

PATIENCE = 10  # seconds within which a payer must see a payment
VIEWS = (1, 4, 8, 100, 300)  # seconds after which a payer views the page; only patient ones the last times
CHINA = 8 * HOUR
INSTANT = 0.05  # seconds between two events: hosts know each other's changes after 0.02


class Host:
    """One application; several work on one database."""

    def __init__(self, app: Flask):
        self.app = app

    def enter(self) -> None:
        """Work for it in this thread."""
        self.app.extensions["runtime"].enter()

    @property
    def send(self) -> Any:
        """A transport of its own, for any thread."""
        return through_flask(self.app.test_client())


@dataclass
class Outcome:
    """The result of a wanted order: the code of the answer, its number, and when its payer first saw a payment."""

    wanted: Wanted
    code: int
    order_no: str = ""
    seen_after: float | None = None  # seconds, with those of its own calls only
    seen_on: tuple[int, str] | None = None  # platform, number

    @property
    def is_payable(self) -> bool:
        """Whether the payer could see a payment in time."""
        return self.seen_after is not None and self.seen_after <= PATIENCE

    @property
    def why_not(self) -> str:
        """Why the payer saw none in time."""
        if self.is_payable:
            return ""
        if self.code != 1:
            return {50300: "no channel free", 50201: "refused", 42200: "amount", 40403: "disabled"}[self.code]
        return "never shown" if self.seen_after is None else "too late"


class Life:
    """One life of a plan, which begins at a Unix time.

    `way` is how merchants pay: through the plan's "groups", through a "group of one", or "direct" by the first channel
    of each group, without any limits of the group.
    """

    def __init__(self, plan: Plan, way: str, begins: int, hosts: list[Host], server: HTTPServer, clock: Any):
        self.plan, self.way, self.begins, self.hosts, self.clock = plan, way, begins, hosts, clock
        self.random = random.Random(plan.seed)
        random.seed(plan.seed)  # of groups with weights
        self.agenda: list[tuple[float, int, Callable[[], Any]]] = []
        self.places = count()
        self.now = float(begins)
        self._shifting = threading.Lock()
        self.log: list[Call] = []
        self.life = {"groups": "g", "group of one": "o", "direct": "d"}[way]
        self.move_to(begins)
        self.platforms = [
            Platform(server, number, account, self.life, plan.seed, begins, self.log, self.passes)
            for number, account in enumerate(plan.accounts)
        ]
        self.outcomes: list[Outcome] = []
        self.of_order: dict[str, Outcome] = {}
        self.opened: set[tuple[int, str]] = set()  # channels and methods that groups leave out now
        self.openings: list[tuple[int, str, float]] = []
        self.counts = Counter[str]()

    # --- time

    def move_to(self, when: float) -> None:
        """Set the clock, which never goes back."""
        self.now = max(self.now, when)
        self.clock.move_to(datetime.fromtimestamp(self.now, UTC), tick=False)

    def passes(self, seconds: float) -> None:
        """Let time pass during a call."""
        with self._shifting:
            self.move_to(self.now + seconds)

    def at(self, when: float, event: Callable[[], Any]) -> None:
        """Let something happen at a time."""
        heapq.heappush(self.agenda, (when, next(self.places), event))

    def after(self, seconds: float, event: Callable[[], Any]) -> None:
        """Let something happen later."""
        self.at(self.now + seconds, event)

    def happen(self) -> None:
        """Let everything happen."""
        while self.agenda:
            when, _, event = heapq.heappop(self.agenda)
            self.move_to(max(when, self.now + INSTANT))
            event()

    # --- the world

    def host(self) -> Host:
        """Whichever host the load balancer chooses."""
        return self.random.choice(self.hosts)

    def _invoke(self, *arguments: Any) -> Any:
        return self.hosts[0].app.test_cli_runner().invoke(args=[str(each) for each in arguments])

    def command(self, *arguments: Any) -> None:
        """Run a command of the operator on the first host."""
        result = self._invoke(*arguments)
        assert result.exit_code == 0, (result.output, result.exception)

    def add(self, name: str, driver: str, days: int, config: dict[str, str]) -> int:
        """Add a channel."""
        pairs = [part for key, value in config.items() for part in ("--config", f"{key}={value}")]
        new = ("--category", "gateway_b", "--driver", driver, "--name", name, "--settlement-days", days)
        self.command("channel", "add", *new, *pairs)
        return int(Channel.select(fn.MAX(Channel.id)).scalar())

    def begin(self) -> None:
        """Set everything up, and let everybody plan the day."""
        self.hosts[0].enter()
        plan = self.plan
        self.channels = [
            self.add(f"{self.way} {each.number}", "epay", each.account.days, each.config_of_channel())
            for each in self.platforms
        ]
        self.number_of = {channel: number for number, channel in enumerate(self.channels)}
        self.targets = [self._target(number) for number in range(len(plan.groups))]
        self.secrets = []
        for number, targets in enumerate(plan.merchants):
            key = f"{self.life}{number}"
            merchant, secret = merchant_setup.add_merchant(key, name=key, buy_rate=60)
            self.secrets.append((key, secret))
            for target in targets:
                links.link(Channel.get_by_id(self.targets[target]), merchant)
        for number, account in enumerate(plan.accounts):
            for outage in account.outages:
                if outage.kind == UNREACHABLE:
                    self.at(self.begins + outage.begin, self.platforms[number].gate.shut)
                    self.at(self.begins + outage.end, self.platforms[number].gate.open)
                if outage.kind == DISABLED:
                    for when, option in ((outage.begin, "--disabled"), (outage.end, "--enabled")):
                        command = ("channel", "set", self.channels[number], option)
                        self.at(self.begins + when, partial(self.command, *command))
        merchant, secret = merchant_setup.add_merchant(f"{self.life}-test", name="Test")
        self.tester = (f"{self.life}-test", secret)
        links.set_channels(merchant, self.channels)
        waiting = [*plan.wanted]
        while waiting:
            first, together = waiting.pop(0), list[Wanted]()
            while first.together and waiting and len(together) < RUSH - 1:
                together.append(waiting.pop(0))
            self.at(self.begins + first.at, partial(self.wanted, [first, *together]))
        if self.way == "groups":
            for second, group, member in plan.changes:
                self.at(self.begins + second, partial(self.limit, group, member))
        for second in range(30, plan.seconds, 30):
            self.at(self.begins + second, self.work)
        self.at(self.begins + plan.seconds, self.ends)

    def _target(self, number: int) -> int:
        """What merchants name as their channel: a group of the plan, or its first channel."""
        members = self.plan.groups[number]
        if self.way == "direct":
            return self.channels[members[0].channel]
        days = self.plan.accounts[members[0].channel].days
        group = self.add(f"{self.way} group {number}", "group", days, {"mode": self.plan.modes[number]})
        for each in members if self.way == "groups" else members[:1]:
            limits = []
            if self.way == "groups":
                wanted = {
                    "--min-amount": each.least and hundredths(each.least),
                    "--max-amount": each.most and hundredths(each.most),
                    "--daily-amount": each.daily_amount and hundredths(each.daily_amount),
                    "--daily-count": each.daily_count,
                    "--hours": each.hours,
                    "--weight": each.weight,
                }
                limits = [part for option, value in wanted.items() if value for part in (option, value)]
            self.command("group", "add", group, self.channels[each.channel], *limits)
        return group

    # --- merchants

    def wanted(self, each: list[Wanted]) -> None:
        """Merchants want orders, several at the same moment."""
        if len(each) == 1:
            answers = [self.place(self.host(), each[0])]
        else:
            hosts = [self.host() for _ in each]
            with ThreadPoolExecutor(len(each)) as pool:
                answers = list(pool.map(self.place, hosts, each))
            self.counts["at the same moment"] += len(each)
        for wanted, answer in zip(each, answers, strict=True):
            self.placed(wanted, answer, is_alone=len(each) == 1)
        self.check()

    def place(self, host: Host, wanted: Wanted) -> Answer:
        """Place a deposit by the signed API."""
        key, secret = self.secrets[wanted.merchant]
        api = Api(host.send, key, secret)
        return api.buy(hundredths(wanted.fen), self.targets[wanted.group], paychannel_paymethod=wanted.method)

    def placed(self, wanted: Wanted, answer: Answer, *, is_alone: bool) -> None:
        """Send the payer to the page, or give up. Others of the same moment may have had the last room of a member."""
        outcome = Outcome(wanted, answer.code)
        self.outcomes.append(outcome)
        assert answer.code in (1, 50300, 50201, 42200, 40403), answer
        if answer.code == 50201:
            self.of_order[str(answer.data["order_no"])] = outcome
            outcome.order_no = str(answer.data["order_no"])
        if self.way == "groups":
            fits = [each for each in self.plan.groups[wanted.group] if each.fits(wanted.fen)]
            assert (answer.code == 42200) == (not fits), (answer, wanted)
            assert answer.code != 40403
            if answer.code == 50300 and is_alone:
                assert all(self.is_out(each, wanted) for each in fits), (wanted, fits)
        if answer.code != 1:
            return
        outcome.order_no = str(answer.data["order_no"])
        self.of_order[outcome.order_no] = outcome
        self.after(VIEWS[0], partial(self.view, outcome, 0))

    def is_out(self, limits: Limits, wanted: Wanted) -> bool:
        """Whether a group was right not to use a member now."""
        channel = self.channels[limits.channel]
        row = ChannelMember.get(ChannelMember.group == self.targets[wanted.group], ChannelMember.channel == channel)
        today = MemberDay.get_or_none(MemberDay.member == row, MemberDay.day == groups.day_of(int(self.now)))
        amount, number = (today.amount, today.count) if today else (0, 0)
        is_full = (row.daily_amount is not None and amount + wanted.fen > row.daily_amount) or (
            row.daily_count is not None and number >= row.daily_count
        )
        ill = ChannelHealth.get_or_none(ChannelHealth.channel == channel, ChannelHealth.method == wanted.method)
        is_open = groups.is_within(row.hours, int(self.now)) and Channel.get_by_id(channel).enabled
        return bool(is_full or not is_open or (ill is not None and ill.level))

    def limit(self, group: int, member: int) -> None:
        """The operator gives a member its first daily limit, a few orders above what it has today."""
        channel = self.channels[self.plan.groups[group][member].channel]
        taken = self.taken().get((self.targets[group], channel, self._day()), (0, 0))[1]
        self.command("group", "set", self.targets[group], channel, "--daily-count", taken + 2)
        self.counts["limits set during the day"] += 1

    # --- payers

    def view(self, outcome: Outcome, tries: int) -> None:
        """The payer views the page, which opens the payment if it is not open yet, and again if nothing is shown."""
        self.work()
        wanted, order_no = outcome.wanted, outcome.order_no
        payer = Payer(self.host().app, wanted.browser, f"203.0.113.{self.random.randrange(1, 255)}")
        page = payer.views(order_no)
        if not (seen := self.seen_in(page, order_no)):
            page = payer.opens(order_no, *(["again=1"] if tries else []))
            seen = self.seen_in(page, order_no)
        if not seen:
            if tries + 1 < (len(VIEWS) if wanted.patient else len(VIEWS) - 2):
                self.after(VIEWS[tries + 1] - VIEWS[tries], partial(self.view, outcome, tries + 1))
            return
        outcome.seen_after = VIEWS[tries] + sum(each.delays.get(order_no, 0) for each in self.platforms)
        outcome.seen_on = seen
        if wanted.does == LEAVES:
            return
        fen = wanted.fen + self.random.choice([-50, 700]) if wanted.does == PAYS_OTHER_AMOUNT else None
        if fen is not None and fen < 1:
            fen = wanted.fen + 100
        self.after(wanted.waits, partial(self.pay, *seen, fen, wanted.notice))
        if wanted.does == PAYS_TWICE:
            self.after(wanted.waits // 2, partial(self.pays_in_another_browser, outcome))

    def pays_in_another_browser(self, outcome: Outcome) -> None:
        """The payer opens the page on another device, and pays there, too."""
        browser = "pc" if outcome.wanted.browser == "mobile" else "mobile"
        page = Payer(self.host().app, browser).opens(outcome.order_no)
        if seen := self.seen_in(page, outcome.order_no):
            assert outcome.seen_on is not None
            assert seen[0] == outcome.seen_on[0], "a payer saw payments of two channels"
            self.after(5, partial(self.pay, *seen, None, outcome.wanted.notice))

    def seen_in(self, page: str, order_no: str) -> tuple[int, str] | None:
        """The payment whose QR code a page shows: its platform, and its number there."""
        found = [
            (platform.number, number)
            for platform in self.platforms
            for number in platform.by_order.get(order_no, ())
            if inline_code(f"weixin://wxpay/bizpayurl?pr={platform.orders[number]['trade_no']}") in page
        ]
        assert len(found) <= 1, found
        assert found or "data:image/png" not in page, "a page shows a code without a payment"
        return found[0] if found else None

    def pay(self, platform: int, number: str, fen: int | None, notice: str) -> None:
        """The payer pays what was shown, if the platform still lets them."""
        at = self.platforms[platform]
        if not at.can_pay(number):
            self.counts["payments that were closed"] += 1
            return
        at.pay(number, hundredths(fen) if fen else "")
        self.counts["payments"] += 1
        if notice == NEVER and at.account.has_query:
            return
        if notice in (LATER, NEVER):
            self.after(self.random.randrange(5 * MINUTE, 8 * HOUR), partial(self.tell, platform, number))
            return
        self.tell(platform, number)
        if notice == TWICE:
            self.after(self.random.randrange(1, HOUR), partial(self.tell, platform, number))

    def tell(self, platform: int, number: str) -> None:
        """The platform sends a notice to either host, and again after a refusal."""
        at = self.platforms[platform]
        answer = at.notice(number, at.account.version).to(self.host().send, order_no_of(number))
        if answer.status != 200:
            self.counts["notices that were sent again"] += 1
            self.after(10 * MINUTE, partial(self.tell, platform, number))

    def found(self) -> None:
        """Pay payments that a platform had refused to open."""
        for platform in self.platforms:
            while platform.found:
                number = platform.found.pop()
                self.counts["payments open after a refusal"] += 1
                if self.random.random() < 0.5:
                    # Only a notice tells of it if the order ended without another attempt.
                    order = Order.get(Order.order_no == order_no_of(number))
                    is_watched = order.status != CANCELLED or len(attempts.all_of(order)) > 1
                    notice = self.random.choice(["once", "later", NEVER] if is_watched else ["once", "later"])
                    wait = self.random.randrange(10, 2 * HOUR)
                    fen = int(order.amount) + 100 if self.random.random() < 0.1 else None
                    self.after(wait, partial(self.pay, platform.number, number, fen, notice))
                    self.counts["paid after a refusal"] += 1

    # --- workers

    def work(self) -> None:
        """Do what is due on either host; sometimes the other one sweeps at the same time."""
        self.found()
        host = self.host()

        def meanwhile() -> None:
            if len(self.hosts) > 1 and self.random.random() < 0.02:
                self.sweep(self.hosts[host is self.hosts[0]])
                host.enter()

        self.sweep(host, meanwhile)

    def sweep(self, host: Host, meanwhile: Callable[[], Any] = lambda: None) -> None:
        """Do what is due on a host."""
        host.enter()
        reconciliation.sweep(InlinePool(meanwhile))  # type: ignore[arg-type]

    def ends(self) -> None:
        """The day ends: the operator tests each channel, and workers follow up for two days."""
        for number, channel in enumerate(self.channels):
            # After the longest pause, and when a platform with a maximum takes payments again. The first may fail.
            later = HOUR + (DAY if self.plan.accounts[number].takes is not None else 0)
            for when in (later, later + HOUR):
                for method in ("wxpay", "alipay"):
                    self.after(when, partial(self.test, channel, method))
        for when in (3 * HOUR, 30 * HOUR):
            self.after(when, self.settle)
        for second in range(15 * MINUTE, 3 * DAY, 15 * MINUTE):
            self.at(self.begins + self.plan.seconds + second, self.work)

    def settle(self) -> None:
        """The operator decides about half of the exceptions: the money completes its order, or is credited."""
        self.hosts[0].enter()
        mine = (PaymentException.resolution.is_null(), PaymentException.channel.in_(self.channels))
        for each in list(PaymentException.select().where(*mine).order_by(PaymentException.id)):
            for way in self.random.choice([[], ["--credit"], ["--complete", "--credit"]]):
                chosen = ("order", "resolve", each.order.order_no, way, "--exception", each.id)
                if self._invoke(*chosen).exit_code == 0:
                    self.counts["exceptions resolved"] += 1
                    break
        self.check()

    def test(self, channel: int, method: str) -> None:
        """The operator opens one payment at a channel, after which no channel may be left out any more."""
        api = Api(self.host().send, *self.tester)
        answer = api.buy("1.00", channel, paychannel_paymethod=method)
        assert answer.code == 1, answer
        Payer(self.host().app, "pc").opens(answer.data["order_no"])

    # --- checks at every moment

    def _day(self) -> int:
        return int(self.now + CHINA) // DAY

    def taken(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """The sum and number of orders that are not cancelled, by group, channel and day."""
        day = SQL(f"(createtime + {CHINA}) / {DAY}")  # as text, so that Postgres sees the same expression twice
        rows = Order.select(Order.group, Order.channel, day, fn.SUM(Order.amount), fn.COUNT(Order.id))
        mine = (Order.group.in_(self.targets), Order.status != CANCELLED)
        found = rows.where(*mine).group_by(Order.group, Order.channel, day).tuples()
        return {(group, channel, int(day)): (int(amount), number) for group, channel, day, amount, number in found}

    def check(self) -> None:
        """Fail unless limits hold and breakers opened for a reason."""
        if self.way == "direct":
            return
        taken, after_all = self.taken(), None
        days = {(row.member_id, row.day): (row.amount, row.count) for row in MemberDay.select()}
        for member in ChannelMember.select().where(ChannelMember.group.in_(self.targets)):
            if member.daily_amount is None and member.daily_count is None:
                continue
            for (group, channel, day), (amount, number) in taken.items():
                if (group, channel) != (member.group_id, member.channel_id):
                    continue
                is_before_limit = (member.id, groups.day_of(day * DAY)) not in days
                if is_before_limit and day != self._day():
                    continue  # it had no limit on that day
                counted = days.get((member.id, groups.day_of(day * DAY)), (0, 0))
                assert counted == (amount, number), (self.plan.seed, group, channel, day, counted, amount, number)
                over = amount > (member.daily_amount or amount) or number > (member.daily_count or number)
                if over:
                    after_all = self.found_after_all() if after_all is None else after_all
                    more = after_all[group, channel, day]
                    amount, number = amount - sum(more), number - len(more)
                    self.counts["checks above a limit by money found after all"] += 1
                assert amount <= (member.daily_amount or amount), (self.plan.seed, group, channel, amount)
                assert number <= (member.daily_count or number), (self.plan.seed, group, channel, number)
            self.counts["checks of a member"] += 1
        self.check_health()

    def found_after_all(self) -> dict[tuple[int, int, int], list[int]]:
        """The amounts of orders that were counted again, because their money was found, by group, channel and day."""
        moved = (History.code == Why.PAID_AT_MEMBER) | ((History.before == CANCELLED) & (History.after == COMPLETED))
        found = defaultdict(list)
        for order in Order.select().where(Order.id.in_(History.select(History.order).where(moved))):
            found[order.group_id, order.channel_id, int(order.createtime + CHINA) // DAY].append(int(order.amount))
        return found

    def check_health(self) -> None:
        """Fail if a channel is left out without failures at its platform."""
        rows = {
            (row.channel_id, row.method): row
            for row in ChannelHealth.select().where(ChannelHealth.level > 0, ChannelHealth.channel.in_(self.channels))
        }
        for (channel, method), row in rows.items():
            if (channel, method) in self.opened:
                continue
            platform, opened_at = self.platforms[self.number_of[channel]], row.off_until - health.PAUSES[row.level - 1]
            recent = [each for each in platform.failures if opened_at - health.WINDOW <= each <= opened_at + 1]
            shut = [each for each in platform.account.outages if each.kind == UNREACHABLE]
            second = opened_at - self.begins
            was_shut = any(each.begin <= second and each.end >= second - health.WINDOW for each in shut)
            told = (
                f"seed {self.plan.seed}, channel {channel} {method} at {second:.0f}: {row.results}, platform: {recent}"
            )
            assert len(recent) >= health.TOO_MANY or was_shut, told
            self.openings.append((channel, method, opened_at))
        self.counts["channels used again"] += len(self.opened - rows.keys())
        self.opened = set(rows)

    # --- checks at the end

    def check_end(self) -> None:
        """Fail unless every order ended, and all money is where the books have it."""
        self.hosts[0].enter()
        self.check()
        assert not self.opened, (self.plan.seed, self.opened)
        assert [order.order_no for order in next_step.missing(5)] == []
        exceptions = defaultdict(list)
        for each in PaymentException.select().where(PaymentException.channel.in_(self.channels)):
            exceptions[each.order_id].append(each)
        wrong = list[str]()
        for order in Order.select().where(Order.channel.in_(self.channels)):
            mine = exceptions[order.id]
            still = [each for each in mine if each.is_open]
            says = [*self._unended(order, still), *self._wrong_tries(order), *self._wrong_money(order, mine)]
            wrong += [f"{why}: {self.story(order)}" for why in says]
            self.counts[f"orders {order.status}"] += 1
            for each in still:
                self.counts[f"exceptions {each.kind}"] += 1
        for number, channel in enumerate(self.channels):
            account = LedgerAccount.get_or_none(LedgerAccount.kind == CLEARING, LedgerAccount.owner == channel)
            credited = -account.balance if account else 0
            waits = [
                each for some in exceptions.values() for each in some if each.channel_id == channel and each.is_open
            ]
            held = sum(each.amount for each in waits if each.kind in MONEY_IN)
            received = self.platforms[number].received
            if received != credited + held:
                wrong.append(f"channel {number} has received {received}, credited {credited}, in exceptions {held}")
        assert not wrong, "\n\n".join([f"seed {self.plan.seed}: {len(wrong)} problems", *wrong])
        assert not {name: off for name, off in integrity.verify() if off}

    def _unended(self, order: Order, still: list[PaymentException]) -> Iterator[str]:
        """Yield a text if an order has not ended and no open exception says why."""
        if order.status not in (COMPLETED, CANCELLED) and not any(each.code for each in still):
            yield "it has not ended"

    def _wrong_tries(self, order: Order) -> Iterator[str]:
        """Yield a text if another channel was tried after an unknown outcome, or after the payer saw a payment."""
        calls = self.calls_by_order[order.order_no]
        for before, after in pairwise(calls):
            if before.platform != after.platform:
                self.counts["passed on after a refusal"] += 1
                if before.result != REFUSED:
                    yield "it was passed on after an unknown outcome"
        outcome = self.of_order.get(order.order_no)
        if outcome and outcome.seen_on and calls[-1].platform != outcome.seen_on[0]:
            yield "it was passed on after its payer saw a payment"

    def _wrong_money(self, order: Order, exceptions: list[PaymentException]) -> Iterator[str]:
        """Yield a text if a payer paid twice without such an exception, or if money is nowhere."""
        paid = [(each.number, number) for each in self.platforms for number in each.paid(order.order_no)]
        kinds = [each.kind for each in exceptions if each.kind in MONEY_IN and each.resolution != COMPLETE]
        if len(paid) != (order.status == COMPLETED) + len(kinds):
            yield f"paid {paid}, exceptions {kinds}"
        elif len(paid) > 1:
            self.counts["orders paid twice"] += 1
            # It was paid twice in time, unless one of the payments came late, or had another amount.
            if not {each.kind for each in exceptions} & {PAID_TWICE, LATE_PAYMENT, WRONG_AMOUNT}:
                yield f"paid twice, exceptions {kinds}"
        if order.status == COMPLETED and self.number_of[order.channel_id] not in {number for number, _ in paid}:
            yield f"credited at another channel than paid: {paid}"

    def story(self, order: Order) -> str:
        """What happened to an order, for the message of a failure."""
        lines = History.select().where(History.order == order).order_by(History.id)
        told = [f"{int(each.at) - self.begins:>7} {each.who} {each.after}: {each.code} {each.args}" for each in lines]
        tries = [
            f"{each.count} {each.channel_id} {each.refusal} {each.closed} {each.sent}"
            for each in attempts.all_of(order)
        ]
        calls = [f"{each.at - self.begins:>7.0f} {each}" for each in self.calls_by_order[order.order_no]]
        facts = f"seed {self.plan.seed}, order {order.order_no}, {order.status}, channel {order.channel_id}"
        return "\n".join([facts, f"channels {self.channels}", *told, *tries, *calls])

    @property
    def calls_by_order(self) -> dict[str, list[Call]]:
        """The platforms' calls by order."""
        if not hasattr(self, "_calls"):
            self._calls: dict[str, list[Call]] = defaultdict(list)
            for each in self.log:
                self._calls[each.order_no].append(each)
        return self._calls

    def report(self) -> dict[str, Any]:
        """The figures of this life; `payable` of the `wanted` orders."""
        wanted = [each for each in self.outcomes if self.is_takeable(each.wanted)]
        return {
            "way": self.way,
            "wanted": len(wanted),
            "payable": sum(each.is_payable for each in wanted),
            "why not": dict(Counter(each.why_not for each in wanted if not each.is_payable)),
            "counts": dict(self.counts),
            "breakers opened": len(self.openings),
            "creations": dict(Counter(each.result for each in self.log)),
        }

    def is_takeable(self, wanted: Wanted) -> bool:
        """Whether the plan's group ever takes an order of this amount."""
        return any(each.fits(wanted.fen) for each in self.plan.groups[wanted.group])

    def live(self) -> dict[str, Any]:
        """Live the day, check everything, and return its figures."""
        try:
            self.begin()
            self.happen()
            self.check_end()
        finally:
            for each in self.platforms:
                with suppress(OSError):
                    each.gate.remove()
        return self.report()
