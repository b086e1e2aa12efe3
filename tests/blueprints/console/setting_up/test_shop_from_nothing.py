"""From an empty database to a shop that takes orders, by the console's forms alone."""

import pytest

from tests.support import Api


@pytest.fixture
def instance(any_database, tmp_path):
    """An empty instance folder."""
    return tmp_path / "instance"


@pytest.fixture
def settings_of_app():
    return {"private_callbacks": False}


def test_a_shop_is_set_up_through_forms_and_accepts_an_order(fill, shown, http, page, typed):
    assert "No channels yet." in page("merchant/new").text
    answer = fill("merchant/new", key="shop", name="My shop 我的店", buy_rate="0.60", sell_rate="0.3")
    secrets = shown(answer)
    assert answer.status_code == 200
    channel = {"name": "Try it", "category": "gateway_b", "merchants": ["1"], "max_amount": "500"}
    made = fill("channel/new?driver=manual", config_qr_wxpay="wxp://static-code", **channel)
    assert (made.status_code, made.headers["Location"]) == (303, "/console/channel/1")

    shop = Api(http, "shop", secrets["secret"])
    order = shop.buy("100.00", channel=1).data
    assert (order["service_amount"], order["merchant_actual_amount"]) == (60, 9_940)
    assert shop.buy("500.01", channel=1).code == 42200
    assert typed("merchant/shop").getlist("channels") == ["1"]

    assert "whsec_" in secrets["callback_secret"]
    fill("merchant/shop/account", real_name="张三", card_number="6222020000000000017")
    assert "*0017" in page("merchant/shop").text
    assert shop.sell("10.00", channel=1).code == 40901
    page = fill("merchant/shop/adjust", amount="100", reason="first money")
    assert "Confirm adjustment" in page.text


def test_outside_demo_mode_no_sandbox_channel_is_added_and_no_private_network_called(page, fill, receiver):
    assert "A built-in simulator" not in page("channel/new").text
    assert "Choose a provider" in page("channel/new?driver=sandbox").text
    assert "Choose a provider" not in page("channel/new?driver=manual").text
    fill("merchant/new", key="shop", name="Shop", buy_rate="0", sell_rate="0", callback_url=receiver.url)
    answer = fill("merchant/shop", "/test")
    assert "The address is in a private network" in answer.text
    assert receiver.got == []
