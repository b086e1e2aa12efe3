"""`python -m tests.torture`: kill the service many times under load, and report lost or repeated work."""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from tests.postgres import Cluster
from tests.torture.claims import CLAIMS, Evidence
from tests.torture.run import Plan, Result, torture
from tests.torture.target import CommandFailed

SHOWN = 10  # lines of problems for each claim


class Steps:
    """Prints the steps, and the step that took too long."""

    def __init__(self) -> None:
        self.began, self.last = time.monotonic(), ""

    def __call__(self, text: str) -> None:
        self.last = text
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", file=sys.stderr, flush=True)

    def hung(self, _signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("the run takes too long")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="SIGKILLs at least (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeats a run's choices")
    parser.add_argument("--clients", type=int, default=4, help="merchants' systems at once (%(default)s)")
    parser.add_argument("--postgres", action="store_true", help="two services on a Postgres, which is killed, too")
    parser.add_argument("--limit", type=int, default=420, help="seconds until the run is cancelled (%(default)s)")
    parser.add_argument("--hasty", action="store_true", help="the service takes up what was left within seconds")
    parser.add_argument("--keep", type=Path, help="an empty folder for database and log, to look at later")
    return parser.parse_args()


def report(evidence: Evidence) -> bool:
    """Print a line for each claim, and its problems; return True if all are met."""
    held = True
    for name, claim in CLAIMS.items():
        looked_at, wrong = claim(evidence)
        print(f"{'FAILED' if wrong else 'ok    '}  {name} ({looked_at})")
        for line in wrong[:SHOWN]:
            print(f"          {line}")
        held = held and not wrong
    return held


def _figures(result: Result) -> str:
    seen, orders = result.evidence.seen, result.evidence.found.orders
    moments = ", ".join(f"{count} {moment}" for moment, count in result.kills.items())
    counts = ", ".join(f"{count} {what}" for what, count in sorted(seen.counts.items()))
    return (
        f"{result.kills.total()} kills ({moments}), {result.stops} stops, {len(orders)} orders, "
        f"{len(result.evidence.found.refunds)} refunds, "
        f"{len(result.evidence.got)} callbacks received, {counts}; {result.seconds:.0f} s"
    )


def main() -> int:
    """Return the exit status: 0 if every claim is met."""
    given, steps = _arguments(), Steps()
    again = f"--kills {given.kills} --seed {given.seed}{' --postgres' if given.postgres else ''}"
    print(f"seed {given.seed}: repeat with TORTURE='{again}'", flush=True)
    signal.signal(signal.SIGALRM, steps.hung)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no service is left running
    signal.alarm(given.limit)
    postgres = Cluster(fsync="on", full_page_writes="on") if given.postgres else None
    plan = Plan(given.seed, given.kills, given.clients, 2 if postgres else 1, postgres, hasty=given.hasty)
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = torture(plan, given.keep or Path(folder), steps)
        except (AssertionError, subprocess.TimeoutExpired, CommandFailed) as error:
            print(f"cancelled at the step '{steps.last}': {error}")
            return 1
    print(_figures(result))
    return 0 if report(result.evidence) else 1


if __name__ == "__main__":
    sys.exit(main())
