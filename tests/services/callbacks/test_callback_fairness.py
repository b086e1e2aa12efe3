"""Slow or dead merchants delay no others, and no work is lost with a worker."""

import socket
import threading
import time

import pytest
from werkzeug import Response

from models.tables.merchant import Merchant
from models.tables.order import Order
from models.tables.outbox import Callback
from runtime import settings
from services.callbacks import delivery
from services.platform.worker_pool import Health, WorkerPool
from tests.support import Api, CrashedPool, InlinePool, Receiver, completed, free_port, until

pytestmark = pytest.mark.usefixtures("slow")  # most of it waits


@pytest.fixture
def workers():
    """Override for a pool of another size than the service's."""
    return settings.Settings.callback_workers


@pytest.fixture
def pool(workers):
    """The real pool."""
    made = WorkerPool(workers, "test")
    yield made
    made.stop()


@pytest.fixture
def gate():
    """A receiver that responds at the end of the test, if its response is `gate.hold`."""

    class Gate:
        def __init__(self):
            self.opened = threading.Event()

        def hold(self, request):
            self.opened.wait(30)
            return Response("at last")

    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture
def newcomer(http, web_server, flask, flask_json):
    """A third merchant, and its receiver."""
    made = flask_json("merchant", "add", "newcomer", "--callback-url", web_server.url_for("/newcomer"))
    flask("channel", "link", 2, "newcomer")
    return Api(http, "newcomer", made["api_secret"]), Receiver(web_server, "/newcomer", made["callback_secret"])


def sweep_until(pool, condition, seconds=20):
    """Sweep repeatedly, as the job does, until the condition is true."""

    def swept():
        delivery.sweep(pool)
        return condition()

    until(swept, seconds)


@pytest.mark.parametrize("is_dead", [False, True], ids=["slow", "dead"])
def test_a_slow_or_dead_merchant_delays_no_other(is_dead, api, other, shop, other_shop, flask, pool, gate):
    shop.answer = gate.hold
    if is_dead:
        flask("merchant", "set", "demo", "--callback-url", "http://127.0.0.1:9/")
    for _ in range(40):
        completed(api)
    sweep_until(pool, lambda: shop.got or is_dead)
    completed(other)
    sweep_until(pool, lambda: other_shop.got)
    assert other_shop.got[0].event["type"] == "order.completed"


@pytest.mark.parametrize("workers", [2])
def test_merchants_that_always_respond_slowly_do_not_have_all_workers(
    api, other, shop, other_shop, newcomer, pool, gate, monkeypatch
):
    monkeypatch.setattr(delivery, "SLOW", 0.5)
    slow, (quick, quick_shop) = ((api, shop), (other, other_shop)), newcomer
    for merchant, server in slow:
        server.answer = lambda request: time.sleep(0.6) or Response("at last")
        for _ in range(2):
            completed(merchant)
    completed(quick)
    sweep_until(pool, lambda: quick_shop.got and all(len(server.got) == 2 for _, server in slow))
    for merchant, server in slow:
        server.answer = gate.hold
        completed(merchant)
    for _ in range(20):
        sweep_until(pool, lambda: True)
        time.sleep(0.05)
    completed(quick)
    sweep_until(pool, lambda: len(quick_shop.got) == 2)
    assert sum(len(server.got) == 3 for _, server in slow) == 1
    gate.opened.set()


def test_two_merchants_that_were_quick_and_turn_slow_delay_no_third(api, other, shop, other_shop, newcomer, pool, gate):
    merchants = ((api, shop), (other, other_shop))
    for merchant, server in merchants:
        for _ in range(20):
            completed(merchant)
        sweep_until(pool, lambda server=server: len(server.got) == 20)
        server.answer = gate.hold
        for _ in range(20):
            completed(merchant)
    sweep_until(pool, lambda: all(len(server.got) > 20 for _, server in merchants))
    third, its_server = newcomer
    completed(third)
    sweep_until(pool, lambda: its_server.got)


