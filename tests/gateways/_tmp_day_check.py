import pytest
from types import SimpleNamespace
from tests.gateways.test_groups import members, order, made_after_all, cut_off
from tests.upstreams.epay import EpayPlatform

@pytest.fixture
def pair(web_server, add_channel, flask, flask_json):
    def add(first, second):
        platforms, channels = [], []
        for at, (version, config) in enumerate((first, second)):
            p = EpayPlatform(web_server, f"epay{at}", key=f"an-epay-key-number-{at}")
            platforms.append(p)
            channels.append(add_channel("epay", p.config(version, **config), "--name", f"P{at}"))
            flask("channel", "unlink", channels[-1], "demo")
        group = flask_json("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "G", "--config", "mode=priority")["id"]
        flask("channel", "link", group, "demo")
        for c in channels: flask("group", "add", group, c)
        return SimpleNamespace(platforms=platforms, channels=channels, group=group)
    return add

def late(ahead, due):
    for _ in range(60):
        ahead(3600); due.orders()

def phantom(p, no, money="100.00"):
    p.orders[no] = {"status": "1", "trade_no": "A-1", "pid": "1001", "out_trade_no": no, "type": "wxpay", "name": "x", "money": money, "notify_url": "", "endtime": "2026-05-01 12:00:00"}

def test_t1_all_refused(api, pair, exceptions, ahead, due):
    made = pair(("1", {}), ("1", {}))
    for p in made.platforms: p.kinds = ()
    answer = api.buy(channel=made.group, merchant_order_no="A")
    no = answer.data["order_no"]
    phantom(made.platforms[0], no)
    late(ahead, due)
    assert list(exceptions().values()) == ["late_payment"], exceptions()

def test_t2_second_without_checks_completed(api, pair, exceptions, ahead, due):
    made = pair(("1", {}), ("1", {"no_status_checks": "true"}))
    made.platforms[0].kinds = ()
    no = api.buy(channel=made.group).data["order_no"]
    made.platforms[1].pay(f"{no}_2")
    made.platforms[1].notice(f"{no}_2", "1").to(api.send, no)
    assert api.status(no) == "completed"
    phantom(made.platforms[0], no)
    late(ahead, due)
    assert exceptions(), exceptions()

def test_t2b_second_without_checks_unpaid(api, pair, exceptions, ahead, due):
    made = pair(("1", {}), ("1", {"no_status_checks": "true"}))
    made.platforms[0].kinds = ()
    no = api.buy(channel=made.group).data["order_no"]
    phantom(made.platforms[0], no)
    late(ahead, due)
    assert api.status(no) == "completed" or exceptions(), api.status(no)

def test_t3_second_closed(api, pair, exceptions, ahead, due):
    made = pair(("1", {}), ("2", {}))
    made.platforms[0].kinds = ()
    no = api.buy(channel=made.group).data["order_no"]
    ahead(1000); due.orders()
    assert api.status(no) == "cancelled"
    phantom(made.platforms[0], no)
    late(ahead, due)
    assert exceptions(), api.status(no)

@pytest.mark.parametrize("says", ["notice", "silent"])
def test_t4_same_reference(api, pair, exceptions, ahead, due, says):
    made = pair(("1", {}), ("1", {}))
    made.platforms[0].kinds = ()
    no = api.buy(channel=made.group).data["order_no"]
    made.platforms[1].pay(f"{no}_2")
    made.platforms[1].notice(f"{no}_2", "1").to(api.send, no)
    assert api.status(no) == "completed"
    phantom(made.platforms[0], no)
    made.platforms[0].orders[no]["trade_no"] = made.platforms[1].orders[f"{no}_2"]["trade_no"]
    if says == "notice": made.platforms[0].notice(no, "1").to(api.send, no)
    late(ahead, due)
    assert exceptions(), exceptions()
