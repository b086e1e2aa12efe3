"""Epay platforms on loopback that fail as a plan says: unreachable, silent, slow, refusing, refusing and yet paid."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from runtime import money
from services.channels.order_numbers import order_no_of
from tests.services.channels.day_plan import BROKEN, CUT, DAY, HOUR, LOST, REFUSES, SLOW, Account, Outage
from tests.support import free_port
from tests.upstreams.epay import EpayPlatform

CREATES = ("mapi.php", "api/pay/create")
MADE, REFUSED, UNKNOWN = "made", "refused", "unknown"
DEADLINE, SLOWLY = 12, 6  # seconds of a call that has no response, and of one that has a late one
NOISE = 0.004  # share of the calls outside of outages that have no response
FOUND_AFTER_ALL = 0.15  # share of the refusals after which the platform still has the payment


class Gate:
    """The address of a platform: a port on which nothing listens while the platform is unreachable."""

    def __init__(self, server: HTTPServer):
        self.server, self.port = server, free_port()
        self.is_open = threading.Event()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._taken: list[socket.socket] = []
        self._ended = False
        self.open()
        threading.Thread(target=self._serve, daemon=True).start()

    def open(self) -> None:
        """Listen."""
        self._listener.listen(64)
        self.is_open.set()

    def shut(self) -> None:
        """Refuse connections, and end those that are idle; the port stays taken."""
        self.is_open.clear()
        self._listener.shutdown(socket.SHUT_RDWR)
        for each in self._taken:
            with suppress(OSError):  # it has ended
                each.shutdown(socket.SHUT_RDWR)
        self._taken.clear()

    def remove(self) -> None:
        """Give the port back."""
        self._ended = True
        if self.is_open.is_set():
            self.shut()
        self._listener.close()
        self.is_open.set()

    def _serve(self) -> None:
        while self.is_open.wait() and not self._ended:
            try:
                taken, whose = self._listener.accept()
            except OSError:
                continue  # shut
            self._taken = [each for each in self._taken if each.fileno() >= 0] + [taken]
            assert self.server.server is not None
            self.server.server.process_request(taken, whose)


@dataclass(frozen=True)
class Call:
    """One request to open a payment, and its result at the platform; `number` is that of the attempt."""

    place: int  # in the order of all platforms' calls
    at: float
    platform: int
    number: str
    result: str

    @property
    def order_no(self) -> str:
        """The order's number."""
        return order_no_of(self.number)


class Platform(EpayPlatform):
    """A platform that follows a plan; `begins` is the time at which the plan begins, and `calls_made` that of all.

    `passes(seconds)` lets time pass.
    """

    def __init__(
        self,
        server: HTTPServer,
        number: int,
        account: Account,
        life: str,
        seed: int,
        begins: int,
        log: list[Call],
        passes: Callable[[float], None],
    ):
        super().__init__(server, f"{life}{number}", key=f"an-epay-key-number-{number}")
        self.number, self.account, self.life, self.begins = number, account, life, begins
        self.gate = Gate(server)
        self.random = random.Random(f"{seed} {number}")
        self.log, self.passes = log, passes
        self.found: list[str] = []  # numbers of payments that it has although it refused them
        self.failures: list[float] = []  # times of calls without a response, and of refusals
        self.by_order: dict[str, list[str]] = {}
        self.delays: dict[str, int] = {}  # seconds that calls took, by order
        self._counting = threading.Lock()
        self._opened_on: dict[int, int] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gate.port}/{self.prefix}"

    def config_of_channel(self) -> dict[str, str]:
        """The config of its channel."""
        more = {} if self.account.has_query else {"no_status_checks": "true"}
        return self.config(self.account.version, **more, open_on_view="true" if self.account.opens_on_view else "false")

    def outage(self) -> Outage | None:
        """What disturbs it now, if anything does."""
        second = time.time() - self.begins
        return next((each for each in self.account.outages if each.begin <= second < each.end), None)

    # --- its own side of the calls

    def _misbehave(self, fault: str, request: Request) -> Response:
        path = request.path.removeprefix(f"/{self.prefix}/")
        with self._counting:
            outage, dice = self.outage(), self.random.random()
        kind = outage.kind if outage and dice < outage.share else ""
        if not outage and dice < NOISE:
            kind = LOST
        fault = {LOST: "lost", CUT: "unheard", BROKEN: "broken"}.get(kind, "")
        if path not in CREATES:
            if fault:
                with self._counting:
                    self.failures.append(time.time())
            return super()._misbehave(fault, request)
        fields = dict(parse_qsl(request.get_data().decode(), keep_blank_values=True))
        if kind in (LOST, SLOW):
            seconds, order_no = DEADLINE if kind == LOST else SLOWLY, order_no_of(fields["out_trade_no"])
            self.delays[order_no] = self.delays.get(order_no, 0) + seconds
            self.passes(seconds)
        made = super()._misbehave(fault, request)
        result = UNKNOWN if fault else REFUSED if '"code": -1' in made.get_data(as_text=True) else MADE
        with self._counting:
            if result != MADE:
                self.failures.append(time.time())
            self.log.append(Call(len(self.log), time.time(), self.number, fields["out_trade_no"], result))
        return made

    def _new_order(self, fields: dict[str, str]) -> dict[str, Any]:
        number, is_new = fields["out_trade_no"], fields["out_trade_no"] not in self.orders
        why = self._why_refused()
        if why and not (is_new and self.random.random() < FOUND_AFTER_ALL):
            return {"code": -1, "msg": why}
        said = super()._new_order(fields)
        if is_new and said["code"] == 0:
            self.orders[number]["trade_no"] = said["trade_no"] = f"{self.life}{self.number}-{len(self.orders)}"
            self.by_order.setdefault(order_no_of(number), []).append(number)
            today = int(time.time() + 8 * HOUR) // DAY
            self._opened_on[today] = self._opened_on.get(today, 0) + 1
        if why:
            self.found.append(number)
            return {"code": -1, "msg": why}
        return said

    def _why_refused(self) -> str:
        outage, today = self.outage(), int(time.time() + 8 * HOUR) // DAY
        if outage and outage.kind == REFUSES and self.random.random() < outage.share:
            return "商户已被限制收款"
        if self.account.takes is not None and self._opened_on.get(today, 0) >= self.account.takes:
            return "今日交易额度已用完，请明天再试"
        return ""

    # --- what people see of it

    def can_pay(self, number: str) -> bool:
        """Whether a payment is open."""
        there = self.orders[number]
        return there["status"] == "0" and "closed" not in there

    @property
    def received(self) -> int:
        """What its payers have paid, in fen."""
        return sum(money.fen(each["money"]) for each in self.orders.values() if each["status"] == "1")

    def paid(self, order_no: str) -> list[str]:
        """The numbers of an order's payments that were paid."""
        return [each for each in self.by_order.get(order_no, []) if self.orders[each]["status"] == "1"]
