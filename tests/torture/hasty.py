"""The service with short times, for a short run: it continues the work of a killed process within seconds."""

import runpy

from services.callbacks import delivery
from services.jobs import sweep

# Shorter than a lease may be in production: a longer act is done twice, which must change nothing.
delivery.LEASE = sweep.LEASE = 2
delivery.RETRY_SECONDS = (1, *delivery.RETRY_SECONDS[1:])

if __name__ == "__main__":
    runpy.run_path("app.py", run_name="__main__")
