"""Each statement of each step fails in turn: nothing is half done, and a repetition completes the step once."""

import secrets
from itertools import count

import pytest
from peewee import OperationalError

from gateways.sandbox.driver import SandboxDriver
from models.db.base import database
from models.tables.epay import EpayOrder
from models.tables.ledger import Posting
from models.tables.order import History, Order, PaymentException
from models.tables.outbox import Callback
from models.tables.replay import Nonce
from services.jobs import sweep
from services.ledger import integrity
from tests.epay_shop import Shop
from tests.failing import Killed, done_but_not_told, dying, failing, failing_connections, refused, rolled_back
from tests.pages import CHOOSE
from tests.services import walks
from tests.support import InlinePool

LEAST = {refused: 4, rolled_back: 4, done_but_not_told: 1}  # the minimum number of statements
HOW = list(LEAST)


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 10_000}


@pytest.fixture
def world(app, world, shop):
    with failing_connections():
        yield world


def outline(order_no):
    """An order's facts, without numbers and times."""
    order = Order.get(Order.order_no == order_no)

    def rows(table, *columns):
        return list(table.select(*columns).where(table.order == order).order_by(table.id).tuples())

    history = rows(History, History.who, History.before, History.after, History.code)
    return {
        "status": order.status,
        # A crash before the commit leaves the line that the channel has a payout to the next response.
        "history": [line for *line, code in history if code != "payout_shown"],
        "postings": [purpose.rstrip("0123456789") for (purpose,) in rows(Posting, Posting.purpose)],
        "callbacks": rows(Callback, Callback.type),
        "exceptions": rows(PaymentException, PaymentException.kind, PaymentException.resolution),
    }


@pytest.fixture
def effect(balances):
    """`effect(order_no, since)`: the order's facts, and how much more the balances are than `since`."""
    return lambda order_no, since: (
        outline(order_no),
        [now - then for now, then in zip(balances(), since, strict=True)],
    )


def _count(table):
    return table.select().count()


def _books_hold():
    assert not [off for _, off in integrity.verify() if off]


def _sweep():
    """Do what is due; return False if the database failed."""
    try:
        sweep.sweep(InlinePool())
    except OperationalError:
        return False
    return True


def _command(w, *arguments):
    return w.app.test_cli_runner().invoke(args=list(arguments)).exit_code == 0


