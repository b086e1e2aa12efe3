"""`orders channel`: payment channels, their drivers' config, and who may use them."""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

import click

from cli import output, sensitive
from cli.output import PERCENT, ROW_ID, YUAN, Commands, PercentType, YuanType, facts, given_of, json_option, show, table
from gateways import registry
from models.tables.channel import CATEGORIES, Channel, ChannelLink
from models.tables.merchant import Merchant
from schemas.views import hundredths
from services.channels import channel_setup
from services.errors import OperatorError
from services.merchants import links, merchant_setup
from services.security import sandbox_guard

channel = Commands("channel", help="Payment channels, and which merchants may use them.")


# The options that `add` and `set` share.
_settable = output.options(
    click.option("--pay-method", help="wxpay, alipay, bank; joined by commas."),
    click.option("--min", "min_amount", type=YUAN, help="Least amount of an order, in yuan."),
    click.option("--max", "max_amount", type=YUAN, help="Largest amount of an order, in yuan."),
    click.option(
        "--passage-rate",
        type=PercentType(low=-100),
        help="Surcharge on withdrawals that the merchant pays; negative is a rebate.",
    ),
    click.option("--commission-rate", type=PERCENT, help="What the channel takes from you on withdrawals."),
    click.option("--deposit-rate", type=PERCENT, help="Security held while a withdrawal is open."),
    click.option("--settlement-days", type=click.IntRange(0, 365), help="Days until a paid deposit is credited."),
    click.option(
        "--auto-accept-max", type=YuanType(zero=True), help="Accept withdrawals up to this by rule; 0 for none."
    ),
    click.option("--enabled/--disabled", default=None, help="A disabled channel takes no new orders."),
    click.option(
        "--config",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="One field of the driver's config; NAME=@FILE for what is in a file, such as a key, NAME=- for stdin.",
    ),
    click.option("--config-file", type=click.File("rb"), help="The driver's config as JSON; - for standard input."),
)


def _config(pairs: tuple[str, ...], file: BinaryIO | None) -> dict[str, Any]:
    try:
        config = json.loads(file.read()) if file else {}
        given = [pair.split("=", 1) for pair in pairs]
        config |= dict(given)
    except (ValueError, TypeError):
        raise OperatorError("the config is NAME=VALUE pairs or a file with one JSON object") from None
    try:
        return config | {name: sensitive.read(value, name) for name, value in given}
    except ValueError as error:
        raise OperatorError(str(error)) from None


@channel.command("add")
@click.option("--category", required=True, type=click.Choice(CATEGORIES), help="Decides what a withdrawal must carry.")
@click.option("--driver", required=True, type=click.Choice(list(registry.DRIVERS)), help="Who speaks to the upstream.")
@click.option("--name", required=True, help="Name that merchants see.")
@_settable
@json_option
def add(
    category: str,
    driver: str,
    name: str,
    pairs: tuple[str, ...],
    config_file: BinaryIO | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Add a channel; link merchants to it with `orders channel link`."""
    config, given = _config(pairs, config_file), given_of(settings)
    made = channel_setup.add_channel(category, driver, name, config=config, **given)
    show(_view(made), as_json, facts)


@channel.command("set")
@click.argument("channel_id", type=ROW_ID)
@click.option("--name", help="Name that merchants see.")
@click.option("--same-account", is_flag=True, help="A new number or address in the config is the same account's.")
@_settable
def change(
    channel_id: int, pairs: tuple[str, ...], config_file: BinaryIO | None, same_account: bool, **settings: Any
) -> None:
    """Change channel CHANNEL_ID; orders that are there keep their rates."""
    config, given = _config(pairs, config_file), given_of(settings)
    if not config and not given:
        raise click.UsageError("say what to change")
    channel_setup.set_channel(channel_setup.find_channel(channel_id), config, same_account=same_account, **given)
    click.echo(f"channel {channel_id} is changed")


RESULTS = {True: "ok", False: "problem", None: "-"}


@channel.command("check")
@click.argument("channel_id", type=ROW_ID)
@json_option
def check(channel_id: int, as_json: bool) -> None:
    """Find out whether channel CHANNEL_ID can be used. The status is 1 if something is a problem.

    Its upstream is asked about an order that is not there. At an epay platform, an unpaid order of the channel's least
    amount is also made for each payment method; nobody is shown it.
    """
    found = channel_setup.check(channel_setup.find_channel(channel_id))
    rows = [{"check": each.about, "result": RESULTS[each.good], "detail": each.text % each.args} for each in found]
    show(rows, as_json, table)
    sys.exit(1 if any(each.good is False for each in found) else 0)


@channel.command("link")
@click.argument("channel_id", type=ROW_ID)
@click.argument("merchant_key")
def link(channel_id: int, merchant_key: str) -> None:
    """Let merchant MERCHANT_KEY use channel CHANNEL_ID."""
    links.link(channel_setup.find_channel(channel_id), merchant_setup.find_merchant(merchant_key))
    click.echo(f"{merchant_key} may use channel {channel_id}")


@channel.command("unlink")
@click.argument("channel_id", type=ROW_ID)
@click.argument("merchant_key")
def unlink(channel_id: int, merchant_key: str) -> None:
    """Take channel CHANNEL_ID from merchant MERCHANT_KEY. Its open orders go on."""
    links.unlink(channel_setup.find_channel(channel_id), merchant_setup.find_merchant(merchant_key))
    click.echo(f"{merchant_key} may no longer use channel {channel_id}")


def _view(row: Channel) -> dict[str, Any]:
    linked = ChannelLink.select(Merchant.key).join(Merchant).where(ChannelLink.channel == row).tuples()
    return {
        **output.picked(row, "id", "name", "category", "driver", "pay_method"),
        "enabled": bool(row.enabled),
        "min": hundredths(row.min_amount),
        "max": hundredths(row.max_amount),
        **{name: hundredths(getattr(row, name)) for name in ("passage_rate", "commission_rate", "deposit_rate")},
        "settlement_days": row.settlement_days,
        "auto_accept_max": hundredths(row.auto_accept_max),
        "merchants": ",".join(key for (key,) in linked),
    }


def _tell(views: list[dict[str, Any]]) -> None:
    names = ("id", "name", "category", "driver", "pay_method", "enabled", "min", "max", "merchants")
    table([{name: view[name] for name in names} for view in views])


@channel.command("list")
@json_option
def every(as_json: bool) -> None:
    """List the channels. --json adds rates and more; their drivers' config is never shown."""
    if warning := sandbox_guard.warning():
        click.echo(f"warning: {warning}", err=True)
    show([_view(row) for row in Channel.select().order_by(Channel.id)], as_json, _tell)
