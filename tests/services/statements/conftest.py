"""Channels at the loopback WeChat Pay and Alipay, whose bills the service fetches."""

from datetime import datetime

import pytest

from models.tables.bill import StatementDifference
from services.statements import bills, differences
from tests.upstreams.accounts import CHINA


@pytest.fixture
def china(time_machine):
    """`china("2026-05-01 12:00:00")` sets the time in China."""
    return lambda text: time_machine.move_to(datetime.fromisoformat(text).replace(tzinfo=CHINA))


@pytest.fixture
def opened(web_server, flask, flask_json):
    """`opened(WechatAccount)`: a new account, and a channel of the merchant `demo` for it."""

    def add(kind, *more, mode="key"):
        account = kind(web_server)
        pairs = [part for name, value in account.config(mode).items() for part in ("--config", f"{name}={value}")]
        new = ("channel", "add", "--category", "gateway_b", "--driver", kind.driver, "--name", kind.driver)
        account.channel = flask_json(*new, *pairs, "--cost", "0.6", *more)["id"]
        flask("channel", "link", account.channel, "demo")
        return account

    return add


@pytest.fixture
def buy(api):
    """`buy(account, "100.00")`: the number of a new deposit."""

    def place(account, amount="100.00"):
        answer = api.buy(amount, account.channel, paychannel_paymethod=account.method)
        assert answer.code == 1, answer
        return answer.data["order_no"]

    return place


@pytest.fixture
def paid(api, buy):
    """`paid(account, "100.00")`: the number of a deposit that was paid and credited."""

    def place(account, amount="100.00"):
        order_no = buy(account, amount)
        account.receives(order_no)
        assert account.notice(order_no).to(api.send, order_no).status in (200, 204)
        return order_no

    return place


@pytest.fixture
def found(app):
    """`found()`: the kept differences by state, kind, codes of remarks and order number, after the job has run."""

    def read():
        bills.run()
        rows = StatementDifference.select().order_by(StatementDifference.id)
        told = [(row, differences.facts_of(row)) for row in rows]
        return [(row.state, row.kind, [each.code.value for each in facts.notes], facts.order_no) for row, facts in told]

    return read
