"""A random day on which channels fail: the orders of many merchants through groups, and through single channels.

The checks are in `a_day.py`. Postgres has two hosts. SEED repeats a day.
"""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import create_app
from tests import databases, postgres
from tests.services.channels.a_day import PATIENCE, Host, Life
from tests.services.channels.day_plan import QUICK, WHOLE, Plan, Size

FIRST = datetime(2026, 5, 1, tzinfo=UTC) - timedelta(hours=8)  # midnight in China
WAYS = ("groups", "direct", "group of one")
NO_LIMITS = dict.fromkeys(("requests_per_second", "requests_per_address", "pages_per_address"), 10**6)


@pytest.fixture
def settings_of_app() -> dict[str, Any]:
    """No limit of requests."""
    return NO_LIMITS


@pytest.fixture
def hosts(app, instance):
    """Two applications on one Postgres, or one on SQLite."""
    made = [Host(app)]
    if postgres.IN_USE:
        made.append(Host(create_app(databases.settings_of(instance, **NO_LIMITS))))
    made[0].enter()
    yield made
    for each in made[1:]:
        each.enter()
        databases.disconnect()
    made[0].enter()


@pytest.fixture
def lives(hosts, web_server, time_machine):
    """`lives(seed, size, way)`: the figures of a day, after everything in it was checked."""
    days, state = iter(range(0, 60, 6)), random.getstate()

    def live(seed: int, size: Size, way: str) -> dict[str, Any]:
        began = time.perf_counter()
        begins = FIRST + timedelta(days=next(days), hours=size.begins)
        life = Life(Plan(seed, size), way, int(begins.timestamp()), hosts, web_server, time_machine)
        figures = life.live()
        share, seconds = 100 * figures["payable"] / figures["wanted"], time.perf_counter() - began
        print(f"{way}: {share:.1f} % of {figures['wanted']} orders could be paid in time; {seconds:.0f} s", flush=True)
        print(figures, flush=True)
        return figures

    yield live
    random.setstate(state)


def test_groups_keep_every_promise_on_a_day_of_outages_and_more_orders_can_be_paid(slow, hosts, lives):
    """Set DAY=whole for the whole day, and SEED to repeat one."""
    is_whole = os.environ.get("DAY") == "whole"
    seed = int(os.environ.get("SEED") or (random.randrange(10**6) if is_whole else 50))
    size = WHOLE if is_whole else QUICK
    print(f"seed {seed}, {len(hosts)} hosts: {Plan(seed, size).facts()}", flush=True)
    figures = {way: lives(seed, size, way) for way in (WAYS if is_whole else WAYS[:2])}
    shares = {way: f"{100 * each['payable'] / each['wanted']:.1f} %" for way, each in figures.items()}
    print(f"Orders that could be paid within {PATIENCE} s: {shares}", flush=True)
    if is_whole or "SEED" not in os.environ:
        groups = figures["groups"]
        assert groups["payable"] > figures["direct"]["payable"]
        assert groups["breakers opened"] > 0
        counts = {**groups["creations"], **groups["counts"]}
        assert {"refused", "unknown", "passed on after a refusal", "payments open after a refusal"} <= counts.keys()
