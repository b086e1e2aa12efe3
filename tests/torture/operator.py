"""The operator: `python -m tests.torture.operator` runs several of the service's commands in one process.

Standard input is a JSON list of commands, each a list of words. Standard output has the status and the output of
each. Starting Python for each would take longer than the torture.
"""

from __future__ import annotations

import json
import sys

from app import create_app

if __name__ == "__main__":
    runner = create_app().test_cli_runner()
    done = [runner.invoke(args=words) for words in json.load(sys.stdin)]
    json.dump(
        [{"status": result.exit_code, "said": result.stdout, "error": result.stderr} for result in done], sys.stdout
    )
