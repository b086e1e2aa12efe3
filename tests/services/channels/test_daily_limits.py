"""A daily limit that is set while orders arrive counts each of them once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from models.db.base import database
from services.channels import channel_setup, group_setup
from tests.support import Api, through_flask

ORDERS, BUYERS = 40, 4


@pytest.fixture
def group(flask, flask_json):
    """The number of a group whose only member is channel 2."""
    made = flask_json("channel", "add", "--driver", "group", "--category", "gateway_b", "--name", "All")["id"]
    flask("channel", "link", made, "demo")
    flask("group", "add", made, 2)
    return made


def _in_thread(work):
    try:
        return work()
    finally:
        database.close()


def test_orders_that_arrive_while_the_first_limit_is_set_are_all_counted(app, group, flask_json):
    def buy():
        return Api(through_flask(app.test_client())).buy("1.00", channel=group).code

    def limit(count):
        with app.app_context():
            row = group_setup.find_member(channel_setup.find_channel(group), 2)
            group_setup.set_member(row, daily_count=count)

    with ThreadPoolExecutor(BUYERS + 1) as pool:
        calls = [pool.submit(_in_thread, buy) for _ in range(ORDERS // 2)]
        for count in (None, 1_000, None, 2_000):
            calls.append(pool.submit(_in_thread, lambda count=count: limit(count)))
            calls += [pool.submit(_in_thread, buy) for _ in range(ORDERS // 8)]
        results = [call.result() for call in calls]
    assert results.count(1) == ORDERS
    (member,) = flask_json("group", "members", group)["members"]
    assert (member["today_count"], member["today_amount"]) == (ORDERS, f"{ORDERS}.00")
