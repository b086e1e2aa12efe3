"""`tillbook channel`: payment channels, their drivers' config, and the merchants that use them."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from typing import Any, BinaryIO

import click

from cli import output, sensitive
from cli.output import ROW_ID, Commands, facts, given_of, json_option, percent, show, table, yuan
from gateways import registry
from models.tables.channel import CATEGORIES, Channel, ChannelLink
from models.tables.merchant import Merchant
from runtime.money import hundredths
from runtime.texts import N_
from services.channels import channel_setup, health, merchant_move, pictures
from services.errors import OperatorError
from services.merchants import links, merchant_setup
from services.security import audit

channel = Commands("channel", help="Payment channels: add, change, test, link to merchants.")


class _Cost(click.ParamType[Any]):
    """A rate in percent, for one payment method (`wxpay=0.6`) or, with the method "", for all."""

    name = "cost"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the payment method and basis points."""
        method, _, rate = value.rpartition("=")
        return method, percent().convert(rate, param, ctx)


def _cost_rates(costs: tuple[tuple[str, int], ...], driver: str) -> dict[str, int]:
    rates: dict[str, int] = {}
    for method, points in costs:
        rates |= {method: points} if method else dict.fromkeys(registry.DRIVERS[driver].methods, points)
    return rates


# The options that `add` and `set` share.
_settable = output.options(
    click.option("--pay-method", help="Payment methods, separated by commas: wxpay, alipay, bank."),
    click.option("--min", "min_amount", type=yuan(), help="Minimum amount of an order, in yuan."),
    click.option("--max", "max_amount", type=yuan(), help="Maximum amount of an order, in yuan."),
    click.option(
        "--passage-rate",
        type=percent(low=-100),
        help="Channel fee that the merchant pays on withdrawals, in percent. A negative rate is a rebate.",
    ),
    click.option(
        "--cost",
        "costs",
        multiple=True,
        type=_Cost(),
        metavar="[METHOD=]PERCENT",
        help="Channel cost that you pay on deposits, in percent: of all payment methods, or of one, as wxpay=0.6.",
    ),
    click.option("--commission-rate", type=percent(), help="Channel cost that you pay on withdrawals, in percent."),
    click.option("--deposit-rate", type=percent(), help="Deposit reserved while a withdrawal is open, in percent."),
    click.option(
        "--settlement-days",
        type=click.IntRange(0, 365),
        help="Settlement delay in days (T+N): a received deposit is credited N days later.",
    ),
    click.option(
        "--auto-approve-max",
        "--auto-accept-max",
        "auto_accept_max",
        type=yuan(zero=True),
        help="Auto-approve withdrawals up to this amount, in yuan. 0 turns it off.",
    ),
    click.option(
        "--enabled/--disabled",
        default=None,
        help="Use this channel, or no longer. Open orders, notices, refunds and payouts of a disabled channel go on.",
    ),
    click.option(
        "--takes-orders/--no-new-orders",
        default=None,
        help="Accept new orders, or ask merchants to retry later, as for maintenance. Open orders go on.",
    ),
    click.option(
        "--hours",
        callback=lambda context, option, value: "" if value == "none" else value,
        help="Hours of new orders in China, such as 09:00-21:00 or 22:00-02:00, or none for the whole day.",
    ),
    click.option(
        "--config",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a field of the driver's config. NAME=@FILE reads a file, such as a key. NAME=- reads standard input.",
    ),
    click.option(
        "--config-file",
        type=click.File("rb"),
        help="Read the driver's config from this JSON file, or from standard input (-).",
    ),
)


def _config(pairs: tuple[str, ...], file: BinaryIO | None) -> dict[str, Any]:
    try:
        config = json.loads(file.read()) if file else {}
        given = [pair.split("=", 1) for pair in pairs]
        config |= dict(given)
        if not all(re.fullmatch("[A-Za-z0-9_]{1,40}", name) for name in config):
            raise ValueError  # a config pasted here: its keys must not be shown as an unknown name
    except (ValueError, TypeError):
        raise OperatorError(N_("the config must be NAME=VALUE pairs or a file with one JSON object")) from None
    return config | {name: sensitive.read(value, name) for name, value in given}


