"""A channel's account does not change while a refund is in progress at the present one."""

import pytest

from models.tables.order import Order
from models.tables.refund import Refund
from services.refunds import place
from services.refunds.place import Wanted
from tests.refunds import allow, refunded
from tests.support import completed
from tests.trial_service import Trial

CHANGE = ("channel", "set", "2", "--config", "secret=another-secret")
REFUSED = "refunds are in progress at the account of the present secret"


@pytest.fixture
def paid(api, monkeypatch):
    """A deposit that is not checked any more."""
    monkeypatch.setattr(Trial, "account_fields", ("secret",))
    allow()
    order_no = completed(api)
    Order.update(due_at=None).execute()
    return order_no


@pytest.mark.parametrize("state", ["pending", "confirmed"])
def test_an_open_refund_keeps_the_account(paid, api, flask, refuses, state):
    if state == "pending":
        place.place(Order.find(paid), Wanted(4_000, "merchant"))  # awaits its approval
    else:
        refunded(api, paid, "40.00", "silent")
    assert Refund.get().status == state
    assert REFUSED in refuses(*CHANGE)
    flask(*CHANGE, "--same-account")


def test_a_refund_that_is_still_checked_keeps_the_account_and_an_ended_one_does_not(paid, api, flask, refuses, later):
    refunded(api, paid, "40.00")
    assert REFUSED in refuses(*CHANGE)
    later(90_000, 3)
    assert Refund.get().due_at is None
    Order.update(due_at=None).execute()
    flask(*CHANGE)
