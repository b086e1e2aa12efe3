"""The claims after the torture: each checks the recorded and the stored facts, and returns problems."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.torture.found import Found
from tests.torture.receiver import Receipt
from tests.torture.seen import Seen

BUY, SELL = 1, 2
COMPLETED, CANCELLED = "completed", "cancelled"
PAID = ("success", "duplicate", "silent", "late")  # outcomes by which money moved at the channel
REFUNDED = ("success", "processing", "timeout")  # and those of refunds
REQUESTED = ("merchant_refund_no", "order_no", "cny_amount")  # fields of a refund, as the client wants them
ABOUT_REFUNDS = ("reversed", "refund_abnormal", "refund_conflict")  # exceptions


@dataclass
class Evidence:
    """The facts for the claims; `wrong` are violations that killer and receiver saw."""

    seen: Seen
    found: Found
    got: list[Receipt] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def by_number(self) -> dict[str, dict[str, Any]]:
        return {order["order_no"]: order for order in self.found.orders}


Verdict = tuple[int, list[str]]  # the number of checked items, and the problems


def _yuan(fen: int) -> str:
    return f"{fen // 100}.{fen % 100:02d}"


def told_orders_exist(e: Evidence) -> Verdict:
    orders, wrong = e.by_number, []
    told = [(number, wish) for wish in e.seen.wishes for number in set(wish.told)]
    for number, wish in told:
        order = orders.get(number)
        found = order and (order["merchant"], order["merchant_order_no"], order["order_type"], order["cny_amount"])
        if found != (wish.merchant, wish.number, wish.order_type, _yuan(wish.amount)):
            wrong.append(f"{wish.number} got {number}, which has {found}")
    return len(told), wrong


def wishes_are_fulfilled_once(e: Evidence) -> Verdict:
    made = Counter(order["merchant_order_no"] for order in e.found.orders)
    wrong = [f"an order without a wish: {number}" for number in made.keys() - {w.number for w in e.seen.wishes}]
    for wish in e.seen.wishes:
        if len(set(wish.told)) > 1:
            wrong.append(f"{wish.number} got several orders: {sorted(set(wish.told))}")
        expected = 0 if wish.refused else 1
        if made[wish.number] != expected and (wish.told or wish.spent or wish.refused or made[wish.number] > 1):
            wrong.append(f"{wish.number} should exist {expected} times and exists {made[wish.number]} times")
    return len(e.seen.wishes), wrong


def nonces_count_once(e: Evidence) -> Verdict:
    return len(e.seen.accepted), [
        f"nonce {nonce} was accepted {times} times" for nonce, times in e.seen.accepted.items() if times > 1
    ]


def the_ledger_verifies(e: Evidence) -> Verdict:
    return len(e.found.orders), e.found.off


def balances_are_what_orders_and_refunds_say(e: Evidence) -> Verdict:
    expected = {key: dict(money) for key, money in e.found.before.items()}
    for order in e.found.orders:
        money, fen = expected[order["merchant"]], order["merchant_actual_amount"]
        if order["order_type"] == BUY:
            money["available"] += fen if order["status"] == COMPLETED else 0
        elif order["status"] != CANCELLED:
            money["available"] -= fen
            money["held"] += 0 if order["status"] == COMPLETED else fen
    for refund in e.found.refunds:
        money, fen = expected[refund["merchant"]], refund["merchant_actual_amount"]
        if refund["status"] != CANCELLED:
            money["available"] -= fen
            money["held"] += 0 if refund["status"] == COMPLETED else fen
    return len(expected), [
        f"{key} has {e.found.balances.get(key)}, the orders and refunds sum to {money}"
        for key, money in expected.items()
        if e.found.balances.get(key) != money
    ]


def payments_are_credited(e: Evidence) -> Verdict:
    orders, wrong = e.by_number, []
    paid = [no for no, play in e.found.books.items() if play.payout_at is None and play.outcome in PAID]
    for number in paid:
        order = orders.get(number, {"status": "missing"})
        # No one was notified of money that came silently for an ended order.
        lost = order["status"] == CANCELLED and e.found.books[number].outcome == "silent"
        if order["status"] != COMPLETED and not lost and "late_payment" not in e.found.exceptions.get(number, ""):
            wrong.append(f"{number} was paid and is {order['status']}, without an exception")
    credited = [o["order_no"] for o in e.found.orders if o["order_type"] == BUY and o["status"] == COMPLETED]
    wrong += [f"{number} was credited and never paid" for number in set(credited) - set(paid)]
    return len(paid), wrong


def payouts_are_spent(e: Evidence) -> Verdict:
    orders, wrong = e.by_number, []
    handed_in = {number: play for number, play in e.found.books.items() if play.payout_at is not None}
    for number, play in handed_in.items():
        order = orders.get(number, {"status": "missing", "order_type": None, "cny_amount": None})
        status = COMPLETED if play.outcome in PAID else CANCELLED
        found = (order["order_type"], order["status"], order["cny_amount"])
        if found != (SELL, status, _yuan(play.amount)):
            wrong.append(
                f"the channel has a payout {number} of {play.amount} fen ({play.outcome}), the service has {found}"
            )
    spent = {o["order_no"] for o in e.found.orders if o["order_type"] == SELL and o["status"] == COMPLETED}
    wrong += [f"{number} is completed, and the channel has no payout" for number in spent - handed_in.keys()]
    return len(handed_in), wrong


def told_refunds_exist_once(e: Evidence) -> Verdict:
    made, wrong = {refund["refund_no"]: refund for refund in e.found.refunds}, []
    times = Counter((refund["merchant"], refund["merchant_refund_no"]) for refund in e.found.refunds)
    wanted = {(wish.merchant, wish.number) for wish in e.seen.refunds}
    wrong += [f"a refund without a wish: {number}" for number in times.keys() - wanted]
    for wish in e.seen.refunds:
        if len(set(wish.told)) > 1:
            wrong.append(f"{wish.number} got several refunds: {sorted(set(wish.told))}")
        for refund_no in set(wish.told):
            refund = made.get(refund_no)
            found = refund and tuple(refund[name] for name in ("merchant", *REQUESTED))
            if found != (wish.merchant, wish.number, wish.order_no, _yuan(wish.amount)):
                wrong.append(f"{wish.number} got {refund_no}, which has {found}")
        expected, count = 0 if wish.refused else 1, times[wish.merchant, wish.number]
        if count != expected and (wish.told or wish.refused or count > 1):
            wrong.append(f"{wish.number} should exist {expected} times and exists {count} times")
    return len(e.seen.refunds), wrong


def refunds_are_sent_back_once(e: Evidence) -> Verdict:
    """Each refund is completed if the channel has sent its money back, and cancelled if it has not."""
    made, wrong = {refund["refund_no"]: refund for refund in e.found.refunds}, []
    sent = {
        refund_no: each
        for refund_no, each in e.found.sent_back.items()
        if each.accepted_at is not None and each.outcome in REFUNDED
    }
    for refund_no, each in sent.items():
        refund = made.get(refund_no, {"order_no": None, "status": "missing", "cny_amount": None})
        found = (refund["order_no"], refund["status"], refund["cny_amount"])
        if found != (each.order_no, COMPLETED, _yuan(each.amount)):
            wrong.append(f"the channel refunded {each.amount} fen of {each.order_no}, {refund_no} has {found}")
    completed = {refund["refund_no"] for refund in e.found.refunds if refund["status"] == COMPLETED}
    wrong += [f"{refund_no} is completed, and the channel has not sent it" for refund_no in completed - sent.keys()]
    sums: Counter[str] = Counter()
    for each in sent.values():
        sums[each.order_no] += each.amount
    for number, fen in sums.items():
        if number not in e.found.books or fen > e.found.books[number].amount:
            wrong.append(f"the channel sent back {fen} fen of {number}, which is more than was paid")
    for number in {refund["order_no"] for refund in e.found.refunds}:
        kinds = e.found.exceptions.get(number, "")
        wrong += [f"{number} has the exception {kind}" for kind in ABOUT_REFUNDS if kind in kinds]
    return len(e.found.sent_back), wrong


def refunds_come_to_their_end(e: Evidence) -> Verdict:
    return len(e.found.refunds), [
        f"{refund['refund_no']} stays {refund['status']}"
        for refund in e.found.refunds
        if refund["status"] not in (COMPLETED, CANCELLED)
    ]


def orders_come_to_their_end(e: Evidence) -> Verdict:
    return len(e.found.orders), [
        f"{order['order_no']} stays {order['status']}"
        for order in e.found.orders
        if order["status"] not in (COMPLETED, CANCELLED)
    ]


def results_arrive_under_one_id(e: Evidence) -> Verdict:
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    bodies: dict[str, set[bytes]] = defaultdict(set)
    taken = set()
    for receipt in e.got:
        ids[receipt.about, receipt.event].add(receipt.webhook_id)
        bodies[receipt.webhook_id].add(receipt.body)
        if receipt.taken:
            taken.add((receipt.about, receipt.event))
    ended = (COMPLETED, CANCELLED)
    results = {(o["order_no"], f"order.{o['status']}") for o in e.found.orders if o["status"] in ended}
    results |= {(r["refund_no"], f"refund.{r['status']}") for r in e.found.refunds if r["status"] in ended}
    wrong = [f"{event} of {number} never arrived" for number, event in results - taken]
    wrong += [
        f"{event} of {number} arrived as {sorted(those)}" for (number, event), those in ids.items() if len(those) > 1
    ]
    wrong += [f"{webhook_id} arrived with several bodies" for webhook_id, those in bodies.items() if len(those) > 1]
    wrong += [f"{number} arrived as completed and as cancelled" for number in _contradictions(ids)]
    return len(results), wrong


def _contradictions(ids: Any) -> set[str]:
    ends = {end: {number for number, event in ids if event.endswith(f".{end}")} for end in (COMPLETED, CANCELLED)}
    return ends[COMPLETED] & ends[CANCELLED]


def the_outbox_agrees(e: Evidence) -> Verdict:
    came = {(receipt.webhook_id, receipt.order_no, receipt.event) for receipt in e.got if receipt.taken}
    rows = {(row["id"], row["order_no"], row["type"]): row["state"] for row in e.found.callbacks}
    wrong = [f"{row} is {state}" for row, state in rows.items() if state != "delivered"]
    wrong += [f"{row} is recorded as delivered and was never received" for row in rows.keys() - came]
    wrong += [f"{row} arrived and is not in the outbox" for row in came - rows.keys()]
    return len(rows), wrong


def nothing_else_went_wrong(e: Evidence) -> Verdict:
    return e.seen.counts["requests"], e.seen.wrong + e.wrong


CLAIMS: dict[str, Callable[[Evidence], Verdict]] = {
    "every order in a response exists": told_orders_exist,
    "every request creates at most one order, however often it was repeated": wishes_are_fulfilled_once,
    "no nonce is accepted twice": nonces_count_once,
    "the ledger passes its integrity check": the_ledger_verifies,
    "the balances agree with the orders and refunds": balances_are_what_orders_and_refunds_say,
    "exactly the paid amounts are credited": payments_are_credited,
    "exactly the paid out amounts are spent": payouts_are_spent,
    "every order has ended": orders_come_to_their_end,
    "every refund in a response exists once under its number": told_refunds_exist_once,
    "exactly the completed refunds were sent back": refunds_are_sent_back_once,
    "every refund has ended": refunds_come_to_their_end,
    "every result reached the receiver under one webhook-id": results_arrive_under_one_id,
    "outbox and receiver agree": the_outbox_agrees,
    "no internal error, invalid signature, unexpected end or hanging stop": nothing_else_went_wrong,
}
