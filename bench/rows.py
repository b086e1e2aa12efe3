"""The table of comparisons. Rows of one group share their measurements, which are taken in turn.

A new row is a line here: what is started, how it is loaded, what it is compared with, and the claim. Each load by wrk
also gives `p50`, `p99` and `cpu`, the service's processor time per response.
"""

from __future__ import annotations

from functools import partial

from bench import scenarios, traffic
from bench.comparing import Row, Run
from bench.loading import Wrk
from bench.scenarios import AnotherCaller
from bench.starting import Beside, Prepared
from runtime.settings import Settings
from services.channels import bulkhead

# What is started.
SERVICE = Prepared()
RICH = Prepared(("ledger adjust demo 1000000000 --reason bench",))
EPAY = Prepared(("epay enable demo --host 127.0.0.1 --type wxpay=2 --json",))
SILENT = Prepared(('merchant set demo --callback-url ""', 'merchant set other --callback-url ""'))
CHANNEL = ("channel add --category gateway_b --driver bench --name Bench --json", "channel link {id} demo")
SLOW = Prepared(CHANNEL, entry=("-m", "bench.channel"))
PAYING = Prepared(
    (*CHANNEL, "ledger adjust demo 1000000000 --reason bench", 'merchant set demo --callback-url ""'),
    entry=("-m", "bench.channel"),
)
VIEWED = Prepared(settings=(("ORDERS_PAGES_PER_ADDRESS", "1000000"),))
SHORT_LIVED = Prepared(settings=(("ORDERS_BUY_EXPIRY", "60"),))
SMALL, LARGE, HUGE = Prepared(orders=1_000), Prepared(orders=1_000_000), Prepared(orders=5_000_000)
PROXIED = Prepared(orders=1_000_000, settings=(("ORDERS_TRUSTED_PROXIES", "1"),))
WAITRESS, SAME = Beside("waitress"), Beside("same")

# How it is loaded.
BY_STATUS, OF_90_DAYS = partial(traffic.lists, status="completed"), partial(traffic.lists, **traffic.NINETY_DAYS)
CREATE = {number: Run(SERVICE, Wrk(traffic.orders, number)) for number in (1, 8, 32, 512)}
ECHO = {number: Run(WAITRESS, Wrk(traffic.echoes, number)) for number in (1, 8, 32)}
SAME_ECHO = {number: Run(SAME, Wrk(traffic.echoes, number)) for number in (1, 8, 32)}
NOTICES = Run(SILENT, Wrk(traffic.notices, before=traffic.orders, adds=traffic.completed))
FIRST_PAGE = Run(HUGE, Wrk(traffic.lists, 1))
EMPTY = Run(SAME, Wrk(traffic.empties))
FLOODED = Run(SERVICE, scenarios.twice_the_maximum)
MANY = Run(SHORT_LIVED, scenarios.many_orders, once=True)
WAITING = Settings.threads // bulkhead.SHARE  # connections that may wait for one channel

ON_ECHO, FLOOD = "createOrder / bare echo on", "createOrder at twice its maximum rate:"
TIME, CPU = "processor time:", "cpu"
LISTED, CALLBACK = "orderQueryList, 5,000,000 orders,", "payment reported to callback received,"

