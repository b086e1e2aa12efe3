"""The pool of workers by itself: turns, threads, and what a worker needs of the database."""

import threading
import time
from collections import Counter

import pytest

from models.db.base import database
from services.callbacks import outbox
from services.platform.fair_pool import FairPool, start_due
from tests.support import completed, until


@pytest.mark.parametrize(("workers", "busy"), [(1, 1), (8, 2), (8, 4), (8, 8), (8, 20)])
def test_however_many_have_ever_more_to_do_a_newcomer_has_its_turn(workers, busy):
    pool, enough, told, newcomer = FairPool(workers, "test"), threading.Event(), threading.Event(), 0
    left = {newcomer: 1} | dict.fromkeys(range(1, busy + 1), 10**9)

    def more(party):
        room = pool.reserve(party)
        count = 0 if enough.is_set() else min(room, left[party])
        left[party] -= count
        pool.give_back(party, room - count)
        return [party] * count

    def work(party):
        time.sleep(0.002)
        if party == newcomer:
            told.set()
        return True

    def sweep(parties):
        for party in parties:
            for item in more(party):
                pool.submit(party, work, item, more)

    sweep(range(1, busy + 1))
    time.sleep(0.1)  # all workers are at work
    sweep([newcomer])  # and no other sweep follows
    came = told.wait(5)
    enough.set()
    pool.stop()
    assert came


def test_where_no_thread_can_be_started_for_a_while_every_merchant_still_has_its_turn(monkeypatch):
    pool, enough, start = FairPool(8, "test"), threading.Event(), threading.Thread.start
    done, refused = Counter(), []

    def refuse_some(thread):
        if len(refused) < 7:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    def more(party):
        room = pool.reserve(party)
        pool.give_back(party, room if enough.is_set() else 0)
        return [] if enough.is_set() else [party] * room

    def work(party):
        time.sleep(0.002)
        done[party] += 1
        return True

    monkeypatch.setattr(threading.Thread, "start", refuse_some)
    for party in pool.whose_turn(range(1, 9), went_well=lambda parties: dict.fromkeys(parties, True)):
        for item in more(party):
            pool.submit(party, work, item, more)
    assert len(refused) == 7
    try:
        until(lambda: len(done) == 8 and min(done.values()) > 5)
    finally:
        enough.set()
        pool.stop()


@pytest.mark.parametrize("end", [ValueError("no"), SystemExit(3)])
def test_whatever_ends_a_piece_of_work_leaves_its_place_to_the_next(end):
    pool = FairPool(1, "test")

    def work(_):
        raise end

    try:
        for party in range(3):
            until(lambda party=party: pool.reserve(party))
            pool.submit(party, work, "an item", lambda _: [])
    finally:
        pool.stop()


def test_a_worker_that_tells_a_merchant_opens_no_database_connection(api, shop):
    pool, unconnected = FairPool(8, "test"), []

    def attempt(callback):
        delivered = outbox.attempt(callback)
        unconnected.append(database.is_closed())
        return delivered

    for _ in range(3):
        completed(api)
    time.sleep(0.1)  # what is known of the merchants is to be looked up again by now
    start_due(pool, outbox.DUE, attempt, lease=25)
    until(lambda: len(unconnected) == 3)
    pool.stop()
    assert all(unconnected)
    assert len(shop.got) == 3
