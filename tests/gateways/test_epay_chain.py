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
def behind(instances):
    """`behind(order_no)`: number and status of the order behind ours."""
    _, theirs = instances

    def find(order_no):
        [order] = theirs.api.listed(merchant_order_no=order_no).data["list"]
        return order["order_no"], order["status"]

    return find


def test_payments_there_are_found_here_by_their_notices_and_by_status_checks(channel, instances, behind):
    ours, theirs = instances
    amounts = {"success": "88.80", "silent": "12.00", "wrong_amount": "50.00"}
    orders = {outcome: ours.api.buy(amount, channel).data["order_no"] for outcome, amount in amounts.items()}
    for outcome, number in orders.items():
        behind_it, status = behind(number)
        assert (ours.api.status(number), status) == ("pending", "pending")
        theirs.api.play(behind_it, outcome)
    theirs.flask("order", "check", behind(orders["silent"])[0])
    for outcome in ("silent", "wrong_amount"):
        ours.flask("order", "check", orders[outcome])
    for outcome in ("success", "silent"):
        number = orders[outcome]
        until(lambda number=number: (ours.api.status(number), behind(number)[1]) == ("completed", "completed"))
    unpaid = orders["wrong_amount"]
    assert (ours.api.status(unpaid), behind(unpaid)[1]) == ("pending", "pending")


def test_the_payer_chooses_there_if_there_is_no_code(channel, instances, behind):
    ours, theirs = instances
    number = ours.api.buy("3.00", channel, paychannel_paymethod="bank").data["order_no"]
    page = ours.api.send("GET", f"/addons/paychannel/pay/index?order_no={number}").text
    assert f"{theirs.url}/addons/paychannel/pay/index?order_no={behind(number)[0]}" in page.replace("&amp;", "&")


def test_the_channels_check_finds_no_problem(channel, instances):
    ours, _ = instances
    checked = ours.flask("channel", "check", str(channel), check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(("outcome", "whole"), [("success", False), ("processing", False), ("success", True)])
def test_a_refund_here_is_a_refund_there(channel, instances, behind, outcome, whole):
    ours, theirs = instances
    order_no = ours.api.buy("88.80", channel).data["order_no"]
    behind_it, _ = behind(order_no)
    theirs.api.play(behind_it, "success")
    until(lambda: ours.api.status(order_no) == "completed")
    theirs.flask("channel", "set", "2", "--config", f"refund={outcome}")
    fields = {"order_no": order_no, "cny_amount": "88.80" if whole else "30.00", "merchant_refund_no": f"R{order_no}"}
    refund = ours.api.call("createRefund", fields).data
    [there] = theirs.api.call("refundQueryList", {"order_no": behind_it}).data["list"]
    assert there["cny_amount"] == fields["cny_amount"]
    assert (refund["status"] == "completed") is (there["status"] == "completed")
    if outcome == "processing":
        assert refund["status"] == "confirmed"
        return
    assert refund["status"] == "completed"
