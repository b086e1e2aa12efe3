"""The rank of a status, by which merchants order the callbacks of an order."""

import re

import pytest
from tillbook_client.answers import RANKS

from models.tables.order import BUY, CANCELLED, COMPLETED, SELL, STATUSES, TRANSITIONS
from tests.support import ROOT


def documented(page):
    """The statuses of both order types on a page of the documentation, lowest first."""
    rows = re.findall(r"^\| \d \| `(\w+)` \| `(\w+)` \|$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    return dict(zip((BUY, SELL), zip(*rows, strict=True), strict=True))


@pytest.mark.parametrize("order_type", [BUY, SELL])
def test_every_step_of_an_order_raises_the_rank(order_type):
    ranks = RANKS[order_type]
    assert sorted(ranks) == sorted(STATUSES)
    steps = [(before, after) for before, every in TRANSITIONS[order_type].items() for after in every]
    assert all(ranks.index(before) < ranks.index(after) for before, after in steps)
    assert ranks[-2:] == (CANCELLED, COMPLETED)


@pytest.mark.parametrize("page", ["docs/callbacks.md", "docs/zh/callbacks.md"])
def test_the_documentation_has_the_same_ranks(page):
    assert documented(page) == RANKS
