"""Find phrases that plain_words.txt replaces, in all text files of the repository: `python -m tests.plain_words`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_suffix(".txt")
SUFFIXES = {
    *(".go", ".java", ".js", ".mjs", ".php", ".py", ".sh", ""),
    *(".css", ".html", ".json", ".md", ".po", ".toml", ".yml"),
}


def read(text: str) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Return the replacements by phrase, and the allowed (path, phrase) pairs."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    allowed = [line.removeprefix("allow ").split(": ", 1) for line in lines if line.startswith("allow ")]
    phrases = [line.split(" => ", 1) for line in lines if not line.startswith("allow ")]
    return {phrase.strip(): instead.strip() for phrase, instead in phrases}, {(path, each) for path, each in allowed}


def hits(text: str, phrases: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the phrase of each hit; line ends, comment signs and quotes may break a phrase."""
    gap = r"(?:\s|[#*\"'])+"
    words = "|".join(gap.join(map(re.escape, phrase.split())) for phrase in sorted(phrases, key=len, reverse=True))
    for found in re.finditer(rf"(?<![\w-])(?:{words})(?![\w-])", text, re.IGNORECASE):
        yield text.count("\n", 0, found.start()) + 1, " ".join(re.sub(r"[#*\"']", " ", found[0]).lower().split())


def main(paths: list[str]) -> int:
    """Print each hit as `path:line: phrase => replacement`; 1 if there was one, 0 otherwise."""
    phrases, allowed = read(LIST.read_text())
    tracked = subprocess.run(["git", "ls-files", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    unused, count = set(allowed), 0
    for name in tracked.stdout.splitlines():
        path = ROOT / name
        if path.suffix not in SUFFIXES or path == LIST or not path.is_file():
            continue
        for line, phrase in hits(path.read_text(), phrases):
            unused.discard((name, phrase))
            if (name, phrase) not in allowed:
                print(f"{name}:{line}: {phrase} => {phrases[phrase]}")
                count += 1
    if not paths:
        for name, phrase in sorted(unused):
            print(f"{LIST.relative_to(ROOT)}: allow {name}: {phrase}: not needed any more")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
