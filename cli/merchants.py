"""`tillbook merchant` and `tillbook account`: merchants and their payout accounts."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from cli.output import (
    Commands,
    facts,
    given_of,
    json_option,
    options,
    percent,
    picked,
    said,
    show,
    table,
    wanted_of,
    yuan,
)
from cli.sensitive import SENSITIVE
from models.tables.merchant import REFUND_FEES, REFUND_MODES, Merchant
from runtime.money import hundredths
from runtime.texts import N_
from services.merchants import links, merchant_setup, payment_page
from services.security import masking, vault

merchant = Commands(
    "merchant",
    help="Merchants: keys, secrets, rates, callbacks.",
    lazy={
        "test-callback": "cli.send_test_callback:test_callback",
        "statement": "cli.statement:statement",
        "statements": "cli.statement:statements",
    },
)
account = Commands("account", help="Payout accounts: where merchants receive their withdrawals.")


# The options that `add` and `set` share.
_settable = options(
    click.option("--name", help="Name that customers see."),
    click.option(
        "--callback-url",
        type=SENSITIVE,
        help='Address for callbacks; "" for none. @FILE or - reads a file or standard input.',
    ),
    click.option(
        "--events", help="Additional callback events, separated by commas: paid, confirmed, credited, refunded."
    ),
    click.option("--buy-rate", type=percent(), help="Service fee on deposits, in percent, such as 0.60."),
    click.option("--sell-rate", type=percent(), help="Service fee on withdrawals, in percent."),
    click.option(
        "--allow", "allowed_addresses", help='Allowed IP addresses or networks, separated by commas; "" for all.'
    ),
    click.option(
        "--refunds",
        "refund_mode",
        type=click.Choice(REFUND_MODES),
        help="Whether the merchant may refund: off, with your approval, or automatic up to --refund-auto-max.",
    ),
    click.option("--refund-auto-max", type=yuan(zero=True), help="Maximum of an automatic refund, in yuan."),
    click.option(
        "--refund-fees",
        type=click.Choice([each.replace("_", "-") for each in REFUND_FEES]),
        help="Fee that the merchant gets back with a refund: none, in proportion, or all with a full refund only.",
    ),
    click.option("--enabled/--disabled", default=None, help="Accept this merchant's API requests, or refuse them."),
)


def _facts(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options as columns."""
    return {name: value.replace("-", "_") if name == "refund_fees" else value for name, value in given.items()}


@merchant.command("add")
@click.argument("key")
@_settable
@json_option
def add(key: str, as_json: bool, **given: Any) -> None:
    """Add a merchant with the API key KEY. Its secrets are shown once.

    The output has the fees. Without --buy-rate and --sell-rate they are 0.00.
    """
    made, secret = merchant_setup.add_merchant(key, **{"name": key} | _facts(given_of(given)))
    secrets = {"api_secret": secret, "callback_secret": vault.decrypt(made.callback_secret)}
    show({"key": key} | secrets | {name: _view(made)[name] for name in ("buy_rate", "sell_rate")}, as_json, facts)


@merchant.command("set")
@click.argument("key")
@_settable
def change(key: str, **given: Any) -> None:
    """Change merchant KEY. Existing orders keep their rates."""
    wanted = wanted_of(given)
    merchant_setup.set_merchant(merchant_setup.find_merchant(key), **_facts(wanted))
    click.echo(said(N_("merchant %(key)s changed"), key=key))


def _view(row: Merchant) -> dict[str, Any]:
    return {
        **picked(row, "key", "name"),
        "enabled": bool(row.enabled),
        "buy_rate": hundredths(row.buy_rate),
        "sell_rate": hundredths(row.sell_rate),
        **picked(row, "callback_url", "events", "allowed_addresses"),
        "refunds": row.refund_mode,
        "refund_auto_max": hundredths(row.refund_auto_max),
        "refund_fees": row.refund_fees.replace("_", "-"),
    }


