"""How the last payments of a channel were opened, on its page, and the button of an alert that disables it."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import flash, redirect, url_for
from flask_babel import gettext

from blueprints.console import access
from blueprints.console.forms import find_or_404
from blueprints.console.pages.channels import CHANNEL
from blueprints.console.pages.group_members import pages
from models.tables.channel import Channel
from runtime import clock
from services.channels import channel_setup, health
from services.security import audit

__all__ = ["pages"]


@pages.context_processor
def _facts() -> dict[str, Any]:
    """Return what the template of the card uses."""

    def health_of(channel: Channel) -> list[health.State]:
        return health.states(channel.id)

    return {"health_of": health_of, "now": clock.now()}


@pages.post(f"{CHANNEL}/disable")
def disable(channel_id: int) -> Any:
    """Disable a channel: it takes no new orders, and the present ones go on."""
    row = find_or_404(channel_setup.find_channel, channel_id)
    change = partial(channel_setup.set_channel, row, enabled=False)
    if row.enabled:
        access.act("set channel", "channel", str(row.id), change, audit.changes({"enabled": "yes"}, {"enabled": "no"}))
    flash(gettext("Channel disabled. It takes no new orders. Its present orders go on."), "good")
    return redirect(url_for("channel.show", channel_id=row.id), 303)
