"""The plan of a random day: channels with their outages, groups with their limits, and what merchants and payers want.

The same seed and size are the same plan, so that groups and single channels can be compared on it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

MINUTE, HOUR, DAY = 60, 3_600, 86_400
UNREACHABLE, LOST, SLOW, CUT, BROKEN, REFUSES, DISABLED = OUTAGES = (
    *("unreachable", "lost", "slow", "cut", "broken", "refuses", "disabled"),
)
WEIGHTS = (5, 3, 3, 1, 2, 5, 1)  # of the kinds of outages
LEAVES, PAYS, PAYS_LATE, PAYS_OTHER_AMOUNT, PAYS_TWICE = ("leaves", "pays", "pays late", "pays other", "pays twice")
RUSH = 6  # orders at the same moment
ONCE, TWICE, LATER, NEVER = NOTICES = ("once", "twice", "later", "never")


@dataclass(frozen=True)
class Size:
    """How large a day is; `begins` and `hours` of the day in China."""

    merchants: int
    channels: int
    groups: int
    orders: int
    begins: int = 8
    hours: int = 24


QUICK = Size(merchants=8, channels=9, groups=3, orders=110, begins=23, hours=2)
WHOLE = Size(merchants=100, channels=20, groups=10, orders=3_000)


@dataclass(frozen=True)
class Outage:
    """A time in which a share of the calls to a platform fails in one way; times in seconds of the day."""

    kind: str
    begin: int
    end: int
    share: float


@dataclass(frozen=True)
class Account:
    """A merchant account at a platform.

    `takes` is how many payments a day the platform opens before it refuses; None for any number. `days` is the
    settlement delay.
    """

    version: str
    opens_on_view: bool
    has_query: bool
    days: int
    takes: int | None
    outages: list[Outage]


@dataclass(frozen=True)
class Limits:
    """A channel in a group, by its number in the plan; amounts in fen."""

    channel: int
    least: int | None
    most: int | None
    daily_amount: int | None
    daily_count: int | None
    hours: str
    weight: int

    def fits(self, fen: int) -> bool:
        """Whether the group ever passes this amount on to the channel."""
        return (self.least or 1) <= fen <= min(self.most or fen, self.daily_amount or fen)


@dataclass(frozen=True)
class Wanted:
    """An order that a merchant wants at second `at` of the day, and what its payer does."""

    at: int
    merchant: int
    group: int
    fen: int
    method: str
    browser: str
    does: str
    waits: int
    notice: str
    patient: bool
    together: bool  # with the next ones, at the same moment


@dataclass
class Plan:
    """A random day."""

    seed: int
    size: Size
    accounts: list[Account] = field(init=False)
    groups: list[list[Limits]] = field(init=False)
    modes: list[str] = field(init=False)
    merchants: list[list[int]] = field(init=False)  # the groups of each
    wanted: list[Wanted] = field(init=False)
    changes: list[tuple[int, int, int]] = field(init=False)  # second, group, member: gets its first daily limit then

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        size = self.size
        self.seconds = size.hours * HOUR
        # Orders come in peaks, and channels fail then, too.
        self.peaks = sorted(self._random.randrange(self.seconds * 3 // 4) for _ in range(max(2, size.hours // 5)))
        late = max(1, size.groups // 5)  # the last groups settle a day later
        self.accounts = [self._account(number) for number in range(size.channels)]
        now = [number for number, each in enumerate(self.accounts) if not each.days]
        later = [number for number, each in enumerate(self.accounts) if each.days]
        self.groups = []
        for number in range(size.groups):
            own = later if number >= size.groups - late else now
            chosen = self._random.sample(own, min(len(own), self._random.randint(3, 5)))
            self.groups.append([self._limits(each, each == chosen[-1]) for each in chosen])
        self.modes = [self._random.choice(["priority", "priority", "weight"]) for _ in self.groups]
        self.merchants = [
            sorted({number % size.groups, self._random.randrange(size.groups)}) for number in range(size.merchants)
        ]
        self.changes = [
            (self._random.randrange(self.seconds // 3, self.seconds * 2 // 3), group, member)
            for group, members in enumerate(self.groups)
            for member, each in enumerate(members)
            if each.daily_amount is None and each.daily_count is None and self._chance(0.3)
        ]
        wanted = [self._wanted() for _ in range(size.orders)]
        # Many payers come at once when a member has just got a limit of a few orders.
        for second, group, _ in self.changes:
            merchant = next(number for number, groups in enumerate(self.merchants) if group in groups)
            rush = {"at": second + 1, "merchant": merchant, "group": group, "method": "wxpay"}
            wanted += [replace(self._wanted(), **rush, together=number < RUSH - 1) for number in range(RUSH)]
        self.wanted = sorted(wanted, key=lambda each: each.at)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _second(self, spread: float) -> int:
        """A second of the day, mostly near a peak."""
        if self._chance(0.35):
            return self._random.randrange(self.seconds)
        near = self._random.choice(self.peaks) + int(self._random.gauss(0, spread))
        return min(max(near, 0), self.seconds - 1)

    def _account(self, number: int) -> Account:
        version = self._random.choice(["1", "1", "2"])
        has_query = version == "2" or not self._chance(0.15)
        outages = list[Outage]()
        for each in sorted(
            (self._outage() for _ in range(self._random.choice([1, 2, 3, 4]))), key=lambda each: each.begin
        ):
            if not outages or each.begin > outages[-1].end:
                outages.append(each)
        # As a platform refuses a new account at noon: long before the day's payments are opened.
        expected = self.size.orders // self.size.channels
        takes = self._random.randint(expected // 2, expected) if self._chance(0.2) else None
        late = max(1, self.size.groups // 5)
        days = 1 if number >= self.size.channels - 1 - late * 2 else 0
        return Account(version, self._chance(0.4), has_query, days, takes, outages)

    def _outage(self) -> Outage:
        begin = min(self._second(15 * MINUTE), self.seconds * 4 // 5)
        long = self._random.randrange(5 * MINUTE, HOUR // 2 if self.size.hours < 24 else 2 * HOUR)
        kind = self._random.choices(OUTAGES, WEIGHTS)[0]
        share = self._random.choice([1.0, 1.0, 0.5])
        return Outage(kind, begin, min(begin + long, self.seconds * 5 // 6), share)

    def _limits(self, channel: int, is_last: bool) -> Limits:
        """A member; the last one takes everything, so that a group has no gaps."""
        if is_last:
            return Limits(channel, None, None, None, None, "", self._random.randint(1, 9))
        least = self._random.choice([None, None, 1_000, 5_000])
        most = self._random.choice([None, None, 20_000, 50_000])
        each = self.size.orders * 35_000 // self.size.groups // 3
        daily = self._random.choice([None, None, max(each, 80_000)])
        count = self._random.choice([None, None, max(2, self.size.orders // self.size.groups // 4)])
        hours = self._random.choice(["", "", "", "23:30-22:30", "06:00-23:00"])
        return Limits(channel, least, most, daily, count, hours, self._random.randint(1, 9))

    def _wanted(self) -> Wanted:
        merchant = self._random.randrange(len(self.merchants))
        group = self._random.choice(self.merchants[merchant])
        fen = self._random.randrange(100, 70_000)
        edges = [edge for each in self.groups[group] for edge in (each.least, each.most) if edge]
        if edges and self._chance(0.3):
            fen = self._random.choice(edges) + self._random.choice([-1, 0, 1])
        does = self._random.choices([LEAVES, PAYS, PAYS_LATE, PAYS_OTHER_AMOUNT, PAYS_TWICE], [18, 74, 4, 2, 2])[0]
        return Wanted(
            at=self._second(20 * MINUTE),
            merchant=merchant,
            group=group,
            fen=fen,
            method=self._random.choices(["wxpay", "alipay"], [85, 15])[0],
            browser=self._random.choice(["pc", "mobile"]),
            does=does,
            waits=self._random.randrange(5, 400) if does != PAYS_LATE else self._random.randrange(901, 3 * HOUR),
            notice=self._random.choices(NOTICES, [80, 7, 6, 7])[0],
            patient=self._chance(0.3),
            together=self._chance(0.06),
        )

    def disturbance(self, channel: int, at: int) -> Outage | None:
        """The outage of a channel at a second of the day, if there is one."""
        return next((each for each in self.accounts[channel].outages if each.begin <= at < each.end), None)

    def facts(self) -> dict[str, Any]:
        """What the plan contains, for a report."""
        outages = [each for account in self.accounts for each in account.outages]
        return {
            "merchants": self.size.merchants,
            "channels": self.size.channels,
            "groups": self.size.groups,
            "orders": len(self.wanted),
            "outages": len(outages),
            "minutes of outages": sum(each.end - each.begin for each in outages) // MINUTE,
        }
