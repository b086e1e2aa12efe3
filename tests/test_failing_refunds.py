"""Each statement of each step of a refund fails in turn: nothing is half done, and the payer gets the money once."""

import json
from itertools import count

import pytest
from peewee import OperationalError

from gateways.sandbox.driver import SandboxDriver
from gateways.sandbox.records import books
from models.tables.ledger import Posting
from models.tables.merchant import Merchant
from models.tables.order import Order, PaymentException
from models.tables.outbox import Callback
from models.tables.refund import Refund, RefundHistory
from services.errors import OperatorError
from services.jobs import sweep
from services.ledger import integrity
from services.merchants import cache
from services.refunds import approve
from tests.failing import Killed, done_but_not_told, dying, failing, failing_connections, refused, rolled_back
from tests.support import InlinePool, completed, sandbox_signed

HOW = [refused, rolled_back, done_but_not_told]


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 10_000}


@pytest.fixture(autouse=True)
def world(app, world, shop):
    with failing_connections():
        yield world


@pytest.fixture
def mode(app):
    """`mode("automatic")` sets the refunds of the merchant `demo`."""

    def change(name):
        Merchant.update(refund_mode=name, refund_auto_max=10**6).where(Merchant.key == "demo").execute()
        cache.forget()

    change("automatic")
    return change


STEP = (RefundHistory.before, RefundHistory.after)


def outline(order_no):
    """The facts of an order and of its refunds, without numbers and times."""
    order = Order.find(order_no)

    def rows(table, *columns, where=None):
        where = table.order == order if where is None else where
        return list(table.select(*columns).where(where).order_by(table.id).tuples())

    mine = RefundHistory.refund.in_(Refund.select(Refund.id).where(Refund.order == order))
    return {
        "status": order.status,
        "refunds": rows(Refund, Refund.status, Refund.amount, Refund.approved_by != ""),
        # A lost response is in the history, too.
        "history": [
            row
            for row in rows(RefundHistory, RefundHistory.before, RefundHistory.after, where=mine)
            if row[0] != row[1]
        ],
        "postings": [purpose.rstrip("0123456789") for (purpose,) in rows(Posting, Posting.purpose)],
        "callbacks": rows(Callback, Callback.type),
        "exceptions": rows(PaymentException, PaymentException.kind, PaymentException.resolution),
        "at the channel": [(each.amount, each.outcome) for each in books().refunds(order_no)],
    }


@pytest.fixture
def effect(balances):
    """`effect(order_no, since)`: the facts, and how much more the balances are than `since`."""
    return lambda order_no, since: (
        outline(order_no),
        [now - then for now, then in zip(balances(), since, strict=True)],
    )


def _request(w, order_no, amount="40.00"):
    fields = {"order_no": order_no, "cny_amount": amount, "merchant_refund_no": f"R{order_no}"}
    return w.api.call("createRefund", fields).code == 1


def _refund_of(order_no):
    return Refund.select().join(Order).where(Order.order_no == order_no).get()


def _waiting(w):
    """A deposit with a refund that awaits approval."""
    w.mode("approval")
    order_no = completed(w.api)
    assert _request(w, order_no)
    return order_no


def _in_flight(w, amount="40.00", delayed=False):
    """A deposit with a refund at the channel."""
    w.mode("automatic")
    w.flask("channel", "set", "2", "--config", "refund=silent", "--settlement-days", "1" if delayed else "0")
    order_no = w.api.buy().data["order_no"]
    w.api.play(order_no, "success")
    assert _request(w, order_no, amount)
    return order_no


def _sent_back(w):
    """A deposit whose wrong amount goes back."""
    w.flask("channel", "set", "2", "--config", "refund=silent", "--settlement-days", "0")
    order_no = w.api.buy().data["order_no"]
    w.api.notice(order_no, 9_000, reference=f"R-{order_no}")
    w.flask("order", "resolve", order_no, "--refund")
    sweep.sweep(InlinePool())
    return order_no


def _done(act, *arguments):
    try:
        act(*arguments)
    except (OperationalError, OperatorError):
        return False
    return True


def _notice(w, order_no, state="paid"):
    refund = _refund_of(order_no)
    said = {"order_no": order_no, "refund_no": refund.refund_no, "state": state, "amount": int(refund.amount)}

    body, headers = sandbox_signed(json.dumps(said | {"reference": "SBR"}).encode())
    return w.api.send("POST", f"/addons/paychannel/notify/{order_no}", body, headers).status == 200


