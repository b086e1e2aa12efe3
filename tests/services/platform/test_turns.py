"""Whose turn it is: what is left to parties that do well, whatever the others do."""

import pytest

from services.platform.fair_turns import PACE, Turns

WORKERS = 8


@pytest.fixture
def turns():
    return Turns(WORKERS)


def taken(turns, parties, more=False):
    """How many workers each of these gets, one after the other."""
    rooms = {}
    for party in parties:
        rooms[party] = turns.reserve(party)
        turns.give_back(party, 0, more)
    return [party for party, room in rooms.items() if room]


def fails(turns, parties):
    for party in parties:
        assert turns.reserve(party)
        turns.done(party, False)


def in_line(turns):
    """All whose turn it is, until there is nobody."""
    found = []
    while (party := turns.next()) is not None:
        found.append(party)
    return found


def test_parties_that_are_failing_get_half_of_the_workers(turns):
    fails(turns, range(100))
    assert len(taken(turns, range(100))) == WORKERS // 2


def test_parties_that_are_failing_or_in_doubt_get_three_quarters(turns):
    fails(turns, range(100))
    taken(turns, range(100))
    assert len(taken(turns, range(100, 200))) == WORKERS // 4
    assert len(taken(turns, range(200, 300))) == 0


def test_a_party_that_does_well_finds_a_worker_behind_any_number_of_others(turns):
    turns.learn(1000, True)
    taken(turns, range(100))
    assert taken(turns, [1000]) == [1000]


def test_one_failure_puts_in_doubt_and_two_are_failing_and_a_success_does_well_again(turns):
    turns.learn(1000, True)
    fails(turns, range(100))
    taken(turns, range(100))  # half of the workers: no more for those that are failing
    fails(turns, [1000])
    assert turns.reserve(1000)
    turns.done(1000, False)
    assert not turns.reserve(1000)
    assert turns.reserve(2000)
    turns.done(2000, True)
    taken(turns, range(3000, 4000))  # three quarters: no more for those in doubt
    assert turns.reserve(2000)


def test_work_under_way_counts_for_what_its_party_turned_out_to_be(turns):
    for party in range(WORKERS):
        turns.learn(party, True)
        turns.reserve(party)
        turns.done(party, True)
    assert [turns.reserve(party) for party in range(WORKERS // 2)] == [2, 2, 2, 2]
    for party in range(WORKERS // 2):  # one of two fails
        turns.done(party, False)
    # Four in doubt have a piece under way each: two are left for those in doubt, and two for those that do well.
    assert taken(turns, [1000, 1001, 1002]) == [1000, 1001]
    assert turns.reserve(5) == 2


def test_those_in_line_have_their_turns_and_of_those_in_doubt_the_last_is_the_first(turns):
    fails(turns, (1, 2))
    fails(turns, (1, 2))
    turns.learn(9, True)
    for party in (1, 2, 3, 4):
        turns.line_up([party])
    assert turns.line_up([9]) == [9]
    assert in_line(turns) in ([4, 1, 3, 2], [1, 4, 2, 3])


def test_a_party_with_more_to_do_stands_in_line_again_when_a_piece_is_done(turns):
    turns.learn(1, True)
    taken(turns, [1], more=True)
    turns.done(1, True)
    assert in_line(turns) == [1]
    taken(turns, [1], more=False)
    turns.done(1, True)
    assert in_line(turns) == []


def test_what_comes_while_a_partys_room_is_full_is_remembered(turns):
    taken(turns, [1])
    assert not turns.reserve(1)
    turns.done(1, True)
    assert in_line(turns) == [1]


def test_only_those_that_do_not_do_well_are_paced(turns):
    turns.learn(1, True)
    assert [turns.pause(2, 50.0), turns.pause(3, 50.0), turns.pause(1, 50.0)] == [0, pytest.approx(PACE), 0]
    assert turns.pause(2, 50.0 + PACE) == pytest.approx(PACE)
    assert turns.pause(2, 60.0) == 0


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_few_workers_are_for_everybody(workers):
    turns = Turns(workers)
    fails(turns, [1])
    fails(turns, [1])
    assert turns.reserve(1)
