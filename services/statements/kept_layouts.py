"""The layouts of a channel's account statements and results of payouts that operators confirmed."""

from __future__ import annotations

import json

from models.db.writer import transaction
from models.tables.channel import Channel
from models.tables.statement_layout import StatementLayout
from runtime import clock
from services.security import audit
from services.security.audit import Actor
from services.statements import layouts
from services.statements.layouts import Layout, Role


def of(channel: Channel) -> list[Layout]:
    """Return the layouts that were confirmed for this channel's account statements."""
    return [each for each in _confirmed(channel) if not each.is_result]


def of_results(channel: Channel) -> list[Layout]:
    """Return the layouts that were confirmed for the bank's results of this channel's payouts."""
    return [each for each in _confirmed(channel) if each.is_result]


def _confirmed(channel: Channel) -> list[Layout]:
    rows = StatementLayout.select().where(StatementLayout.channel == channel)
    return [layouts.confirmed(json.loads(row.header), [Role(each) for each in json.loads(row.roles)]) for row in rows]


def keep(channel: Channel, layout: Layout, actor: Actor) -> None:
    """Store the layout for files of this channel with the same header, in place of an earlier one."""
    detail = ", ".join(f"{name}={role.value}" for name, role in layout.columns if role is not Role.IGNORED)
    audit.act(actor, "confirm columns", "channel", str(channel.id), lambda: _keep(channel, layout, actor), detail)


@transaction
def _keep(channel: Channel, layout: Layout, actor: Actor) -> None:
    header = json.dumps(layout.header, ensure_ascii=False)
    roles = json.dumps([role.value for _, role in layout.columns])
    facts = {"roles": roles, "who": actor.name, "createtime": clock.now()}
    StatementLayout.insert(channel=channel.id, header=header, **facts).on_conflict(
        conflict_target=[StatementLayout.channel, StatementLayout.header], update=facts
    ).execute()
