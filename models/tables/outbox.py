"""The callback outbox: events for merchants, and all attempts to deliver them."""

from typing import Any

from peewee import Check, ForeignKeyField, IntegerField, TextField

from models.db.base import Table, Timestamp, constant
from models.db.compiled import compiled
from models.tables.merchant import Merchant
from models.tables.order import Order

WAITING, DELIVERED, DEAD = CALLBACK_STATES = ("pending", "delivered", "dead")


class Callback(Table):
    """One event for one merchant. `body` is sent byte for byte; `webhook_id` is the same on every attempt.

    The same event of the same order always has the same `webhook_id`, also in a database restored from a backup.
    `due_at` is the time of the next attempt, null once it is delivered or has failed.
    """

    webhook_id = TextField(unique=True)
    merchant = ForeignKeyField(Merchant, index=False)
    order = ForeignKeyField(Order)
    type = TextField()
    body = TextField()
    state = TextField(default=WAITING, constraints=[Check("state IN ('pending', 'delivered', 'dead')")])
    attempts = IntegerField(default=0)
    due_at = Timestamp(null=True)
    createtime = Timestamp()
    updatetime = Timestamp()

    class Meta:
        constraints = [Check("(state = 'pending') = (due_at IS NOT NULL)")]

    def claim(self, until: int) -> bool:
        """Claim it for one attempt, until `until`; False if another worker was quicker."""
        taken: bool = _claim(self.id, self.due_at, until) == 1
        if taken:
            self.due_at = until  # type: ignore[assignment]
        return taken


Callback.add_index(
    Callback.index(Callback.merchant, Callback.due_at, where=Callback.due_at.is_null(False), name="callback_due")
)
Callback.add_index(Callback.merchant, Callback.state, Callback.createtime, name="callback_state")


@compiled
def _claim(callback_id: int, due_at: int, until: int) -> Any:
    return Callback.update(due_at=until).where(Callback.id == callback_id, Callback.due_at == due_at)


class WebhookKey(Table):
    """One row: the random key, as hex, from which every `webhook_id` is derived. It never changes."""

    key = TextField()


def webhook_key() -> bytes:
    """Return the key of the open database."""
    return constant("webhook_key", lambda: bytes.fromhex(WebhookKey.get().key))


class CallbackAttempt(Table):
    """One attempt: its time, HTTP status (null without a response), duration, and the first KiB of the response."""

    callback = ForeignKeyField(Callback)
    at = Timestamp()
    status = IntegerField(null=True)
    milliseconds = IntegerField()
    answer = TextField(default="")
