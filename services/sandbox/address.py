"""The address of the running demo, kept in the instance folder for commands that are run without its settings."""

from __future__ import annotations

from dataclasses import replace

from runtime.settings import Settings

NAME = "demo-address"


def keep(chosen: Settings) -> None:
    """Write the address of this demo into the instance folder."""
    (chosen.instance / NAME).write_text(chosen.public_url, "utf-8")


def applied(chosen: Settings) -> Settings:
    """Return the settings with the kept address, unless they configure one."""
    file = chosen.instance / NAME
    if chosen.public_url != Settings().public_url or not file.exists():
        return chosen
    return replace(chosen, site_url=file.read_text("utf-8"))
