"""A channel with the driver `epay` that leads to another instance of this service, by both versions of the protocol."""

import json

import pytest

from tests.databases import copied
from tests.support import DemoService, until

HERE, THERE = "demo", "demo"


@pytest.fixture(scope="module")
def instances(slow, seeded_demo, tmp_path_factory):
    """Two demos: ours, and the one behind its channel."""
    folder = tmp_path_factory.mktemp("chain")
    running = [DemoService(copied(seeded_demo, folder / name)).start() for name in ("ours", "theirs")]
    yield running
    for each in running:
        each.stop()


@pytest.fixture(scope="module")
def keys(instances):
    """The account at the other instance: its keys, and the platform's."""
    _, theirs = instances
    types = [part for each in ("alipay=2", "wxpay=2", "bank=3:bank") for part in ("--type", each)]
    made = theirs.flask("epay", "enable", THERE, "--host", "127.0.0.1", *types, "--json")
    return json.loads(made.stdout) | json.loads(theirs.flask("epay", "rotate", THERE, "--rsa", "--json").stdout)


@pytest.fixture(scope="module", params=["1", "2"], ids=["md5", "rsa"])
def channel(request, instances, keys, tmp_path_factory):
    """The channel to the other instance, of each version."""
    ours, _ = instances
    config = {"base_url": keys["api_url"], "version": request.param, "pid": keys["pid"]}
    if request.param == "1":
        config["key"] = keys["key"]
    else:
        config |= {"private_key": keys["private_key"], "platform_key": keys["platform_public_key"]}
    file = tmp_path_factory.mktemp("config") / "epay.json"
    file.write_text(json.dumps(config))
    added = ours.flask(
        *("channel", "add", "--name", "Other instance", "--category", "gateway_b", "--driver", "epay"),
        *("--pay-method", "alipay,wxpay,bank", "--config-file", str(file), "--json"),
    )
    number = json.loads(added.stdout)["id"]
    ours.flask("channel", "link", str(number), HERE)
    return number


@pytest.fixture
def both(instances):
    """`both(order_no)`: the status of our order, and of the order behind it."""
    ours, theirs = instances
    return lambda order_no: (
        ours.api.status(order_no),
        theirs.api.listed(merchant_order_no=order_no).data["list"][0]["status"],
    )


@pytest.fixture
def behind(instances):
    """`behind(order_no)`: the number of the order behind ours."""
    _, theirs = instances
    return lambda order_no: theirs.api.listed(merchant_order_no=order_no).data["list"][0]["order_no"]


def test_a_payment_there_completes_the_order_here(channel, instances, both, behind):
    ours, theirs = instances
    number = ours.api.buy("88.80", channel, paychannel_paymethod="alipay").data["order_no"]
    assert both(number) == ("pending", "pending")
    theirs.api.play(behind(number), "success")
    until(lambda: both(number) == ("completed", "completed"))


def test_a_payment_is_found_by_a_status_check(channel, instances, both, behind):
    ours, theirs = instances
    number = ours.api.buy("12.00", channel, paychannel_paymethod="wxpay").data["order_no"]
    theirs.api.play(behind(number), "silent")
    theirs.flask("order", "check", behind(number))
    ours.flask("order", "check", number)
    until(lambda: both(number) == ("completed", "completed"))


def test_the_payer_chooses_there_if_there_is_no_code(channel, instances, both, behind):
    ours, theirs = instances
    number = ours.api.buy("3.00", channel, paychannel_paymethod="bank").data["order_no"]
    page = ours.api.send("GET", f"/addons/paychannel/pay/index?order_no={number}").text
    assert f"{theirs.url}/addons/paychannel/pay/index?order_no={behind(number)}" in page.replace("&amp;", "&")


def test_the_channels_check_finds_no_problem(channel, instances):
    ours, _ = instances
    checked = ours.flask("channel", "check", str(channel), check=False)
    assert checked.returncode == 0, checked.stdout


def test_a_wrong_amount_there_is_never_credited_here(channel, instances, both, behind):
    ours, theirs = instances
    number = ours.api.buy("50.00", channel, paychannel_paymethod="alipay").data["order_no"]
    theirs.api.play(behind(number), "wrong_amount")
    ours.flask("order", "check", number)
    assert both(number) == ("pending", "pending")
