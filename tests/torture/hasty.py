"""The service with short pauses between two acts on a refund and two status checks.

With `--leases`, for a short run, it also continues the work of a killed process within seconds.
"""

import runpy
import sys

from services.callbacks import delivery
from services.channels import calls
from services.jobs import sweep
from services.refunds import place, send

send.APART, calls.LONGEST_PAUSE = 2, 8
if "--leases" in sys.argv:
    # Shorter than a lease may be in production: a longer act is done twice, which must change nothing.
    delivery.LEASE = sweep.LEASE = place.LEASE = send.LEASE = 2
    delivery.RETRY_SECONDS = (1, 1, 1, *delivery.RETRY_SECONDS[3:])

if __name__ == "__main__":
    sys.argv[1:] = []  # the application serves if it gets no command
    runpy.run_path("app.py", run_name="__main__")
