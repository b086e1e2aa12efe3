"""A random life of a manual channel, as neutral facts: deposits, and the movements of its account with their truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

# What a statement's row can become. Each row becomes exactly one of them.
MATCHED, RECORDED, NOT_IN, DECIDE = "matched", "recorded before", "not money in", "to decide"
SURE = frozenset({MATCHED})
OPEN = frozenset({DECIDE})
LEFT = frozenset({DECIDE, NOT_IN})  # never money in, whichever words explain it
SAFE = frozenset({MATCHED, DECIDE})  # right if it is matched; the reader may also ask

# What a statement says about a payment, where it has a column for it.
OK, RETURNED, FAILED, WAITING, UNKNOWN = "ok", "returned", "failed", "in progress", "no known word"

# A few minutes after midnight in China, when it is still yesterday in UTC: a server's own day would be the wrong one.
PLACED = datetime(2026, 11, 2, 0, 20)
READ = PLACED + timedelta(minutes=12)  # when the statement is uploaded

NAMES = ("张伟", "王芳", "李娜", "欧阳娜娜", "陈*", "阿依古丽·买买提", "深圳市万物有限公司", "Li Lei", "O'Neil", "㛃明")
AROUND = (
    "{}",
    "货款{}谢谢",
    "订单号:{}",
    "付款 {} 请查收",
    "转账备注:{}",
    '他说"已付",单号{}，请发货',
    "第一行\n{}\n第三行",
    "a;b,c;{};d",
    "【{}】充值",
    "{}/张三",
    "订单号：{}。",
    "`{}`",
    "{},`a,`收入,`1.00",
    "'{}'\t2",
)
# How a bank or a spreadsheet can spell an amount. Only the first few are what banks write themselves.
USUAL_AMOUNTS = ("plain", "grouped", "sign of yuan", "plus")
ODD_AMOUNTS = ("no leading zero", "full width", "third decimal", "full-width comma", "CNY", "unit", "short", "blanks")
REFERENCES = ("plain", "plain", "tab", "tab", "backtick", "apostrophe", "blanks")
PLACEHOLDERS = ("0", "-", "/", "00000000", "--", "")


@dataclass(frozen=True)
class Deposit:
    """A deposit on the manual channel. `amount` is in fen; `number` is the merchant's; `state` as the life left it."""

    key: str
    merchant: str
    amount: int
    number: str = ""
    state: str = "claimed"  # or pending, cancelled, completed with a transaction ID, completed without one
    reference: str = ""


@dataclass(frozen=True)
class Movement:
    """One movement of the account. `amount` is in fen, negative if the account lost it; `at` is the time in China.

    `pays` is the deposit whose payment it is, in truth. `outcomes` are what a careful reader may make of it. A note
    names orders as `<key>`, until `named` replaces their numbers.
    """

    story: str
    at: datetime
    amount: int
    outcomes: frozenset[str]
    note: str = ""
    pays: str = ""
    reference: str = ""
    currency: str = "CNY"
    status: str = OK
    payer: str = "张伟"
    account: str = "6222020000000000017"
    red: bool = False  # a statement with two columns shows it as a negative amount in the column of its direction
    amount_as: str = "plain"
    reference_as: str = "plain"
    kind: str = "transfer"  # or fee, interest, refund, internal, foreign
    needs_id: bool = False  # without its transaction ID nobody could tell what it is

    @property
    def placeholder(self) -> bool:
        """Whether its transaction ID only fills the column."""
        return self.reference_as == "placeholder"


@dataclass
class Life:
    """The deposits, the withdrawals (amounts in fen by key) and the movements of the channel's account."""

    deposits: list[Deposit] = field(default_factory=list)
    withdrawals: dict[str, int] = field(default_factory=dict)
    movements: list[Movement] = field(default_factory=list)

    def named(self, numbers: dict[str, str]) -> list[Movement]:
        """Return the movements, with the service's numbers of the orders in their notes."""

        def written(text: str) -> str:
            for key, number in numbers.items():
                text = text.replace(f"<{key}>", number)
            return text

        return [replace(each, note=written(each.note), payer=written(each.payer)) for each in self.movements]


