"""Merchants and payers: they create, pay, withdraw, refund, retry without a response, and replay old requests.

The other end of their connections may die at any moment.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import requests

from tests.support import CARD, MERCHANTS, PERSON, Answer, DemoApi, signed
from tests.torture.seen import RefundWish, Seen, Wish
from tests.torture.target import Target

PATIENCE = 60  # seconds for which a client repeats its request
PAUSE = 0.05
RUNNING = 40902  # another request with the same Idempotency-Key is in progress, or has failed
MOST_ORDERS = 3_000  # the operator's lists show 10,000 callbacks, at most three for each order
REPLAYED = (40103, 40104)
CREDITED_WITHIN = 5  # seconds for which a client repeats a refund of a deposit that is not credited yet
NOT_REFUNDABLE, BALANCE_TOO_LOW, CHANNEL_FAILED = 40904, 40901, 50201
BUY, SELL = 1, 2

# The payers' actions. `silent` is paid without a notice: the service must find out by a status check.
PAYERS = {"success": 60, "duplicate": 10, "fail": 10, "silent": 8, "late": 5, "nothing": 7}
# The outcomes of a deposit's next refund at the channel.
REFUNDS = {"success": 60, "processing": 20, "timeout": 10, "fail": 10}
# The channels of a merchant's withdrawals: channel 2 pays out, channel 1 fails and needs personal data.
WITHDRAWALS = {"demo": (2, 2, 1), "other": (2,)}
GATEWAY_A = {"gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}


def _is_busy(answer: Answer) -> bool:
    return answer.status == 503 or (answer.status == 409 and answer.code == RUNNING)


class Line:
    """One connection of a merchant, to any process; `api` signs for it."""

    def __init__(self, merchant: str, target: Target, seen: Seen):
        self._target, self._seen = target, seen
        self._http = requests.Session()
        self._http.trust_env = False
        self.api = DemoApi(self._send, merchant)

    def _send(self, method: str, path: str, body: bytes = b"", headers: Any = None) -> Answer:
        self._seen.count("requests")
        answer = self._http.request(
            method, self._target.url() + path, data=body, headers=headers, timeout=20, allow_redirects=False
        )
        return Answer(answer.status_code, answer.headers, answer.text)

    def once(self, call: Callable[[], Answer]) -> Answer | None:
        """Return the response, or None if the connection died: then the result is unknown."""
        try:
            answer = call()
        except requests.RequestException:
            self._seen.count("unanswered")
            time.sleep(PAUSE)
            return None
        if answer.status >= 500 and answer.status not in (502, 503):  # the channel refused; busy
            self._seen.wrong.append(f"{threading.current_thread().name} got {answer}")
        return answer

    def until_answered(self, call: Callable[[], Answer]) -> Answer | None:
        """Repeat the request until there is a response; return None after PATIENCE, which is recorded."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            answer = self.once(call)
            if answer is not None and not _is_busy(answer):
                return answer
            time.sleep(PAUSE)
        self._seen.wrong.append(f"{threading.current_thread().name} got no response for {PATIENCE} s")
        return None