# fmt: off
GROUPS = (
    (
        Row("echo-8", f"{ON_ECHO} waitress, 8 connections", CREATE[8], ECHO[8], at_least=0.6),
        Row("echo-32", f"{ON_ECHO} waitress, 32 connections", CREATE[32], ECHO[32], at_least=0.65),
        Row("echo-1", f"{ON_ECHO} waitress, 1 connection", CREATE[1], ECHO[1]),
        Row("same-8", f"{ON_ECHO} the service's server, 8 connections", CREATE[8], SAME_ECHO[8]),
        Row("same-32", f"{ON_ECHO} the service's server, 32 connections", CREATE[32], SAME_ECHO[32]),
        Row("same-1", f"{ON_ECHO} the service's server, 1 connection", CREATE[1], SAME_ECHO[1]),
        Row("raw", "createOrder, 32 connections / raw transactions of the same rows", CREATE[32],
            Run(SERVICE, scenarios.raw_transactions), at_least=0.45),
        Row("tail", "createOrder, 8 connections: p99 / p50", CREATE[8], CREATE[8], "p99", "p50", at_most=3),
    ),
    (
        Row("slow-channel", "createOrder on a channel of 500 ms, 16 connections / 32 a second",
            Run(SLOW, Wrk(traffic.orders, WAITING, count=20 * WAITING)), WAITING / 0.5, at_least=0.8),
    ),
    (
        Row("busy-cores", "createOrder, 8 connections: every other core busy / idle",
            Run(SERVICE, scenarios.Busy(traffic.orders, other_cores=True)), CREATE[8]),
        Row("withdrawals", "createOrder, 8 connections: withdrawals / deposits",
            Run(RICH, Wrk(traffic.withdrawals)), CREATE[8]),
        Row("settling", "notices that settle an order / createOrder, 8 connections", NOTICES, CREATE[8]),
    ),
    (
        Row("create-cpu", f"{TIME} createOrder / bare echo on waitress", CREATE[8], ECHO[8], CPU, at_most=1.8),
        Row("settling-cpu", f"{TIME} notice that settles an order / createOrder", NOTICES, CREATE[8], CPU, at_most=2.2),
        Row("page-cpu", f"{TIME} view of a payment page / createOrder",
            Run(VIEWED, Wrk(traffic.views)), CREATE[8], CPU, at_most=2),
        Row("poll-cpu", f"{TIME} status check of a payment page / bare echo on waitress",
            Run(VIEWED, Wrk(traffic.polls)), ECHO[8], CPU, at_most=1.2),
    ),
    (
        Row("payouts", "payouts from approval to completion / createOrder, 8 connections",
            Run(PAYING, scenarios.payouts), CREATE[8], at_least=0.4),
        Row("callbacks-fast", "callbacks to a server that responds at once / createOrder, 8 connections",
            Run(SILENT, partial(scenarios.callback_rate, delay=0)), CREATE[8], at_least=0.6),
        Row("busy-loop", "createOrder / bare echo on waitress, 8 connections, with a busy loop on any core",
            Run(SERVICE, scenarios.Busy(traffic.orders)), Run(WAITRESS, scenarios.Busy(traffic.echoes))),
    ),
    (
        Row("epay-8", "orders by the epay gateway / createOrder, 8 connections",
            Run(EPAY, Wrk(traffic.epay_orders, adds=traffic.placed)), CREATE[8], at_least=0.9),
        Row("epay-32", "orders by the epay gateway / createOrder, 32 connections",
            Run(EPAY, Wrk(traffic.epay_orders, 32, adds=traffic.placed)), CREATE[32], at_least=0.9),
    ),
    (
        Row("crowd", "createOrder, 512 connections / 32", CREATE[512], CREATE[32], at_least=0.85),
        Row("flood", f"{FLOOD} orders a second / maximum", FLOODED, FLOODED, "rate", "maximum", at_least=0.6),
        Row("flood-tail", f"{FLOOD} p99 of orders / 2 s", FLOODED, 2_000, "p99", at_most=1),
        Row("flood-memory", f"{FLOOD} memory after / before", FLOODED, FLOODED, "memory", "before", at_most=1.5),
    ),
    (
        Row("sign-ins-memory", "additional memory during 120 sign-ins a second / 160 MiB",
            Run(PROXIED, AnotherCaller(traffic.sign_ins, 120)), 160, "more", at_most=1),
        Row("page-views-memory", "additional memory during 127 views of a payment page a second / 160 MiB",
            Run(PROXIED, AnotherCaller(traffic.page_views, 127)), 160, "more", at_most=1),
        Row("searches-memory",
            "additional memory during 22 searches a second by two characters among 1,000,000 orders / 160 MiB",
            Run(PROXIED, AnotherCaller(traffic.searches, 22)), 160, "more", at_most=1),
        Row("signatures-memory", "additional memory during 500 bad signatures a second / 160 MiB",
            Run(PROXIED, AnotherCaller(traffic.bad_signatures, 500)), 160, "more", at_most=1),
    ),
    (
        Row("detail", "orderQueryDetail / bare echo on waitress, 8 connections",
            Run(SMALL, Wrk(traffic.details)), ECHO[8]),
        Row("list", "orderQueryList / bare echo on waitress, 8 connections",
            Run(SMALL, Wrk(traffic.lists)), ECHO[8]),
    ),
    (
        Row("first-page", "orderQueryList, first page: 1,000,000 orders / 1,000",
            Run(LARGE, Wrk(traffic.lists, 1)), Run(SMALL, Wrk(traffic.lists, 1)), "p50", at_most=1.15),
    ),
    (
        Row("deep-page", f"{LISTED} page 5000 / first page",
            Run(HUGE, Wrk(traffic.deep_lists, 1)), FIRST_PAGE, "p50", at_most=2),
        Row("last-page", f"{LISTED} last page / first page",
            Run(HUGE, Wrk(traffic.last_lists, 1)), FIRST_PAGE, "p50", at_most=2),
        Row("range", f"{LISTED} 90 days / first page",
            Run(HUGE, Wrk(OF_90_DAYS, 1)), FIRST_PAGE, "p50", at_most=2),
        Row("status", f"{LISTED} one status / first page",
            Run(HUGE, Wrk(BY_STATUS, 1)), FIRST_PAGE, "p50", at_most=2),
    ),
    (
        Row("large-file", "createOrder, 8 connections: 1,000,000 orders in the file / 1,000",
            Run(LARGE, Wrk(traffic.orders)), Run(SMALL, Wrk(traffic.orders)), at_least=0.85),
    ),
    (
        Row("regions-gzip", "regionData, gzip / empty view", Run(SERVICE, Wrk(traffic.regions)), EMPTY, at_least=0.75),
        Row("regions-304", "regionData, not modified / empty view", Run(SERVICE, Wrk(traffic.known_regions)), EMPTY,
            at_least=0.75),
    ),
    (
        Row("callbacks", "callbacks to a server that takes 20 ms / one at a time",
            Run(SILENT, partial(scenarios.callback_rate, delay=20)),
            Run(scenarios.RECEIVER, scenarios.one_at_a_time), at_least=20),
        Row("callback-delay", f"{CALLBACK} idle service / 50 ms",
            Run(SERVICE, scenarios.callback_delay), 50, "delay", at_most=1),
        Row("hopeless", f"{CALLBACK} 10,000 undeliverable ones: slowest / 1 s",
            Run(SERVICE, scenarios.undeliverable), 1_000, "delay", at_most=1),
    ),
    (
        Row("memory", "memory after 1,000,000 orders created / after 1,000", MANY, MANY, "memory", "before",
            at_most=1.2),
        Row("start", "start to first response: 1,000,000 orders in the file / none",
            Run(LARGE, scenarios.starts), Run(SERVICE, scenarios.starts), "start", at_most=1.2),
    ),
)
# fmt: on
ROWS = tuple(row for group in GROUPS for row in group)

# The latency of each endpoint by orders in the file, by its name in the picture.
GROWTH = {
    "orderQueryDetail": Wrk(traffic.details, 1),
    "list, first page": Wrk(traffic.lists, 1),
    "list, last page": Wrk(traffic.last_lists, 1),
    "list, by status": Wrk(BY_STATUS, 1),
    "list, 90 days": Wrk(OF_90_DAYS, 1),
    "list, rare text": Wrk(traffic.lists_by_rare_text, 1),
    "getPayChannels": Wrk(traffic.pay_channels, 1),
    "regionData": Wrk(traffic.regions, 1),
    "createOrder": Wrk(traffic.orders, 1),
}