class _Teller:
    """Tells one life: deposits and movements with amounts and numbers that nothing else has."""

    def __init__(self, seed: int):
        self.rng, self.life = Random(seed), Life()
        # Amounts of 60.00 to 1,500.00; a tenth differ by one fen from another.
        self._amounts = self.rng.sample(range(6_000, 150_000), 80)
        self._numbers = self.rng.sample(range(100_000, 999_999), 80)
        self._count = 0

    def amount(self) -> int:
        return self._amounts.pop()

    def number(self) -> str:
        style = self.rng.choice(("SHOP-{}", "2026{}", "A{}", "wx_{}", "订单{}", "{}-1"))
        return style.format(self._numbers.pop())

    def reference(self) -> str:
        """A transaction ID of the bank: digits, in the length of one of the banks."""
        self._count += 1
        length = self.rng.choice((9, 16, 22, 28))
        return f"{self._count + 10}{self.rng.randrange(10 ** (length - 2)):0{length - 2}d}"

    def deposit(self, amount: int = 0, merchant: str = "demo", number: str = "", **more: str) -> Deposit:
        key = f"d{len(self.life.deposits) + 1:02d}"
        made = Deposit(key, merchant, amount or self.amount(), number, **more)
        self.life.deposits.append(made)
        return made

    def around(self, text: str) -> str:
        return self.rng.choice(AROUND).format(text)

    def moves(self, story: str, amount: int, outcomes: frozenset[str], note: str = "", **more: object) -> Movement:
        facts: dict[str, object] = {
            "at": PLACED + timedelta(seconds=self.rng.randrange(20, 600)),
            "reference": self.reference(),
            "payer": self.rng.choice(NAMES),
            "account": f"62{self.rng.randrange(10**17):017d}",
            "reference_as": self.rng.choice(REFERENCES),
            "amount_as": self.rng.choice(USUAL_AMOUNTS if self.rng.random() < 0.7 else ODD_AMOUNTS),
        }
        made = Movement(story, amount=amount, outcomes=outcomes, note=note, **(facts | more))  # type: ignore[arg-type]
        if made.amount_as in ODD_AMOUNTS and made.outcomes == SURE:
            made = replace(made, outcomes=SAFE)
        self.life.movements.append(made)
        return made

    def paid(
        self, story: str, outcomes: frozenset[str], note: str = "", state: str = "claimed", **more: object
    ) -> Movement:
        """A deposit and its payment, whose note has the deposit's number for `<>`."""
        made = self.deposit(state=state)
        return self.moves(story, made.amount, outcomes, note.replace("<>", f"<{made.key}>"), pays=made.key, **more)


def _paid_by_our_number(t: _Teller) -> None:
    for _ in range(3):
        t.paid("names our number", SURE, t.around("<>"))
    t.paid("names our number of an unclaimed deposit", SURE, t.around("<>"), "pending")
    made = t.deposit(t.rng.choice((50, 7, 99)))
    style = t.rng.choice(("no leading zero", "plain", "full width"))
    outcomes = SURE if style == "plain" else SAFE
    t.moves("less than a yuan", made.amount, outcomes, f"<{made.key}>", pays=made.key, amount_as=style)


def _paid_by_the_merchants_number(t: _Teller) -> None:
    made = t.deposit(number=t.number())
    outcomes = SURE if made.number.isascii() else SAFE
    t.moves("names the merchant's number", made.amount, outcomes, t.around(made.number), pays=made.key)


def _paid_without_a_note(t: _Teller) -> None:
    t.paid("the only claim of its amount", SURE, t.rng.choice(("", "转账", "/")))
    t.paid("the amount of an unclaimed deposit", OPEN, state="pending")


def _equal_amounts(t: _Teller) -> None:
    one = t.deposit()
    two = t.deposit(one.amount, merchant=t.rng.choice(("demo", "other")))
    t.moves("one payment for two equal claims", one.amount, OPEN, pays=t.rng.choice((one.key, two.key)))
    one = t.deposit()
    two = t.deposit(one.amount)
    for each in (one, two):
        t.moves("equal amounts, each named", one.amount, SURE, t.around(f"<{each.key}>"), pays=each.key)
    made = t.deposit()
    for pays in (made.key, ""):
        t.moves("two payments for one claim", made.amount, OPEN, pays=pays)


def _copied_numbers(t: _Teller) -> None:
    number, amount = t.number(), t.amount()
    t.deposit(amount, "other", number)
    mine = t.deposit(amount, "demo", number)
    t.moves("a number that two shops have", amount, OPEN, t.around(number), pays=mine.key)
    number, amount = t.number(), t.amount()
    t.deposit(amount, "demo", number, state=t.rng.choice(("cancelled", "completed")), reference=t.reference())
    t.deposit(amount, "other", number)
    t.moves("late, for an ended order whose number another shop copied", amount, OPEN, t.around(number))


def _names_another_order(t: _Teller) -> None:
    claim, other = t.deposit(), t.deposit(merchant="other", number=t.number())
    t.moves("names another shop's order, and has a claim's amount", claim.amount, OPEN, t.around(other.number))
    claim, mine = t.deposit(), t.deposit()
    t.moves("names an order of another amount", claim.amount, OPEN, t.around(f"<{mine.key}>"))
    claim = t.deposit()
    ended = t.deposit(state="cancelled")
    t.moves("late for a cancelled order, with a claim's amount", claim.amount, OPEN, t.around(f"<{ended.key}>"))
    one, two = t.deposit(), t.deposit()
    t.moves("names two orders", one.amount, OPEN, f"<{one.key}>和<{two.key}>")
    one, two = t.deposit(), t.deposit()
    looks = t.rng.choice((f"<{two.key}>", "SHOP-1"))
    t.moves("a payer whose name looks like a number", one.amount, SAFE, f"<{one.key}>", pays=one.key, payer=looks)


