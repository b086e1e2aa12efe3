"""Random payments, payouts, reports, files, decisions, failures and restores: the money adds up after each step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from pytest_httpserver import HTTPServer

from tests.random_walk.bank import ClaimsWalk, PayoutsWalk
from tests.random_walk.life import Life
from tests.random_walk.refunds import Refunds
from tests.random_walk.reports import Reports
from tests.upstreams.money_moves import DRIVERS

OF_CHANNELS = {each.__name__: type(each.__name__, (Reports,), {"moves_class": each}) for each in DRIVERS}
WALKS: dict[str, type[Life]] = {"claims": ClaimsWalk, "payouts": PayoutsWalk, "refunds": Refunds} | OF_CHANNELS
STEPS = 30  # of a life


@pytest.fixture
def walk(seeded: Path, web_server: HTTPServer):
    """`walk("claims", 3)`: live three lives; every invariant holds after each step.

    Those of channels are the same each time, without WALK_LIVES.
    """

    def live(name: str, lives: int) -> None:
        Life.seeded, Life.server = seeded, web_server
        bounds = settings(
            max_examples=lives,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=issubclass(WALKS[name], Reports) and "WALK_LIVES" not in os.environ,
            phases=[Phase.generate],  # shrinking a failure takes minutes
        )
        run_state_machine_as_test(WALKS[name], settings=bounds)

    return live


@pytest.mark.parametrize(("name", "lives"), [("claims", 2), ("payouts", 3), ("refunds", 4), ("SandboxMoves", 5)])
def test_whatever_happens_the_money_adds_up(walk, name, lives):
    walk(name, lives)


@pytest.mark.parametrize("name", WALKS)
def test_whatever_happens_in_many_lives_the_money_adds_up(slow, walk, name):
    walk(name, int(os.environ.get("WALK_LIVES", "15")))