@channel.command("add")
@click.option(
    "--category",
    required=True,
    type=click.Choice(CATEGORIES),
    help="Category. It determines the required fields of a withdrawal.",
)
@click.option(
    "--driver",
    required=True,
    type=click.Choice(list(registry.DRIVERS)),
    help="Driver that connects to the payment platform.",
)
@click.option("--name", required=True, help="Name that merchants see.")
@_settable
@json_option
def add(
    category: str,
    driver: str,
    name: str,
    pairs: tuple[str, ...],
    config_file: BinaryIO | None,
    costs: tuple[tuple[str, int], ...],
    as_json: bool,
    **settings: Any,
) -> None:
    """Add a channel. Then link merchants to it with `tillbook channel link`."""
    config, rates = _config(pairs, config_file), _cost_rates(costs, driver)
    made = channel_setup.add_channel(category, driver, name, config=config, cost_rates=rates, **given_of(settings))
    show(_view(made), as_json, facts)


@channel.command("set")
@click.argument("channel_id", type=ROW_ID)
@click.option("--name", help="Name that merchants see.")
@click.option(
    "--same-account",
    is_flag=True,
    help="Confirm that a changed number or address in the config belongs to the same account.",
)
@_settable
def change(
    channel_id: int,
    pairs: tuple[str, ...],
    config_file: BinaryIO | None,
    costs: tuple[tuple[str, int], ...],
    same_account: bool,
    **settings: Any,
) -> None:
    """Change channel CHANNEL_ID. Existing orders keep their rates."""
    config, given = _config(pairs, config_file), given_of(settings)
    if not config and not given and not costs:
        raise click.UsageError(output.said(N_("Specify at least one option.")))
    row = channel_setup.find_channel(channel_id)
    if costs:
        given["cost_rates"] = _cost_rates(costs, row.driver)
    channel_setup.set_channel(row, config, same_account=same_account, **given)
    click.echo(output.said(N_("channel %(channel_id)s changed"), channel_id=channel_id))


