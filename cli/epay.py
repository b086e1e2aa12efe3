"""`tillbook epay`: merchants' accounts at the epay gateway."""

from __future__ import annotations

import re
from typing import Any

import click

from cli.output import Commands, facts, given_of, json_option, options, picked, said, show, table, wanted_of
from models.tables.epay import EpayAccount
from runtime.texts import N_
from services.merchants import epay_accounts
from services.merchants.merchant_setup import find_merchant

epay = Commands("epay", help="The epay (易支付) gateway for merchants' shops.")


class TypeOption(click.ParamType[Any]):
    """A type of epay with a channel and, if the channel has several, the payment method: alipay=3 or qqpay=3:wxpay."""

    name = "type=channel[:method]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int, str]:
        """Return the three parts."""
        found = re.fullmatch(r"([A-Za-z0-9_-]+)=([0-9]{1,18})(?::([a-z]+))?", str(value))
        if found is None:
            self.fail(said(N_("write TYPE=CHANNEL, such as alipay=3, or TYPE=CHANNEL:METHOD")), param, ctx)
        return found[1], int(found[2]), found[3] or ""


_settable = options(
    click.option("--host", "hosts", multiple=True, help="Host that notify_url and return_url may have. Repeatable."),
    click.option(
        "--type",
        "types",
        multiple=True,
        type=TypeOption(),
        help="Channel for a type of epay, such as alipay=3. Repeat it for several; the payer then chooses.",
    ),
    click.option("--by-method", is_flag=True, help="Use all channels of the merchant by their payment methods."),
    click.option(
        "--webhooks/--no-webhooks", default=None, help="Send the merchant's callbacks for epay orders, too, or do not."
    ),
)


def _wanted(hosts: tuple[str, ...], types: tuple[tuple[str, int, str], ...], by_method: bool, **given: Any) -> Any:
    """Return the given facts, as `epay_accounts.change` takes them."""
    if types and by_method:
        raise click.UsageError(said(N_("Use either --type or --by-method.")))
    wanted = given_of(given) | ({"hosts": hosts} if hosts else {})
    if types or by_method:
        wanted["types"] = {name: [each[1:] for each in types if each[0] == name] for name, *_ in types}
    return wanted


@epay.command("enable")
@click.argument("key")
@click.option("--pid", type=int, help="Merchant number; the next free one by default.")
@_settable
@json_option
def enable(key: str, pid: int | None, as_json: bool, **given: Any) -> None:
    """Enable the gateway for merchant KEY. A new merchant number's MD5 key is shown once."""
    account, new = epay_accounts.enable(find_merchant(key), pid=pid, **_wanted(**given))
    show({"merchant": key, **_settings(account)} | ({"key": new} if new else {}), as_json, facts)


@epay.command("disable")
@click.argument("key")
def disable(key: str) -> None:
    """Refuse requests of merchant KEY at the gateway. Existing orders continue, and their notices are sent."""
    epay_accounts.change(epay_accounts.find(find_merchant(key)), enabled=False)
    click.echo(said(N_("epay gateway disabled for %(key)s"), key=key))


@epay.command("set")
@click.argument("key")
@_settable
def change(key: str, **given: Any) -> None:
    """Change the gateway's settings for merchant KEY. --host and --type replace all earlier ones."""
    wanted = wanted_of(_wanted(**given))
    epay_accounts.change(epay_accounts.find(find_merchant(key)), **wanted)
    click.echo(said(N_("epay gateway changed for %(key)s"), key=key))


@epay.command("rotate")
@click.argument("key")
@click.option("--rsa", is_flag=True, help="Make RSA keys (version 2) instead of an MD5 key.")
@click.option(
    "--keep-hours",
    default=24,
    type=click.IntRange(0, 720),
    show_default=True,
    help="Hours for which the old key stays valid.",
)
@json_option
def rotate(key: str, rsa: bool, keep_hours: int, as_json: bool) -> None:
    """Replace the MD5 key of merchant KEY, or make its RSA keys. The new key is shown once."""
    account = epay_accounts.find(find_merchant(key))
    new = epay_accounts.rotate(account, "rsa" if rsa else "md5", keep_hours=keep_hours)
    shown = {"private_key" if rsa else "key": new, "old_one_valid_hours": keep_hours}
    show({"merchant": key, **_settings(epay_accounts.find(account.merchant))} | shown, as_json, facts)


def _settings(account: EpayAccount) -> dict[str, str]:
    return {name: value for name, value in epay_accounts.settings_of(account).items() if value}


def _view(account: EpayAccount) -> dict[str, Any]:
    return {
        "merchant": account.merchant.key,
        **epay_accounts.settings_of(account),
        "enabled": bool(account.enabled),
        "hosts": account.hosts,
        "types": epay_accounts.types_text(epay_accounts.types_of(account)),
        "webhooks": bool(account.webhooks),
    }


@epay.command("show")
@click.argument("key")
@json_option
def one(key: str, as_json: bool) -> None:
    """Show the settings for the shop of merchant KEY. The secret keys are never shown again."""
    account = epay_accounts.find(find_merchant(key))
    view = _view(account) | picked(account, "createtime", "updatetime")
    show(view, as_json, lambda view: facts(view | {"types": said(view["types"])}))


@epay.command("list")
@json_option
def every(as_json: bool) -> None:
    """List the merchants with the gateway."""
    names = ("merchant", "pid", "enabled", "hosts", "types")
    rows = [_view(account) for account in EpayAccount.select().order_by(EpayAccount.id)]
    views = [{name: row[name] for name in names} for row in rows]
    show(views, as_json, lambda views: table([view | {"types": said(view["types"])} for view in views]))