# Steps in one transaction: the preparation of an order, and the step (True: a repetition reports that it is done).
ONE_STEP = {
    "a deposit is settled": (
        walks.buy_pending,
        lambda w, no: w.api.notice(no, 10_000, reference=f"R-{no}").status == 200,
    ),
    "a deposit is claimed": (
        lambda w: w.api.buy(channel=3).data["order_no"],
        lambda w, no: walks.claim(w, no).status == 303,
    ),
    "a deposit is marked as paid": (walks.buy_claimed, lambda w, no: _command(w, "order", "paid", no)),
    "a deposit with another amount": (walks.buy_pending, lambda w, no: w.api.notice(no, 9_000).status == 200),
    "a deposit fails": (walks.buy_pending, lambda w, no: w.api.notice(no, 10_000, state="failed").status == 200),
    "an exception is credited": (walks.deposit_too_small, lambda w, no: _command(w, "order", "settle", no, "--credit")),
    "an epay payment is settled": (
        lambda w: w.epay_shop.mapi(out_trade_no=secrets.token_hex(8))["trade_no"],
        lambda w, no: w.api.notice(no, 1_250, reference=f"R-{no}").status == 200,
    ),
    "a withdrawal is accepted": (walks.sell_pending, lambda w, no: _command(w, "order", "accept", no)),
    "a withdrawal is rejected": (
        walks.sell_pending,
        lambda w, no: _command(w, "order", "reject", no, "--reason", "no"),
    ),
    "a withdrawal is paid": (
        lambda w: walks.sell_accepted(w, walks.MANUAL),
        lambda w, no: _command(w, "order", "paid", no),
    ),
    "a withdrawal fails": (walks.sell_accepted, lambda w, no: w.api.notice(no, 5_000, state="failed").status == 200),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("step", ONE_STEP)
def test_a_step_that_fails_at_any_statement_stores_nothing_and_its_repetition_completes_it_once(
    app, world, balances, effect, epay_shop, step, how
):
    world.app, world.epay_shop = app, epay_shop
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
        _books_hold()
        again = take(world, order_no)
        assert again or in_doubt  # the operator gets the message that it is done already
        assert effect(order_no, before) == done
    assert statement > LEAST[how]
    assert effect(order_no, before) == done


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", ["buy", "sell"])
def test_a_creation_that_fails_at_any_statement_creates_one_order_when_it_is_repeated(api, world, balances, kind, how):
    create, held_by_one = getattr(api, kind), 1_002 if kind == "sell" else 0
    create("10.00")
    for statement in count(1):
        key, orders, nonces, held = {"Idempotency-Key": f"{statement}"}, _count(Order), _count(Nonce), balances()[1]
        with failing(statement, how) as fault:
            answer = create("10.00", headers=key)
        if not fault.happened:
            break
        assert answer.code == 50300
        made = _count(Order) - orders
        assert made == (how is done_but_not_told)
        kept = 1 if database.is_shared else made  # with other hosts, they must know of it
        assert (_count(Nonce) - nonces, balances()[1] - held) == (kept, made * held_by_one)
        placed = [create("10.00", headers=key) for _ in range(2)]
        assert [each.code for each in placed] == [1, 1]
        assert (_count(Order) - orders, balances()[1] - held) == (1, held_by_one)
        assert outline(placed[0].data["order_no"])["history"] == [["merchant", "", "pending"]]
        _books_hold()
    assert statement > LEAST[how]


@pytest.fixture
def epay_shop(world, http, web_server, flask_json):
    """A shop at the epay gateway; WeChat Pay leads to two channels, so its payers choose."""
    types = ["--type", "alipay=2", "--type", "wxpay=1", "--type", "wxpay=2"]
    return Shop(
        http, web_server, flask_json("epay", "enable", "demo", "--host", "127.0.0.1", "--host", "localhost", *types)
    )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", ["alipay", "wxpay"])
def test_an_epay_payment_that_fails_at_any_statement_exists_once_when_it_is_repeated(api, http, epay_shop, kind, how):
    def ask(number):
        """Ask for the payment and choose a channel, if there are several; return the order's number, or ""."""
        answer = epay_shop.mapi(out_trade_no=number, type=kind)
        if answer["code"] == 1 and kind == "wxpay":
            http("POST", CHOOSE, f"order_no={answer['trade_no']}&choice=1-wxpay".encode(), walks.FORM)
        return answer.get("trade_no", "") if epay_shop.api("order", out_trade_no=number)["code"] == 1 else ""

    ask("first")
    for statement in count(1):
        before = _count(Order), _count(EpayOrder)
        with failing(statement, how) as fault:
            ask(f"no-{statement}")
        if not fault.happened:
            break
        order_no = [ask(f"no-{statement}") for _ in range(2)][-1]
        assert (_count(Order), _count(EpayOrder)) == (before[0] + 1, before[1] + 1)
        assert outline(order_no)["history"] == [["merchant", "", "pending"]]
        api.play(order_no, "success")
        assert outline(order_no)["callbacks"] == [("epay.notify",)]
        _books_hold()
    assert statement > LEAST[how] - (kind == "alipay")


@pytest.mark.parametrize("how", HOW)
def test_a_deposit_opened_at_an_upstream_is_stored_once_whichever_statement_failed(api, world, ahead, monkeypatch, how):
    """It takes two transactions, with the call between them."""
    monkeypatch.setattr(SandboxDriver, "opens_locally", False)
    api.buy()
    for statement in count(1):
        key, before = {"Idempotency-Key": f"key-{statement}"}, _count(Order)
        with failing(statement, how) as fault:
            answer = api.buy(headers=key)
        if not fault.happened:
            break
        assert answer.code == 50300
        assert api.buy(headers=key).code in (1, 40902)  # the first counts as running for a minute
        ahead(61)
        assert api.buy(headers=key).code == 1
        assert _count(Order) == before + 1
    assert statement > LEAST[how]


# Steps of the service itself, in several transactions with channel calls between them: the preparation of an order,
# the channel's outcome, the final status, and the seconds after which the service checks again.
BY_ITSELF = {
    "a payout": (walks.sell_accepted, "success", "completed", 31),
    "a payout that fails": (walks.sell_accepted, "fail", "cancelled", 31),
    "an expiry": (walks.buy_pending, "", "cancelled", 901),
    "a payment that is found by asking": (walks.buy_pending, "silent", "completed", 61),
    "a delayed settlement": (walks.buy_confirmed, "", "completed", 86_400),
}


def _get_there(w, by_itself):
    get_there, outcome, *_ = BY_ITSELF[by_itself]
    order_no = get_there(w)
    if outcome:
        w.api.play(order_no, outcome)
    return order_no


@pytest.fixture
def until_done(ahead, balances, effect):
    """`until_done(order_no, by_itself)`: let time pass until the order has its final status; return the effect."""

    def pass_time(order_no, by_itself, sweep=_sweep):
        *_, end, seconds = BY_ITSELF[by_itself]
        before = balances()
        for _ in range(60):
            if Order.get(Order.order_no == order_no).status == end:
                return effect(order_no, before)
            ahead(seconds)
            sweep()
        raise AssertionError(f"not {end}: {outline(order_no)}")

    return pass_time


@pytest.mark.parametrize("how", [rolled_back, done_but_not_told])
@pytest.mark.parametrize("by_itself", BY_ITSELF)
def test_automatic_steps_are_done_once_whichever_statement_failed(world, until_done, by_itself, how):
    done = until_done(_get_there(world, by_itself), by_itself)
    for statement in count(1):
        order_no = _get_there(world, by_itself)
        with failing(statement, how) as fault:
            disturbed = until_done(order_no, by_itself)
        if not fault.happened:
            break
        _books_hold()
        assert disturbed == done
    assert statement > LEAST[how]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("by_itself", "call"),
    [
        ("a payout", "pay_out"),
        ("a payout", "query_payout"),
        ("a payout that fails", "pay_out"),
        ("a payout that fails", "query_payout"),
        ("an expiry", "query"),
        ("an expiry", "close"),
        ("a payment that is found by asking", "query"),
    ],
)
def test_a_crash_around_a_call_of_the_channel_leaves_one_order_that_is_done_once(
    world, until_done, monkeypatch, by_itself, call, when
):
    done = until_done(_get_there(world, by_itself), by_itself)
    order_no, died = _get_there(world, by_itself), []
    dying(monkeypatch, SandboxDriver, call, when)

    def sweep():
        try:
            _sweep()
        except Killed:
            died.append(call)

    assert until_done(order_no, by_itself, sweep) == done
    assert died == [call]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_while_a_deposit_is_opened_leaves_one_order(api, world, ahead, monkeypatch, when):
    monkeypatch.setattr(SandboxDriver, "opens_locally", False)
    dying(monkeypatch, SandboxDriver, "open_payment", when)
    key = {"Idempotency-Key": "key"}
    with pytest.raises(Killed):
        api.buy(headers=key)
    ahead(61)
    first, again = api.buy(headers=key), api.buy(headers=key)
    assert (first.code, first.data) == (1, again.data)
    assert api.listed().data["total"] == 1
