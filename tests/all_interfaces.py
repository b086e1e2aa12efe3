"""Use every interface of the service, for tests that examine all its actions."""

import itertools
import json
import re
import time
from datetime import timedelta
from unittest.mock import patch
from urllib.parse import urlencode

import pyotp

from gateways.sandbox.driver import SandboxDriver
from models.tables.bill import StatementDifference
from models.tables.order import STATUSES
from models.tables.reconciliation import Reconciliation
from runtime import clock
from runtime.clock import in_china
from services.ledger import monthly_statement
from services.security import operators, second_factor
from services.statements.reconcile import AMOUNT, Difference
from tests.epay_shop import Shop
from tests.pages import BACK, CASHIER, CHOOSE, CLAIM, FORM, GO, LANGUAGE, LOGO, OPEN, QR_IMAGE, SIGNED_IN, STATUS
from tests.support import CARD, PERSON, completed

REGIONS = "/addons/paychannel/channel.gatewaya"
GATEWAY_A = {"channel": 1, "gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}


def key(text):
    """The header of a safe retry."""
    return {"Idempotency-Key": text}


def create_orders_of_all_kinds(api):
    """Create orders without a key, with a key, and with the same key again."""
    for number in (0, 1, 1):
        keys = [number and key(f"key-{number}-{kind}") for kind in range(4)]
        api.buy(headers=keys[0], customer_name="张三")
        for more, header in zip((GATEWAY_A, {"channel": 2}, {"channel": 3}), keys[1:], strict=True):
            assert api.sell("1.00", headers=header, **more).code == 1


def be_refused(api, other, flask):
    """Send the createOrder requests that are refused for each reason."""
    assert [api.sell("900000.00", headers=header).code for header in (None, key("poor"), key("poor"))] == [40901] * 3
    assert (other.sell().code, other.sell(headers=key("none")).code) == (40903, 40903)
    assert (api.buy(headers=key("poor")).code, api.buy("0").code, api.buy(channel=4).code) == (42201, 42200, 40403)
    assert (api.buy(timestamp=1).code, api.buy(api_key="nobody").code) == (40103, 40101)
    assert [api.buy(nonce="nonce-0001").code for _ in range(2)] == [1, 40104]
    assert [api.sell("1.00", nonce="nonce-0002").code for _ in range(2)] == [1, 40104]
    flask("channel", "set", 2, "--config", "open=refuse")
    assert [api.buy(headers=header).code for header in (None, key("no"), key("no"))] == [50201] * 3
    flask("channel", "set", 2, "--config", "open=timeout")
    assert [api.buy(headers=header).code for header in (None, key("later"), key("later"))] == [1] * 3
    flask("channel", "set", 2, "--config", "open=accept")


def open_all_pages(api, http):
    """Open the queries for one order, the payment page, the notices, the sandbox, and endpoints without an order."""
    mine, by_hand = (api.buy(channel=channel, merchant_order_no="mine").data["order_no"] for channel in (2, 3))
    for by in ({"order_no": mine}, {"id": 5}, {"merchant_order_no": "mine"}):
        assert api.detail(**by).code == 1
    api.call("getPayChannels", query="?category=gateway_b")
    assert api.call("balanceQuery").code == 1
    completed(api)
    month = {"month": f"{monthly_statement.this_month():%Y-%m}", "limit": 1}
    line_no = api.call("statementQuery", month).data["list"][0]["line_no"]
    for more in ({}, {"format": "csv"}):
        assert api.call("statementQuery", month | more | {"after": line_no}).code == 1
    api.notice("1" * 24, 10_000)
    for order_no in (mine, by_hand, "1"):
        api.detail(order_no=order_no)
        posted = [("POST", path, order_no.encode()) for path in (OPEN, CLAIM)]
        read = [("GET", path, b"") for path in (CASHIER, STATUS, GO, QR_IMAGE, LANGUAGE)]
        for method, path, body in (*read, *posted):
            http(method, f"{path}?order_no={order_no}", b"order_no=" + body, FORM)
        api.notice(order_no, 10_000)
        api.notice(order_no, 9_000, reference="R-2")
        api.play(order_no, "success")
    assert http("GET", f"{LOGO}/{'0' * 16}").status == 404
    assert http("GET", f"{CASHIER}/{mine}").status == 303
    event = json.dumps({"type": "order.completed", "data": {"order_no": mine}})
    assert http("POST", "/sandbox/inbox", event.encode()).status == 200
    for form in (b"endpoint=createOrder&api_key=demo", b"endpoint=epay&body=pid%3D1001"):
        assert http("POST", "/sandbox/sign", form, FORM).status == 200
    district = urlencode({"province": "广东省", "city": "广州市"})
    regions = ("regionData", "provinceList", "cityList?" + district, "districtList?" + district)
    pages = ("/sandbox/inbox", "/sandbox/sign", "/healthz", "/openapi.json", "/docs", "/metrics")
    for path in (*(f"{REGIONS}/{each}" for each in regions), *pages):
        assert http("GET", path).status == 200
    assert http("GET", "/readyz").status == 503  # this test runs no jobs


def refund(api):
    """Refund a deposit in parts, find the refunds by every number and filter, and be refused."""
    order_no = completed(api)
    sent = {"order_no": order_no, "cny_amount": "40.00", "merchant_refund_no": "R-1"}
    assert [api.call("createRefund", sent).code for _ in range(2)] == [1, 1]
    assert api.call("createRefund", sent | {"cny_amount": "99.00", "merchant_refund_no": "R-2"}).code == 40904
    refund_no = api.call("refundQueryDetail", {"merchant_refund_no": "R-1"}).data["refund_no"]
    assert api.call("refundQueryDetail", {"refund_no": refund_no}).code == 1
    now = int(time.time())
    narrow = itertools.product((None, "completed"), (None, order_no), (None, now - 9), (None, now + 9))
    for status, order, start, end in narrow:
        filters = {"status": status, "order_no": order, "start_time": start, "end_time": end}
        assert api.call("refundQueryList", filters).code == 1
        assert api.call("refundQueryList", filters | {"before": refund_no}).code == 1


def be_an_epay_shop(api, http, web_server, flask_json):
    """Use every address of the epay gateway, by both versions, and the pages of its payers."""
    keys = flask_json("epay", "enable", "demo", "--host", "localhost", "--host", "127.0.0.1")
    shop = Shop(http, web_server, keys | flask_json("epay", "rotate", "demo", "--rsa"))
    number = shop.mapi(type=None)["trade_no"]
    api.detail(order_no=number)
    assert http("GET", "/MP_verify_0123456789abcdef.txt").status == 404
    chosen = f"order_no={number}&choice=2-alipay".encode()
    for path in (CASHIER, CHOOSE, SIGNED_IN, BACK):
        http("POST" if path == CHOOSE else "GET", f"{path}?order_no={number}", chosen, FORM)
    shop.submit(type=None)
    assert http("GET", f"/qrcode.php?trade_no={number}").status == 303
    api.play(number, "success")
    for act in ("order", "orders", "query", "refund"):
        shop.api(act, trade_no=number)
    shop.get("/api/pay/submit", shop.signed(2, out_trade_no="SHOP-2", type="bank"))
    by_hand = shop.mapi(out_trade_no="SHOP-3", type=None)["trade_no"]
    http("POST", CHOOSE, f"order_no={by_hand}&choice=3-bank".encode(), FORM)
    shop.v2("pay/create", **shop.fields(out_trade_no="SHOP-4"))
    calls = ("pay/query", "pay/close", "pay/refund", "pay/refundquery", "merchant/info", "merchant/orders")
    for call in (*calls, *(f"transfer/{each}" for each in ("submit", "query", "balance", "proof"))):
        shop.v2(call, out_trade_no="SHOP-3", trade_no=by_hand)


def use_the_simulator(api, http):
    """Use every endpoint of the demo's simulator; they read all open orders."""
    order_no = api.sell("3.00").data["order_no"]
    event = json.dumps({"type": "order.completed", "data": {"order_no": order_no}}).encode()
    assert http("POST", "/sandbox/inbox", event).status == 200
    number = http("GET", "/sandbox/inbox.json").data["list"][0]["number"]
    for path in ("", "/clock", f"/orders/{order_no}", "/balances", f"/inbox/{number}", "/return"):
        assert http("GET", f"/sandbox{path}").status == 200
    forms = {"accept": f"order_no={order_no}", "channel": "channel=2&payout=success", "merchant": "key=demo"}
    forms |= {"clock": "seconds=0", "inbox/answers": "answer=200", "inbox/clear": ""}
    forms["refund"] = f"order_no={completed(api)}&outcome=success"
    for path, form in forms.items():
        assert http("POST", f"/sandbox/{path}", form.encode(), FORM).code == 1, path
    assert http("POST", "/sandbox/inbox/again", b"webhook_id=none", FORM).code == 42200


def list_by_every_filter(api, texts=(None,)):
    """List pages for every combination of filters."""
    orders = api.listed(limit=100).data["list"]
    since, until = orders[80]["createtime"], orders[20]["createtime"]
    for status, order_type, start, end, text, page in itertools.product(
        (None, *STATUSES), (None, 1, 2), (None, since), (None, until), texts, (1, 3)
    ):
        filters = {"status": status, "order_type": order_type, "start_time": start, "end_time": end}
        assert api.listed(**filters, merchant_order_no=text, page=page).code == 1
        assert api.listed(**filters, merchant_order_no=text, before=orders[50]["order_no"]).code == 1


def _combined(*options):
    """Each combination of options, given or not, as arguments."""
    return [" ".join(each).split() for each in itertools.product(*(("", option) for option in options))]


def add_difference(order_no, day, name="1"):
    """Add a difference of channel 2; a comparison reads all orders of its days."""
    about = {"channel": 2, "since": day, "until": day, "createtime": 0, "updatetime": 0}
    result = Reconciliation.add(
        **about, file="a.csv", hash="0" * 64, lines=1, matched=1, differences=1, result="{}", who="operator"
    )
    facts = json.dumps(vars(Difference(AMOUNT, order_no, "", 2, {}, {})))
    StatementDifference.add(
        **about, name=name, state="open", kind=AMOUNT, fen=100, facts=facts, lines="{}", reconciliation=result
    )


def give_every_command(run, api, flask_json):
    """Run every command of the operator by `run(*arguments)`, with data to list."""
    deposits = [api.buy(channel=3).data["order_no"] for _ in range(2)]
    withdrawals = [api.sell("5.00", channel=3).data["order_no"] for _ in range(2)]
    done, claimed = completed(api), api.buy(channel=3).data["order_no"]
    assert api.send("POST", "/addons/paychannel/pay/paid", f"order_no={claimed}".encode(), FORM).status == 303
    for command in (
        "merchant add shop --name Shop",
        "merchant set shop --buy-rate 0.5",
        "merchant show shop",
        "merchant list",
        "merchant rotate shop",
        "merchant page shop --contact help@shop.example",
        "account add shop --card-number 6222020000000000017 --real-name 张三",
        "account list",
        "account list demo",
        "channel add --category gateway_b --driver trial --name New",
        "channel set 5 --max 100",
        "channel check 5",
        "channel list",
        "channel link 5 shop",
        "channel show 5",
        "channel move 5 2",
        "channel move 5 2 --keep --yes",
        "channel unlink 5 shop",
        "channel add --category gateway_b --driver group --name Group",
        "group add 6 2 --daily-count 9",
        "group set 6 2 --weight 2",
        "group members 6",
        "group remove 6 2",
        f"order approve {withdrawals[0]}",
        f"order reject {withdrawals[1]} --reason no",
        f"order paid {withdrawals[0]}",
        f"order paid {deposits[0]}",
        f"order paid {deposits[1]} --amount 99.00",
        "order unknown",
        f"order returned {withdrawals[0]} --reference RET-1 --yes",
        f"order note {done} checked",
        f"order not-received {claimed}",
        f"order check {done}",
        f"order show {deposits[1]} --reveal",
        f"order show {withdrawals[0]} --reveal",
        "ledger balances",
        "merchant statement demo 2026-10",
        "merchant statements 2026-10 /dev/null",
        "earnings --since 2026-10-01 --by day,merchant,channel,method",
        "sign getPayChannels --merchant demo",
        "ledger checkpoints",
        "ledger adjust demo 1.00 --reason gift --channel 1",
        "ledger account-balances",
        "ledger record-balance 1 12.34 --note counted",
    ):
        run(*command.split())
    yesterday = in_china(clock.now()).date() - timedelta(1)
    with patch.object(SandboxDriver, "fetches_statements", True):
        run("bill", "fetch", "2", str(yesterday))
    add_difference(done, str(yesterday))
    for command in ("difference check 1", "difference explain 1 --note x"):
        run(*command.split())
    for options in _combined("--channel 2", "--state late"):
        run("bill", "list", *options)
    for options in _combined("--channel 2", "--state closed"):
        run("difference", "list", *options)
    for command in ("add anna --role viewer", "password anna"):
        run("operator", *command.split(), typed="a long password\n")
    secret = second_factor.new_secret()
    second_factor.set_up(operators.find("anna"), secret, pyotp.TOTP(secret).now(), session_id=0)
    run("operator", "reset-factor", "anna")
    run("operator", "set", "anna", "--disabled")
    run("operator", "list")
    for options in _combined("--merchant demo", "--status paid", "--type sell", "--exceptions"):
        run("order", "list", *options)
    run("order", "resolve", deposits[1], "--credit")
    for options in _combined("--merchant demo", "--state dead"):
        run("callback", "list", *options)
    webhook_id = next(row["id"] for row in flask_json("callback", "list") if row["order_no"] == done)
    run("callback", "show", webhook_id)
    run("callback", "redeliver", webhook_id)
    for options in _combined("--merchant demo", "--since 2026-01-01", "--until 2100-01-01"):
        run("merchant", "set", "demo", "--callback-url", "")  # so that the callback fails
        completed(api)
        run("merchant", "set", "demo", "--callback-url", "http://127.0.0.1:9/")
        run("callback", "redeliver", "--state", "dead", *options)


LISTS = {
    "orders": (
        "flt_status=paid",
        "flt_type=sell",
        "flt_merchant=demo",
        "flt_channel=2",
        "flt_least=9",
        "flt_note=yes",
        "search=0000042",
    ),
    "payouts": ("flt_state=under_way", "flt_state=all", "flt_merchant=demo", "flt_channel=3", "flt_batch=1"),
    "exceptions": (
        *("flt_state=settled", "flt_state=all", "flt_kind=wrong_amount", "flt_merchant=demo", "flt_type=buy"),
        *("flt_amount=99", "search=SB2026"),
    ),
    "claims": ("flt_merchant=demo", "flt_channel=3", "flt_amount=100", "search=0000042"),
    "callbacks": ("flt_state=dead", "flt_merchant=demo", "flt_event=order.paid", f"flt_order={'1' * 24}"),
    "entries": (
        *("flt_account=held", "flt_merchant=demo", "flt_channel=2", "flt_purpose=credit"),
        f"flt_order={'1' * 24}",
    ),
    "bills": ("flt_channel=2", "flt_state=late"),
    "differences": ("flt_channel=2", "flt_state=all", "flt_state=closed"),
    "merchants": ("flt_enabled=yes", "search=de"),
    "channels": ("flt_driver=manual", "search=Sand"),
    "accounts": ("flt_merchant=demo",),
    "audit": ("flt_who=demo", "flt_about=order&flt_key=1"),
}
TIMELESS = ("bills", "differences", "merchants", "channels", "accounts")
TIMES = ("flt_since=2026-03-01&flt_until=2026-03-02",)
PLACES = ("before=100", "after=100", "after=0")


def sign_in(client):
    """Sign in to the console as `demo`."""
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', client.get("/console/login").text)[1]
    form = {"csrf_token": token, "name": "demo", "password": "demo-password"}
    assert client.post("/console/login", data=form).status_code == 302


def look_through_all_lists(client):
    """Open every list of the console with each filter, each pair of filters and a time range; pages of all kinds,
    files."""
    sign_in(client)
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', client.get("/console/password").text)[1]
    for name, filters in LISTS.items():
        singles = ["", *filters, *(() if name in TIMELESS else TIMES)]
        pairs = ["&".join(pair) for pair in itertools.combinations(singles[1:], 2)]
        for query, place in itertools.product([*singles, *pairs], ("", *PLACES)):
            assert client.get(f"/console/{name}/?{query}&{place}").status_code == 200, (name, query)
        for query in singles:
            assert client.post(f"/console/{name}/export?{query}", data={"csrf_token": token}).status_code == 200
    for path in ("export?merchant=demo&", "export/all?"):
        month = f"month={monthly_statement.this_month():%Y-%m}"
        assert client.post(f"/console/statements/{path}{month}", data={"csrf_token": token}).status_code == 200