def _wrong(w):
    order_no = w.api.buy().data["order_no"]
    w.api.notice(order_no, 9_000, reference=f"R-{order_no}")
    return order_no


# Steps in one transaction: the preparation, and the step (True: a repetition reports that it is done).
ONE_STEP = {
    "a refund is requested": (lambda w: w.mode("approval") or completed(w.api), _request),
    "a refund is approved": (_waiting, lambda w, no: _done(approve.approve, _refund_of(no), "operator ann")),
    "a refund is rejected": (_waiting, lambda w, no: _done(approve.reject, _refund_of(no), "no", "operator ann")),
    "a refund is completed": (_in_flight, _notice),
    "a refund fails": (_in_flight, lambda w, no: _notice(w, no, "failed")),
    "a refund is abnormal": (_in_flight, lambda w, no: _notice(w, no, "stuck")),
    "a whole refund before the credit is completed": (lambda w: _in_flight(w, "100.00", delayed=True), _notice),
    "a part before the credit is completed": (lambda w: _in_flight(w, delayed=True), _notice),
    "money is sent back": (
        _wrong,
        lambda w, no: w.app.test_cli_runner().invoke(args=["order", "resolve", no, "--refund"]).exit_code == 0,
    ),
    "money that was sent back has arrived": (_sent_back, _notice),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("step", ONE_STEP)
def test_a_step_that_fails_at_any_statement_stores_nothing_and_its_repetition_completes_it_once(
    app, world, mode, balances, effect, step, how
):
    world.app, world.mode = app, mode
    get_there, take = ONE_STEP[step]
    undisturbed, before = get_there(world), balances()
    assert take(world, undisturbed)
    done = effect(undisturbed, before)
    for statement in count(1):
        order_no, before = get_there(world), balances()
        there = effect(order_no, before)
        with failing(statement, how) as fault:
            said = take(world, order_no)
        if not fault.happened:
            break
        assert not said
        in_doubt = how is done_but_not_told and effect(order_no, before) == done
        assert in_doubt or effect(order_no, before) == there
        assert not [off for _, off in integrity.verify() if off]
        again = take(world, order_no)
        assert again or in_doubt
        assert effect(order_no, before) == done
    assert statement > (1 if how is done_but_not_told else 3)
    assert effect(order_no, before) == done


@pytest.fixture
def until_done(ahead, balances, effect):
    """`until_done(order_no)`: let time pass until the refund is completed; return the effect."""

    def pass_time(w, order_no, act):
        before = balances()
        act()
        for _ in range(60):
            _request(w, order_no)  # the merchant repeats it until it has succeeded
            if [status for status, *_ in outline(order_no)["refunds"]] == ["completed"]:
                return effect(order_no, before)
            ahead(301)
            act()
        raise AssertionError(f"not completed: {outline(order_no)}")

    return pass_time


def _sweep():
    _done(sweep.sweep, InlinePool())


@pytest.mark.parametrize("how", [rolled_back, done_but_not_told])
@pytest.mark.parametrize("outcome", ["success", "processing", "timeout"])
def test_the_payer_gets_the_money_once_whichever_statement_failed(world, mode, flask, until_done, outcome, how):
    flask("channel", "set", "2", "--config", f"refund={outcome}")
    done = until_done(world, completed(world.api), _sweep)
    assert done[0]["at the channel"] == [(4_000, outcome)]
    for statement in count(1):
        order_no = completed(world.api)
        with failing(statement, how) as fault:
            disturbed = until_done(world, order_no, _sweep)
        if not fault.happened:
            break
        assert not [off for _, off in integrity.verify() if off]
        assert disturbed == done
    assert statement > 3


CALLS = [("success", "refund"), ("processing", "refund"), ("processing", "query_refund")]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("outcome", "call"), CALLS)
def test_a_crash_around_a_call_of_the_channel_refunds_once(
    world, mode, flask, until_done, monkeypatch, outcome, call, when
):
    flask("channel", "set", "2", "--config", f"refund={outcome}")
    done = until_done(world, completed(world.api), _sweep)
    order_no, died = completed(world.api), []
    dying(monkeypatch, SandboxDriver, call, when)

    def sweeping():
        try:
            _sweep()
        except Killed:
            died.append(call)

    try:
        _request(world, order_no)
    except Killed:
        died.append(call)
    disturbed, _ = until_done(world, order_no, sweeping)
    assert disturbed == done[0]
    assert died == [call]
