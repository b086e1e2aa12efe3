"""Whose turn it is at workers that many parties share: rooms, standings, lines. Whoever asks holds a lock."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

PACE = 0.01  # seconds


class Standing(IntEnum):
    """How a party's work went of late."""

    WELL = 0  # its last piece went well
    IN_DOUBT = 1  # nothing is known of it, or its last piece failed and the one before went well
    FAILING = 2


class Turns:
    """A party's room, and how many workers parties of its standing may take together.

    A room doubles while its party's work succeeds, up to a quarter of the workers, and shrinks by half when it fails,
    as a congestion window does. That alone leaves nothing where there are more dead parties than workers: so those
    that are failing get half of the workers, together with those in doubt three quarters. Parties that find no
    worker stand in line, one line for each standing, and the lines take turns. Of those in doubt the last is
    the first: who is new there needs no more than one good try.

    Work that fails at once would take the processor instead of the workers: so all but those that do well take their
    time, PACE between any two pieces.
    """

    def __init__(self, workers: int):
        self._largest_room = max(1, workers // 4)
        # By standing: the most that parties of this one and the worse ones have together.
        self._most = (workers, max(1, workers * 3 // 4), max(1, workers // 2))
        self._busy = [0, 0, 0]  # workers by standing
        self._under_way: dict[int, int] = {}
        self._rooms: dict[int, int] = {}
        self._standings: dict[int, Standing] = {}
        self._lines: tuple[dict[int, None], ...] = ({}, {}, {})  # ordered sets
        self._more: set[int] = set()  # parties that have more to do than they had room for
        self._last_line = 0
        self._paced_until = 0.0

    @property
    def busy(self) -> int:
        """How many workers are at it."""
        return sum(self._busy)

    def _standing(self, party: int) -> Standing:
        return self._standings.get(party, Standing.IN_DOUBT)

    def _free(self, standing: int) -> int:
        return min(self._most[better] - sum(self._busy[better:]) for better in range(standing + 1))

    def line_up(self, parties: Iterable[int]) -> list[int]:
        """Those that do well; all others stand in line from now on."""
        well = []
        for party in parties:
            standing = self._standing(party)
            if standing == Standing.WELL:
                well.append(party)
            else:
                self._lines[standing].setdefault(party)
        return well

    def unknown(self, parties: Iterable[int]) -> list[int]:
        """Those of which nothing was ever learned."""
        return [party for party in parties if party not in self._standings]

    def learn(self, party: int, went_well: bool | None) -> None:
        """What is on record of a party's last work; None: there was none."""
        if party not in self._standings:
            standing = {True: Standing.WELL, False: Standing.FAILING, None: Standing.IN_DOUBT}[went_well]
            self._stands(party, standing)

    def reserve(self, party: int) -> int:
        """Take all the room that a party has now; where it gets none, it is remembered."""
        standing, under_way = self._standing(party), self._under_way.get(party, 0)
        free, wanted = self._free(standing), self._rooms.get(party, 1) - under_way
        room = max(0, min(free, wanted))
        if room:
            self._under_way[party] = under_way + room
            self._busy[standing] += room
        elif wanted > 0:
            self._lines[standing][party] = None
        else:
            self._more.add(party)
        return room

    def give_back(self, party: int, room: int, more: bool) -> None:
        """So much of what was reserved is not needed; is there more to do than was taken?"""
        left = self._under_way.pop(party, 0) - room
        if left:
            self._under_way[party] = left
        self._busy[self._standing(party)] -= room
        (self._more.add if more else self._more.discard)(party)

    def done(self, party: int, went_well: bool) -> None:
        """A piece of work is over."""
        standing, room, more = self._standing(party), self._rooms.get(party, 1), party in self._more
        self.give_back(party, 1, more)
        self._rooms[party] = min(room * 2, self._largest_room) if went_well else max(room // 2, 1)
        self._stands(party, Standing.WELL if went_well else Standing(min(standing + 1, Standing.FAILING)))
        if more:
            self._lines[self._standing(party)][party] = None

    def _stands(self, party: int, new: Standing) -> None:
        old = self._standing(party)
        self._standings[party] = new
        if new is old:
            return
        under_way = self._under_way.get(party, 0)
        self._busy[old] -= under_way
        self._busy[new] += under_way
        if party in self._lines[old]:
            del self._lines[old][party]
            self._lines[new][party] = None

    def next(self) -> int | None:
        """Whose turn it is of those in line for whom there is a worker; it leaves the line. None: nobody's."""
        for step in range(1, len(self._lines) + 1):
            standing = (self._last_line + step) % len(self._lines)
            line = self._lines[standing]
            if line and self._free(standing) > 0:
                self._last_line = standing
                party = next(reversed(line) if standing == Standing.IN_DOUBT else iter(line))
                del line[party]
                return party
        return None

    def pause(self, party: int, now: float) -> float:
        """How many seconds a piece of work of this party is to wait before it begins."""
        if self._standing(party) == Standing.WELL:
            return 0
        begin = max(now, self._paced_until)
        self._paced_until = begin + PACE
        return begin - now
