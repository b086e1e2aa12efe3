"""`tillbook group`: the members of groups of channels, and their limits."""

from __future__ import annotations

from typing import Any

import click

from cli import output
from cli.output import ROW_ID, Commands, facts, json_option, show, table, wanted_of, yuan
from models.tables.channel import Channel
from runtime.money import hundredths
from runtime.texts import N_
from services.channels import channel_setup, group_setup
from services.channels.calls import driver_of
from services.channels.group_setup import MemberState

group = Commands("group", help="Channel groups: list, add, change, remove members.")
NO_LIMIT = "none"


class _OrNone(click.ParamType[Any]):
    """A value of another type, or `none` for no limit."""

    def __init__(self, other: click.ParamType[Any]):
        self.other, self.name = other, other.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value, or NO_LIMIT."""
        return value if value == NO_LIMIT else self.other.convert(value, param, ctx)


_settable = output.options(
    click.option("--position", type=click.IntRange(1, group_setup.MOST), help="Place in the order: 1 is the first."),
    click.option(
        "--weight",
        type=click.IntRange(1, group_setup.MOST_WEIGHT),
        help="Share of the deposits in a group of mode weight, compared with the other members.",
    ),
    click.option("--min-amount", type=_OrNone(yuan()), help="Minimum amount of a deposit, in yuan, or none."),
    click.option("--max-amount", type=_OrNone(yuan()), help="Maximum amount of a deposit, in yuan, or none."),
    click.option("--daily-amount", type=_OrNone(yuan()), help="Amount of all deposits of a day, in yuan, or none."),
    click.option(
        "--daily-count",
        type=_OrNone(click.IntRange(1, group_setup.MOST_COUNT)),
        help="Number of deposits of a day, or none.",
    ),
    click.option("--hours", help="Hours in China, such as 09:00-21:00, or none for the whole day."),
)


def _limits(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given as arguments of the services."""
    chosen: dict[str, Any] = {name: None if value == NO_LIMIT else value for name, value in given.items()}
    return chosen | ({"hours": chosen["hours"] or ""} if "hours" in chosen else {})


def _group(group_id: int) -> Channel:
    return group_setup.find_group(channel_setup.find_channel(group_id))


@group.command("members")
@click.argument("group_id", type=ROW_ID)
@json_option
def members(group_id: int, as_json: bool) -> None:
    """List the members of channel group GROUP_ID in their order: limits, what they have taken today, and state.

    A new group is a channel: `tillbook channel add --driver group`.
    """

    group = _group(group_id)
    found = {"mode": driver_of(group).config["mode"], "members": [_view(each) for each in group_setup.states(group)]}

    def tell(found: dict[str, Any]) -> None:
        facts({"mode": found["mode"]})
        click.echo()
        for view in found["members"]:
            view["state"] = _told(view.pop("why_not"), view["pay_method"])
        table(found["members"], N_("This group has no members."))

    show(found, as_json, tell)


def _view(state: MemberState) -> dict[str, Any]:
    row, channel = state.member.row, state.member.channel

    def amount(fen: int | None) -> str | None:
        return None if fen is None else hundredths(fen)

    return {
        "position": row.position,
        "channel": channel.id,
        "name": channel.name,
        "pay_method": channel.pay_method,
        "weight": row.weight,
        "min": amount(row.min_amount),
        "max": amount(row.max_amount),
        "daily_amount": amount(row.daily_amount),
        "daily_count": row.daily_count,
        "hours": row.hours,
        "today_amount": amount(state.amount),
        "today_count": state.count,
        "why_not": state.why_not,
    }


def _told(why_not: dict[str, str], pay_method: str) -> str:
    """Return why the group passes no deposits on to a member now, in one line."""
    methods, reasons = pay_method.split(","), set(why_not.values())
    if not reasons:
        return output.said(N_("takes deposits"))
    if len(reasons) == 1 and len(why_not) == len(methods):
        return output.said(reasons.pop())
    return " ".join(f"{method}: {output.said(why_not[method])}" for method in methods if method in why_not)


@group.command("add")
@click.argument("group_id", type=ROW_ID)
@click.argument("channel_id", type=ROW_ID)
@_settable
def add(group_id: int, channel_id: int, **settings: Any) -> None:
    """Add channel CHANNEL_ID to channel group GROUP_ID, as its last member unless --position is given."""
    limits = _limits(output.given_of(settings))
    group_setup.add_member(_group(group_id), channel_setup.find_channel(channel_id), **limits)
    text = N_("channel %(channel_id)s is now a member of group %(group)s")
    click.echo(output.said(text, channel_id=channel_id, group=group_id))


@group.command("set")
@click.argument("group_id", type=ROW_ID)
@click.argument("channel_id", type=ROW_ID)
@_settable
def change(group_id: int, channel_id: int, **settings: Any) -> None:
    """Change the limits or the place of channel CHANNEL_ID in channel group GROUP_ID."""
    limits = _limits(wanted_of(settings))
    group_setup.set_member(group_setup.find_member(_group(group_id), channel_id), **limits)
    text = N_("channel %(channel_id)s changed in group %(group)s")
    click.echo(output.said(text, channel_id=channel_id, group=group_id))


@group.command("remove")
@click.argument("group_id", type=ROW_ID)
@click.argument("channel_id", type=ROW_ID)
def remove(group_id: int, channel_id: int) -> None:
    """Remove channel CHANNEL_ID from channel group GROUP_ID. Its open orders continue."""
    group_setup.remove_member(group_setup.find_member(_group(group_id), channel_id))
    text = N_("channel %(channel_id)s is no longer a member of group %(group)s")
    click.echo(output.said(text, channel_id=channel_id, group=group_id))