def test_a_callback_that_its_worker_never_finished_is_claimed_again(api, shop, due, ahead):
    completed(api)
    assert delivery.sweep(CrashedPool()) == 1
    assert due.callbacks() == 0
    ahead(60)
    assert due.callbacks() == 1
    assert shop.got[0].event["type"] == "order.completed"


def test_a_merchant_with_many_callbacks_has_no_more_than_a_quarter_of_the_workers(api, flask, shop, pool):
    under_way, most, lock = [], [], threading.Lock()

    def answer(request):
        with lock:
            under_way.append(request)
            most.append(len(under_way))
        time.sleep(0.02)
        with lock:
            under_way.pop()
        return Response("heard")

    shop.answer = answer
    flask("merchant", "set", "demo", "--events", "paid,confirmed,completed")
    for _ in range(45):
        completed(api)
    sweep_until(pool, lambda: len(shop.got) >= 3 * 45, 30)
    assert 1 < max(most) <= settings.Settings.callback_workers // 4


def test_a_merchant_is_sent_all_its_callbacks_without_waiting_for_the_next_interval(api, shop):
    for _ in range(20):
        completed(api)
    woken = threading.Event()
    pool = WorkerPool(8, "test", wake=woken.set)
    delivery.sweep(pool)

    def swept():
        if woken.is_set():
            woken.clear()
            delivery.sweep(pool)
        return len(shop.got) == 20

    until(swept)
    pool.stop()
    assert len({received.headers["Webhook-Id"] for received in shop.got}) == 20


@pytest.fixture
def dead_merchants(app):
    """`dead_merchants(300, url)` creates this number of merchants with this address, each with a due callback."""

    def make(count, url):
        template, order = Merchant.get(Merchant.key == "other"), Order.select().order_by(Order.id.desc()).get()
        columns = {name: value for name, value in template.__data__.items() if name not in ("id", "key")}
        now = int(time.time())
        for number in range(count):
            merchant = Merchant.create(**columns | {"key": f"dead-{number}", "callback_url": url})
            Callback.add(
                webhook_id=f"msg_dead_{number}",
                merchant=merchant.id,
                order=order.id,
                type=f"dead-{number}",
                body="{}",
                due_at=now,
                createtime=now,
                updatetime=now,
            )

    return make


@pytest.fixture
def silent():
    """The address of a server that accepts connections and never responds."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1000)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


@pytest.mark.parametrize("workers", [8])
@pytest.mark.parametrize("how", ["silent", "refused", "no name"])
@pytest.mark.parametrize("restarted", [True, False])
def test_hundreds_of_dead_merchants_delay_no_healthy_one(
    restarted, how, silent, api, shop, dead_merchants, pool, monkeypatch
):
    monkeypatch.setattr(delivery, "TIMEOUT", 3.0)
    completed(api)
    if restarted:  # the successes are stored, and this pool has not seen them
        delivery.sweep(InlinePool())
    else:
        sweep_until(pool, lambda: shop.got)
    dead_merchants(300, {"silent": silent, "refused": f"http://127.0.0.1:{free_port()}/"}.get(how, "http://x.invalid/"))
    delivery.sweep(pool)
    completed(api)
    sweep_until(pool, lambda: len(shop.got) == 2)


def test_a_merchants_health_is_stored_for_the_next_start(api, other, shop, other_shop, due, ahead):
    completed(api)
    completed(other)
    other_shop.answers(500)
    due.callbacks()
    ids = {key: Merchant.get(Merchant.key == key).id for key in ("demo", "other")}
    health_by_tenant = dict(delivery.stored_health([*ids.values()]))
    assert health_by_tenant == {ids["demo"]: Health.GOOD, ids["other"]: Health.FAILING}
    other_shop.answers(200)
    ahead(60)
    due.callbacks()
    assert dict(delivery.stored_health([ids["other"]])) == {ids["other"]: Health.GOOD}
