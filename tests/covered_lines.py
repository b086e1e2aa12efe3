"""Print the coverage of each package: `python -m tests.covered_lines htmlcov/coverage.json`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def by_package(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """The statements and those that ran, by package (`services/orders`), by module at the top, and in total."""
    statements: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    for name, file in report["files"].items():
        folders = Path(name).parts[:-1][:2]
        for package in ("/".join(folders) or name, "total"):
            statements[package] += file["summary"]["num_statements"]
            ran[package] += file["summary"]["covered_lines"]
    return {
        package: (statements[package], ran[package]) for package in sorted(statements, key=lambda p: (p == "total", p))
    }


if __name__ == "__main__":
    print("package                    statements    ran")
    for package, (statements, ran) in by_package(json.loads(Path(sys.argv[1]).read_text("utf-8"))).items():
        if statements:
            print(f"{package:26} {statements:10}  {ran / statements:4.0%}")