class Client(threading.Thread):
    """One merchant's system, in a thread, until `over` is set; `pressing` is set when a payer presses Pay."""

    def __init__(
        self, number: int, seed: int, target: Target, seen: Seen, over: threading.Event, pressing: threading.Event
    ):
        super().__init__(name=f"client-{number}", daemon=True)
        self.merchant = list(MERCHANTS)[number % len(MERCHANTS)]
        self._rng = random.Random(f"{seed}-{number}")
        self._seen, self._over, self._pressing = seen, over, pressing
        self._line = Line(self.merchant, target, seen)
        self._made = 0
        self._old: deque[tuple[Wish, bytes]] = deque(maxlen=200)
        self._refunded: deque[tuple[RefundWish, bytes]] = deque(maxlen=200)

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self._turn()
                time.sleep(self._rng.uniform(0, 0.06))
        except Exception as error:
            self._seen.wrong.append(f"{self.name} failed: {error!r}")
            raise

    def _turn(self) -> None:
        if len(self._seen.wishes) < MOST_ORDERS:
            wish = self._wish()
            self._seen.wishes.append(wish)
            self._place(wish)
            if wish.told and wish.order_type == BUY and self._pay(wish) and self._rng.random() < 0.5:
                self._refund(wish)
        if self._old and self._rng.random() < 0.4:
            wish, body = self._rng.choice(self._old)
            self._replay(wish, body)
            if wish.key:
                self._place(wish)  # a repeated response must be about the same order
        if self._refunded and self._rng.random() < 0.3:
            refund, body = self._rng.choice(self._refunded)
            self._replay_refund(refund, body)
            self._request(refund)  # a repeated response must be about the same refund

    def _wish(self) -> Wish:
        self._made += 1
        number, order_type = f"{self.name}-{self._made}", self._rng.choices([BUY, SELL], [65, 35])[0]
        # A refused withdrawal also uses its nonce, so the same bytes could not distinguish that from success.
        keyed = order_type == SELL or self._rng.random() < 0.6
        return Wish(
            number,
            self.merchant,
            order_type,
            amount=self._rng.randrange(100, 3_000 if order_type == SELL else 20_000),
            channel=self._rng.choice(WITHDRAWALS[self.merchant]) if order_type == SELL else 2,
            key=f"key-{number}" if keyed else "",
        )

    def _body(self, wish: Wish) -> bytes:
        fields: dict[str, Any] = {
            "order_type": wish.order_type,
            "cny_amount": f"{wish.amount // 100}.{wish.amount % 100:02d}",
            "paychannel_id": wish.channel,
            "paychannel_paymethod": "bank",
            "merchant_order_no": wish.number,
        }
        more = GATEWAY_A if wish.channel == 1 else {}
        return json.dumps(signed("createOrder", fields | more, self.merchant), ensure_ascii=False).encode()

    def _place(self, wish: Wish) -> None:
        """Request an order until there is a response: with a new nonce if there is a key, otherwise the same bytes."""
        sent = [self._body(wish)]

        def create() -> Answer:
            if wish.key:
                sent.append(self._body(wish))
            answer = self._post(wish, sent[-1])
            wish.unstored = wish.unstored or answer.status == 503
            return answer

        answer = self._line.until_answered(create)
        if answer is not None:
            self._take(wish, sent[-1], answer)

    def _post(self, wish: Wish, body: bytes) -> Answer:
        headers = {"Idempotency-Key": wish.key} if wish.key else {}
        return self._line.api.post("createOrder", body, headers)

    def _take(self, wish: Wish, body: bytes, answer: Answer) -> None:
        if answer.code == 1:
            self._seen.count("told")
            self._seen.accept(json.loads(body)["nonce"])
            wish.told.append(answer.data["order_no"])
            self._old.append((wish, body))
        elif answer.code == 40104 and not wish.key:
            wish.spent = not wish.unstored  # an unread response reported it
        elif answer.code == 40901 and wish.order_type == SELL:
            self._seen.count("refused for their balance")
            wish.refused = answer.code
        else:
            self._seen.wrong.append(f"{wish.number} got {answer}")

    def _replay(self, wish: Wish, body: bytes) -> None:
        """Repeat a successful request, byte for byte."""
        answer = self._line.until_answered(lambda: self._post(wish, body))
        if answer is None:
            return
        self._seen.count("replays")
        if answer.code == 1:
            self._seen.accept(json.loads(body)["nonce"])
        elif answer.code not in REPLAYED:
            self._seen.wrong.append(f"the replay of {wish.number} got {answer}")

    def _pay(self, wish: Wish) -> bool:
        """Send the payer's choice until there is a response, as a channel repeats its notices.

        Returns: whether the deposit can be refunded soon.
        """
        outcome = self._rng.choices(list(PAYERS), list(PAYERS.values()))[0]
        if outcome == "nothing":
            return False
        order_no, api = wish.told[0], self._line.api
        self._seen.count("presses")
        self._pressing.set()
        self._line.until_answered(lambda: api.play(order_no, outcome))
        if outcome not in ("success", "duplicate"):
            return False
        if self._rng.random() < 0.3:
            self._notify_again(wish)
        return True

    def _notify_again(self, wish: Wish) -> None:
        """Repeat the notice of a deposit's payment."""
        order_no, api = wish.told[0], self._line.api
        self._line.until_answered(lambda: api.notice(order_no, wish.amount, reference=f"SB{order_no}"))

    def _refund(self, wish: Wish) -> None:
        """Refund a deposit that was paid: all of it, a part, or two parts of which the second follows at once."""
        part = self._rng.randrange(1, wish.amount)
        amounts = self._rng.choices([[wish.amount], [part], [part, wish.amount - part]], [50, 25, 25])[0]
        outcome = self._rng.choices(list(REFUNDS), list(REFUNDS.values()))[0]
        self._choose(wish.told[0], outcome)
        for position, amount in enumerate(amounts, start=1):
            refund = RefundWish(f"{wish.number}-r{position}", self.merchant, wish.told[0], amount)
            self._seen.refunds.append(refund)
            self._pressing.set()
            self._request(refund)
        if self._rng.random() < 0.3:
            self._notify_again(wish)  # also after a refund, it must change nothing

    def _choose(self, order_no: str, outcome: str) -> None:
        """Choose the outcome of the order's next refund at the channel."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        form = f"order_no={order_no}&outcome={outcome}".encode()
        self._line.until_answered(lambda: self._line.api.send("POST", "/sandbox/refund", form, headers))

    def _refund_body(self, refund: RefundWish) -> bytes:
        fields = {
            "order_no": refund.order_no,
            "cny_amount": f"{refund.amount // 100}.{refund.amount % 100:02d}",
            "merchant_refund_no": refund.number,
        }
        return json.dumps(signed("createRefund", fields, self.merchant)).encode()

    def _request(self, refund: RefundWish) -> None:
        """Request a refund until there is a response, each time with a new nonce; for a moment also while the deposit
        is not credited."""
        sent: list[bytes] = []
        give_up = time.monotonic() + CREDITED_WITHIN

        def create() -> Answer:
            sent.append(self._refund_body(refund))
            return self._line.api.post("createRefund", sent[-1])

        while (answer := self._line.until_answered(create)) is not None:
            waits = answer.code == NOT_REFUNDABLE and answer.data["reason"] == "state"
            if not waits or time.monotonic() > give_up:
                self._take_refund(refund, sent[-1], answer)
                return
            time.sleep(PAUSE)

    def _take_refund(self, refund: RefundWish, body: bytes, answer: Answer) -> None:
        not_credited = answer.code == NOT_REFUNDABLE and answer.data["reason"] == "state"
        if answer.code == 1:
            self._seen.count("refunds in responses")
            if answer.headers.get("Idempotency-Replayed") != "true":
                # Only the nonce that placed the refund is stored: later ones are in memory, like those of queries.
                self._seen.accept(json.loads(body)["nonce"])
                self._refunded.append((refund, body))
                if refund.told:
                    self._seen.wrong.append(f"a repeated request for {refund.number} got {answer}")
            refund.told.append(answer.data["refund_no"])
        elif answer.code == CHANNEL_FAILED and not refund.told:
            self._seen.count("refunds refused by the channel")
            refund.told.append(answer.data["refund_no"])
            self._refunded.append((refund, body))
        elif (answer.code == BALANCE_TOO_LOW or not_credited) and not refund.told:
            self._seen.count("refunds not possible")
            refund.refused = answer.code
        else:
            self._seen.wrong.append(f"{refund.number} got {answer}")

    def _replay_refund(self, refund: RefundWish, body: bytes) -> None:
        """Repeat an answered request for a refund, byte for byte."""
        answer = self._line.until_answered(lambda: self._line.api.post("createRefund", body))
        if answer is None:
            return
        self._seen.count("replays")
        if answer.code == 1:
            self._seen.accept(json.loads(body)["nonce"])
        elif answer.code not in REPLAYED:
            self._seen.wrong.append(f"the replay of {refund.number} got {answer}")