@channel.command("check")
@click.argument("channel_id", type=ROW_ID)
@json_option
def check(channel_id: int, as_json: bool) -> None:
    """Test channel CHANNEL_ID: keys, rights, payment methods, clock. Exits with status 1 if it finds a problem.

    The test checks the status of a nonexistent order. At an epay platform, it also creates an unpaid order of the
    channel's minimum amount for each payment method. Customers do not see these orders.
    """
    found = channel_setup.check(channel_setup.find_channel(channel_id))
    results = {True: N_("ok"), False: N_("problem"), None: "-"}
    rows = [{"check": each.about, "result": results[each.good], "detail": each.text % each.args} for each in found]

    def tell(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["check"], row["result"] = output.heading(row["check"]), output.said(row["result"])
            row["detail"] = output.words().known(row["detail"])
        table(rows)

    show(rows, as_json, tell)
    sys.exit(1 if any(each.good is False for each in found) else 0)


@channel.command("link")
@click.argument("channel_id", type=ROW_ID)
@click.argument("merchant_key")
def link(channel_id: int, merchant_key: str) -> None:
    """Let merchant MERCHANT_KEY use channel CHANNEL_ID."""
    links.link(channel_setup.find_channel(channel_id), merchant_setup.find_merchant(merchant_key))
    click.echo(output.said(N_("%(key)s can now use channel %(channel_id)s"), key=merchant_key, channel_id=channel_id))


@channel.command("unlink")
@click.argument("channel_id", type=ROW_ID)
@click.argument("merchant_key")
def unlink(channel_id: int, merchant_key: str) -> None:
    """Stop merchant MERCHANT_KEY from using channel CHANNEL_ID. Its open orders continue."""
    links.unlink(channel_setup.find_channel(channel_id), merchant_setup.find_merchant(merchant_key))
    text = N_("%(key)s can no longer use channel %(channel_id)s")
    click.echo(output.said(text, key=merchant_key, channel_id=channel_id))


@channel.command("move")
@click.argument("source", metavar="FROM", type=ROW_ID)
@click.argument("target", metavar="TO", type=ROW_ID)
@click.option("--keep", is_flag=True, help="Let the merchants use channel FROM as well.")
@click.option("--yes", is_flag=True, help="Move the merchants. Default: only show what would change.")
@json_option
def move(source: int, target: int, keep: bool, yes: bool, as_json: bool) -> None:
    """Let all merchants of channel FROM use channel TO instead. Open orders of channel FROM go on.

    The types of epay gateways that lead to FROM then lead to TO. Requests that name FROM are refused, unless --keep is
    given.
    """
    present, new = channel_setup.find_channel(source), channel_setup.find_channel(target)
    found = merchant_move.plan(present, new, keep=keep)
    if yes:
        do = partial(merchant_move.move, present, new, keep=keep, mark=found.mark)
        action = "share merchants" if keep else "move merchants"
        audit.act(audit.HERE, action, "channel", str(source), do, found.detail)
    settings = [
        {"name": each.name, "from": each.present, "to": each.new, "unusable": each.loses} for each in found.settings
    ]
    merchants = [
        {"merchant": each.key, "types": each.types, "to": each.new_types, "unusable": ",".join(each.left)}
        for each in found.merchants
    ]

    def tell(_: Any) -> None:
        table([row | {"name": output.heading(row["name"])} for row in settings], N_("no differences"))
        click.echo()
        table(merchants)
        if found.closed:
            click.echo(output.said(found.closed))
        if yes:
            click.echo(output.said(N_("merchants moved: %(count)s"), count=len(merchants)))
        else:
            click.echo(output.said(N_("nothing changed: repeat with --yes to move these merchants")))

    show({"settings": settings, "merchants": merchants, "moved": yes}, as_json, tell)


def _view(row: Channel) -> dict[str, Any]:
    own = ChannelLink.select(Merchant.key).join(Merchant).where(ChannelLink.channel == row)
    linked = own.order_by(Merchant.id).tuples()
    methods, low, high = channel_setup.offer_of(row)
    return {
        **output.picked(row, "id", "name", "category", "driver"),
        "pay_method": methods,
        "unusable": ",".join(pictures.unusable_methods(row)),
        "enabled": bool(row.enabled),
        "takes_orders": bool(row.takes_orders),
        "health": health.shown(row.id),
        "hours": row.hours,
        "min": "" if low is None else hundredths(low),
        "max": "" if high is None else hundredths(high),
        "passage_rate": hundredths(row.passage_rate),
        "commission_rate": hundredths(row.commission_rate),
        "cost_rates": ",".join(f"{method}={hundredths(points)}" for method, points in row.costs.items()),
        "deposit_rate": hundredths(row.deposit_rate),
        "settlement_days": row.settlement_days,
        "auto_accept_max": hundredths(row.auto_accept_max),
        "merchants": ",".join(key for (key,) in linked),
        "groups": ",".join(str(group.id) for group in channel_setup.groups_of(row)),
    }


@channel.command("show")
@click.argument("channel_id", type=ROW_ID)
@json_option
def one(channel_id: int, as_json: bool) -> None:
    """Show the settings of channel CHANNEL_ID. The driver's config is never shown."""
    row = channel_setup.find_channel(channel_id)
    show(_view(row) | output.picked(row, "createtime", "updatetime"), as_json, facts)


@channel.command("list")
@json_option
def every(as_json: bool) -> None:
    """List the channels. --json adds their rates and groups. The drivers' config is never shown.

    `unusable` are the payment methods by which payers cannot pay: `tillbook channel check` has the reason.
    """
    rates = {"passage_rate", "commission_rate", "cost_rates", "deposit_rate", "settlement_days", "auto_accept_max"}

    def tell(views: list[dict[str, Any]]) -> None:
        table([{name: value for name, value in view.items() if name not in {*rates, "groups"}} for view in views])

    show([_view(row) for row in Channel.select().order_by(Channel.id)], as_json, tell)