def _wrong_amount(t: _Teller) -> None:
    made = t.deposit()
    amount = made.amount + t.rng.choice((-1, 1, -made.amount + made.amount // 10, made.amount * 9))
    t.moves("named, with another amount", amount, OPEN, t.around(f"<{made.key}>"))


def _confirmed_before(t: _Teller) -> None:
    made = t.deposit(state="completed", reference=t.reference())
    more = {"reference": made.reference, "pays": made.key}
    t.moves("recorded before", made.amount, frozenset({RECORDED}), t.around(f"<{made.key}>"), **more)
    made, claim = t.deposit(state="completed", reference=t.reference()), t.deposit()
    t.moves(
        "a recorded transaction ID with another amount", claim.amount, OPEN, reference=made.reference, needs_id=True
    )
    made = t.deposit(state="completed without ID")
    t.deposit(made.amount, merchant="other")
    t.moves("recorded without ID; a claim has its amount", made.amount, OPEN, pays=made.key)
    t.paid("names an order that ended", LEFT | {RECORDED}, "<>", "completed without ID")


def _older_than_its_claim(t: _Teller) -> None:
    made = t.deposit()
    at = PLACED - timedelta(days=2, minutes=t.rng.randrange(300))
    t.moves("older than the only claim of its amount", made.amount, OPEN, at=at)


def _money_out(t: _Teller) -> None:
    for _ in range(2):
        key, amount = f"w{len(t.life.withdrawals) + 1:02d}", t.amount()
        t.life.withdrawals[key] = amount
        t.moves("a payout", -amount, frozenset({NOT_IN}), t.around(f"<{key}>"))
    made = t.deposit(amount)
    t.moves("a payout that bounced, with a claim's amount", made.amount, LEFT, f"退汇<{key}>户名不符", kind="refund")
    t.moves("a fee of the bank", -t.rng.randrange(10, 2_000), frozenset({NOT_IN}), "手续费", kind="fee")
    made = t.deposit()
    t.moves("a payout of a claim's amount", -made.amount, frozenset({NOT_IN}), f"<{made.key}>")
    t.moves("interest", t.rng.randrange(1, 99), LEFT, "结息", kind="interest", payer="")
    t.moves("from another own account", t.amount(), LEFT, "内部转账", kind="internal")


def _taken_back(t: _Teller) -> None:
    for red, again in ((True, True), (False, True), (False, False)):
        made = t.deposit()
        first = t.moves("reversed later", made.amount, LEFT, f"<{made.key}>", pays=made.key)
        later = first.at + timedelta(seconds=20)
        more = {"reference": first.reference} if again else {}
        note = f"冲正{first.reference if not again else ''}<{made.key}>"
        t.moves("a reversal", -made.amount, LEFT, note, red=red, kind="refund", at=later, payer=first.payer, **more)
    t.paid("refunded by its status", LEFT, "<>", status=RETURNED)


def _not_yet(t: _Teller) -> None:
    for status in (FAILED, WAITING, UNKNOWN):
        t.paid(f"with the status: {status}", OPEN if status == UNKNOWN else LEFT, "<>", status=status)


def _foreign(t: _Teller) -> None:
    made = t.deposit()
    currency = t.rng.choice(("USD", "HKD"))
    t.moves("another currency", made.amount, LEFT, f"<{made.key}>", currency=currency, kind="foreign")


def _without_an_id(t: _Teller) -> None:
    for _ in range(2):
        text = t.rng.choice(PLACEHOLDERS)
        t.paid("a placeholder for the ID", SAFE, t.around("<>"), reference=text, reference_as="placeholder")


def _written_twice(t: _Teller) -> None:
    t.life.movements.append(t.paid("the same row twice", SAFE | {RECORDED, NOT_IN}, "<>"))


SCENES: tuple[Callable[[_Teller], None], ...] = (
    _paid_by_our_number,
    _paid_by_the_merchants_number,
    _paid_without_a_note,
    _equal_amounts,
    _copied_numbers,
    _names_another_order,
    _wrong_amount,
    _confirmed_before,
    _older_than_its_claim,
    _money_out,
    _taken_back,
    _not_yet,
    _foreign,
    _without_an_id,
    _written_twice,
)


def life(seed: int) -> Life:
    """Return the life with this seed: every scene once, in random order, its movements by time as in a statement."""
    teller = _Teller(seed)
    for scene in teller.rng.sample(SCENES, len(SCENES)):
        scene(teller)
    newest_first = teller.rng.random() < 0.5
    teller.life.movements.sort(key=lambda each: each.at, reverse=newest_first)
    return teller.life


def taken_back(movement: Movement) -> Movement:
    """Return the row, a day later, by which a bank takes back a payment, as a red entry with the same ID."""
    later, note = movement.at + timedelta(days=1), f"冲正{movement.note}"
    return replace(movement, at=later, amount=-movement.amount, red=True, outcomes=LEFT, note=note, kind="refund")


def plain(seed: int) -> Life:
    """Return a life in which everything is right: six claims, each paid once; four are named, two have no note."""
    teller = _Teller(seed)
    for note in ["货款<>"] * 4 + [""] * 2:
        teller.paid("paid", SURE, note, amount_as="plain", reference_as="plain", payer="张伟")
    teller.life.movements.sort(key=lambda each: each.at)
    return teller.life
