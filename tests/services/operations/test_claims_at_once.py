"""Confirmations of one amount that happen at the same time: each knows of the other."""

import threading
import time

from models.db.writer import transaction
from models.tables.order import BUY, Order
from runtime import clock
from services.deposits import claims
from services.operations import claims as decisions
from services.operations.claims import MAY_BE_RECORDED, RECEIVED, FromStatement
from services.security.audit import HERE


def test_a_payment_that_is_recorded_at_this_moment_is_not_confirmed_from_a_statement(app, claimed):
    first, second = claimed("199.00"), claimed("199.00")
    (row,) = decisions.preview(RECEIVED, Order.numbered(BUY, [second]))
    read = FromStatement(reference="BANK-1001", uploaded=clock.now(), together=frozenset({second}))
    recorded, outcomes = threading.Event(), []

    @transaction
    def record_without_an_id():
        claims.confirm(Order.find(first))
        recorded.set()
        time.sleep(0.5)  # the other one starts before this is committed

    def confirm_from_the_statement():
        recorded.wait()
        outcomes.extend(decisions.decide(RECEIVED, {second: row.action.seal}, {second: read}, HERE))

    def in_the_app(act):
        with app.app_context():
            act()

    both = [
        threading.Thread(target=in_the_app, args=[act]) for act in (record_without_an_id, confirm_from_the_statement)
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert [str(outcome.refusal) for outcome in outcomes] == [MAY_BE_RECORDED]
    assert [Order.find(number).status for number in (first, second)] == ["completed", "paid"]
