"""The service's core: it moves to another one while other processes keep its own busy."""

import os
import sys

import pytest

from tests.support import finished

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")

# In a process of its own, whose cores it changes. Seconds of processor time in two seconds: on its core by all, on
# every other core by all, and by the service itself.
MOVER = """
import os, sys, threading
from services.platform import cpu_affinity

here, others, own = map(float, sys.argv[1:])
every = os.sched_getaffinity(0)
cpu_affinity.stay_on_one(0)
threading.Thread(target=threading.Event().wait, daemon=True).start()
(core,) = os.sched_getaffinity(0)
now = dict.fromkeys(every, 0.0) | {"own": 0.0, "at": 0.0}
cpu_affinity._used = lambda: dict(now)
move = cpu_affinity.Mover()
move()
for _ in range(64):  # it moves half of the times
    now |= {each: now[each] + (here if each == core else others) for each in every}
    now |= {"own": now["own"] + own, "at": now["at"] + 2}
    move()
    cores = {int(name): os.sched_getaffinity(int(name)) for name in os.listdir("/proc/self/task")}
    if core not in set.union(*cores.values()):
        break
assert len(set(map(frozenset, cores.values()))) == 1, cores
print("moved" if {core} not in cores.values() else "stayed")
"""


@pytest.mark.parametrize(
    ("here", "others", "own", "does"),
    [
        (2.0, 0.2, 0.1, "moved"),  # another process keeps the core busy
        (2.0, 0.2, 1.9, "stayed"),  # the service does
        (2.0, 1.9, 0.1, "stayed"),  # every core is busy
        (0.0, 0.0, 0.0, "stayed"),
    ],
)
def test_all_threads_leave_a_core_that_others_keep_busy_for_one_that_they_do_not(slow, here, others, own, does):
    done = finished([sys.executable, "-c", MOVER, str(here), str(others), str(own)], timeout=60)
    assert done.stdout.strip() == does, done.stderr
