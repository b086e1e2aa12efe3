"""The command `tillbook`, also named `orders`, of the installed package."""

import os
import signal
import sys
from pathlib import Path

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the process without a traceback
# The modules import each other by their names in the repository.
sys.path.insert(0, str(Path(__file__).parent))
# The folder of the package is the wrong place for data: an upgrade replaces it.
data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "tillbook"
os.environ.setdefault("ORDERS_INSTANCE", str(data))

from app import main  # noqa: E402

if __name__ == "__main__":
    main()
