"""Random reports of every driver, with operators, clock changes and restores: every difference is recorded."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.reports_walk import Reports
from tests.upstreams.money_moves import DRIVERS


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def machine(request, seeded, web_server):
    Reports.seeded, Reports.moves_class, Reports.server = seeded, request.param, web_server
    return Reports


def run(machine, lives, steps=30):
    """Walk through the same lives each time, or with WALK_LIVES through as many others."""
    bounds = settings(
        derandomize="WALK_LIVES" not in os.environ,
        max_examples=lives,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # shrinking a failure takes minutes
    )
    run_state_machine_as_test(machine, settings=bounds)


def test_every_difference_between_channel_and_ledger_is_recorded(slow, machine):
    run(machine, int(os.environ.get("WALK_LIVES", "15")))
