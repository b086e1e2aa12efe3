"""A test callback: one signed POST to a merchant, and its result in plain words. Nothing is stored."""

from __future__ import annotations

import time
from dataclasses import dataclass

from models.tables.merchant import Merchant
from models.tables.order import BUY, COMPLETED, Order
from runtime import clock
from schemas.views import order_view
from services.callbacks import delivery, outbox
from services.errors import N_, OperatorError

TYPE = "test"
ORDER_NO = "0" * 24  # impossible for an order, whose number begins with a date

# The problem, by the name of the error that ended the attempt.
ERRORS = {
    "AddressRefused": N_(
        "The address is in a private network, which the service does not call. To allow it, set "
        "ORDERS_PRIVATE_CALLBACKS=1."
    ),
    "SSLError": N_("The server's certificate has expired or is for a different host name. Renew it."),
    "ConnectTimeout": N_("The connection timed out. Check your firewall."),
    "ConnectionError": N_("Connection failed. Check the host name and that the server is running."),
    "InvalidSchema": N_("The address must start with https:// or http://."),
}
LATE = N_("The server did not respond within 10 seconds.")
NO_ANSWER = N_("The server sent no valid response.")
# The problem by HTTP status; the hundreds are for all their other statuses.
STATUSES = {
    400: N_("The server rejected the callback. Check its log."),
    401: N_("The server rejected the signature. Check that it uses this merchant's callback secret."),
    403: N_("The server denied access. Check that it accepts the signature and this service's IP address."),
    404: N_("Not found. Check the path of the address."),
    405: N_("The server does not accept POST requests at this address."),
    410: N_("The server responded 410. A real callback would not be retried."),
    500: N_("The server failed to process the callback. Check its log."),
}


@dataclass(frozen=True)
class Outcome:
    """The result: the HTTP status (None without one), and the first KiB of the response, or the error."""

    webhook_id: str
    status: int | None
    milliseconds: int
    answer: str

    @property
    def delivered(self) -> bool:
        """True if a real callback would count as delivered."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def problem(self) -> str:
        """The error in English for translation, or ""."""
        if self.delivered:
            return ""
        if self.status is not None:
            redirect = delivery.redirect_problem(self.status, self.answer)
            return redirect or STATUSES.get(self.status) or STATUSES.get(self.status // 100 * 100, NO_ANSWER)
        late = self.milliseconds >= delivery.TIMEOUT * 1000 - 500
        return LATE if late else ERRORS.get(self.answer.partition(":")[0], NO_ANSWER)


def _body(now: int) -> str:
    """Return an example order in the format of the queries."""
    example = Order(
        order_no=ORDER_NO,
        merchant_order_no="TEST",
        order_type=BUY,
        amount=100,
        merchant_actual_amount=100,
        service_rate=0,
        service_amount=0,
        status=COMPLETED,
        createtime=now,
        updatetime=now,
    )
    return outbox.body_of(TYPE, now, order_view.of(example))


def callback(merchant: Merchant) -> Outcome:
    """Send a test callback like a real one, in at most ten seconds. Raises OperatorError without a callback URL."""
    if not merchant.callback_url:
        raise OperatorError(N_("%(key)s has no callback URL. Set one first."), key=merchant.key)
    webhook_id, started = outbox.new_webhook_id(), time.monotonic()
    status, answer = delivery.send(merchant, webhook_id, _body(clock.now()))
    return Outcome(webhook_id, status, round((time.monotonic() - started) * 1000), answer)
