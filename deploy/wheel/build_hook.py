"""Compiles the translations into the wheel; the repository has their sources only."""

import os
from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Translations(BuildHookInterface):
    """A build hook of hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write a `.mo` beside each `.po`. `build_data` is hatchling's."""
        for source in Path(self.root, "blueprints", "translations").rglob("*.po"):
            made = Path(self.root, f".{os.getpid()}.mo")  # where no other build and no copy of the folders sees it
            with source.open("rb") as read, made.open("wb") as written:
                write_mo(written, read_po(read, locale=source.parts[-3]))
            made.replace(source.with_suffix(".mo"))  # in one step, because a service may start from this folder
        build_data["artifacts"].append("*.mo")
