"""Statements in the sandbox's layout, compared by `tillbook reconcile`."""

import json
import time
from datetime import datetime

import pytest

from runtime.clock import CHINA
from tests.support import completed

NOW = "2026-05-01 12:00:00"
HEADER = "order_no,amount,fee,status,time,reference"


def line(order_no, amount="100.00", *, fee="0.00", status="paid", time=NOW, reference=""):
    return ",".join((order_no, f'"{amount}"', fee, status, time, reference))


def csv_of(*lines, header=HEADER):
    return "\n".join((header, *lines, ""))


@pytest.fixture(autouse=True)
def zone(monkeypatch):
    """`zone("Asia/Tokyo")` sets the machine's time zone; it is that of China at first."""

    def change(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    change("Asia/Shanghai")
    yield change
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def clock(time_machine):
    """`clock("2026-05-01 23:55:00")` sets the time in China; each test begins at noon."""

    def at(text):
        time_machine.move_to(datetime.fromisoformat(text).replace(tzinfo=CHINA))

    at(NOW)
    return at


@pytest.fixture
def run(app, tmp_path):
    """`run(content, *options)`: the command's exit."""

    def reconcile(content, *options, channel=2):
        file = tmp_path / "statement.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return app.test_cli_runner().invoke(args=["reconcile", str(channel), str(file), *options])

    return reconcile


@pytest.fixture
def compared(run):
    """`compared(content, *options)`: the command's JSON; the status reports whether there are differences."""

    def reconcile(content, *options, channel=2):
        result = run(content, *options, "--json", channel=channel)
        assert result.exit_code in (0, 3), result.output
        found = json.loads(result.stdout)
        assert result.exit_code == (3 if found["differences"] else 0)
        return found

    return reconcile


@pytest.fixture
def differences(compared):
    """`differences(line(...), ..., day="2026-05-01")`: those of a statement with these lines, of this day if given."""

    def reconcile(*lines, day="", options=(), channel=2):
        of_day = ("--since", day, "--until", day) if day else ()
        return compared(csv_of(*lines), *of_day, *options, channel=channel)["differences"]

    return reconcile


@pytest.fixture
def kinds(differences):
    """`kinds(line(...), ..., day="2026-05-01")`: the differences, each as (kind, order number)."""
    return lambda *lines, **more: [(each["kind"], each["order_no"]) for each in differences(*lines, **more)]


@pytest.fixture
def refused(run):
    """`refused(content, *options)`: the one line with which the command ends, without a comparison."""

    def reconcile(content, *options, status=1):
        result = run(content, *options)
        assert (result.exit_code, result.stdout) == (status, ""), result.output
        assert status == 2 or result.stderr.count("\n") == 1
        return result.stderr

    return reconcile


@pytest.fixture
def paid_out(api, flask, later):
    """`paid_out()`: the number of a withdrawal of 100 yuan that the channel has paid out."""

    def withdrawal(channel=2):
        order_no = api.sell(channel=channel).data["order_no"]
        flask("order", "accept", order_no)
        if channel == 3:
            flask("order", "paid", order_no, "--reference", "BANK-1", "--shared-reference")
        else:
            later(60, 2)
        assert api.status(order_no) == "completed"
        return order_no

    return withdrawal


@pytest.fixture
def credited(api, flask):
    """`credited(kind)`: the number of a deposit of which an operator credited 90 yuan manually, as this kind."""

    def settled(kind, channel=2, how="--credit"):
        order_no = completed(api) if kind == "paid_twice" else api.buy(channel=channel).data["order_no"]
        if kind == "late_payment":
            api.play(order_no, "fail")
        api.notice(order_no, 9_000, reference="R-9")
        if how:
            flask("order", "settle", order_no, how)
        return order_no

    return settled
