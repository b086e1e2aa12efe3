"""How many threads the system lets this process have."""

from __future__ import annotations

import threading


def may_have(wanted: int) -> int:
    """How many of so many more threads the system lets the process have: they are started now, and end at once."""
    over = threading.Event()
    started: list[threading.Thread] = []
    try:
        while len(started) < wanted:
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:  # that was the last
        pass
    over.set()
    for thread in started:
        thread.join()
    return len(started)