@merchant.command("show")
@click.argument("key")
@json_option
def one(key: str, as_json: bool) -> None:
    """Show merchant KEY with its channels and its callback secret. The API secret is never shown."""
    row = merchant_setup.find_merchant(key)
    view = _view(row) | {
        "callback_secret": vault.decrypt(row.callback_secret),
        "channels": links.channels_of(row),
        **picked(row, "createtime", "updatetime"),
    }
    show(view, as_json, lambda view: facts(view | {"channels": ", ".join(map(str, view["channels"]))}))


@merchant.command("list")
@json_option
def every(as_json: bool) -> None:
    """List the merchants."""
    show([_view(row) for row in Merchant.select().order_by(Merchant.id)], as_json, table)


@merchant.command("rotate")
@click.argument("key")
@click.option("--callback", is_flag=True, help="Replace the callback secret instead of the API secret.")
@click.option(
    "--keep-hours",
    default=24,
    type=click.IntRange(0, 720),
    show_default=True,
    help="Hours for which the old secret stays valid.",
)
@json_option
def rotate(key: str, callback: bool, keep_hours: int, as_json: bool) -> None:
    """Replace a secret of merchant KEY. The new one is shown once, the old one stays valid for a day."""
    new = merchant_setup.rotate(merchant_setup.find_merchant(key), callback=callback, keep_hours=keep_hours)
    name = "callback_secret" if callback else "api_secret"
    show({"key": key, name: new, "old_one_valid_hours": keep_hours}, as_json, facts)


@merchant.command("page")
@click.argument("key")
@click.option(
    "--return-url",
    help='Address to which payers return after the payment; {order_no} and {merchant_order_no} are filled in; "" for '
    "none.",
)
@click.option("--new-order-url", help='Address at which payers of an expired order start again; "" for none.')
@click.option("--contact", help="Contact for payers: phone, email or WeChat ID.")
@click.option("--color", help="Color of the buttons, such as #1677ff.")
@click.option(
    "--logo",
    type=click.File("rb"),
    help=f"PNG, JPEG or WebP image of at most {payment_page.LARGEST_LOGO // 1024} KB.",
)
@click.option("--no-logo", is_flag=True, help="Remove the logo.")
@json_option
def page(key: str, logo: BinaryIO | None, no_logo: bool, as_json: bool, **given: Any) -> None:
    """Show or change the payment page of merchant KEY."""
    row, wanted = merchant_setup.find_merchant(key), given_of(given)
    if logo is not None or no_logo:
        wanted["logo"] = b"" if logo is None else logo.read(payment_page.LARGEST_LOGO + 1)
    if wanted:
        payment_page.change(row, **wanted)
    settings = payment_page.of_merchant(row)
    show({"key": key} | picked(settings, *payment_page.TEXTS, "logo_type"), as_json, facts)


@account.command("add")
@click.argument("key")
@click.option("--bank", default="", help="Bank name.")
@click.option("--sub-bank", default="", help="Branch name.")
@click.option(
    "--card-number",
    required=True,
    type=SENSITIVE,
    help="Card or account number. @FILE or - reads a file or standard input.",
)
@click.option(
    "--real-name",
    required=True,
    type=SENSITIVE,
    help="Account holder's name. @FILE or - reads a file or standard input.",
)
@json_option
def add_account(key: str, as_json: bool, **details: Any) -> None:
    """Add a payout account to merchant KEY. Withdrawals are paid to the newest."""
    made = merchant_setup.add_account(merchant_setup.find_merchant(key), **details)
    show({"id": made.id, "merchant": key}, as_json, facts)


@account.command("list")
@click.argument("key", required=False)
@json_option
def accounts(key: str | None, as_json: bool) -> None:
    """List the payout accounts of merchant KEY, or of all merchants. Numbers are masked."""
    views = [
        {"id": row.id, "merchant": row.merchant.key, **masking.account(row), "createtime": row.createtime}
        for row in merchant_setup.accounts_on_file(merchant_setup.merchants(key))
    ]
    show(views, as_json, table)
