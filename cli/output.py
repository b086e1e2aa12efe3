"""Input and output of commands: amounts, tables for people, JSON for scripts, errors in one line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import click
from marshmallow import ValidationError, fields
from peewee import DatabaseError, OperationalError

from cli import LazyGroup
from cli.help import columns
from models import schema
from models.db.base import LARGEST_ID
from models.db.errors import fault_of
from models.db.postgres import CommitLost, NoDriver
from models.tables.order import PaymentException
from runtime.money import fen, grouped
from runtime.settings import WrongSetting, denied
from runtime.state import current
from runtime.texts import N_
from schemas.fields import Percent, Sum
from schemas.messages import Message
from services.errors import OperatorError
from services.orders.reasons import Reason, reason_of
from services.platform.language import Language, language_of
from services.security.masking import HIDDEN
from services.security.vault import VaultLocked

# How to check whether a command whose commit was not confirmed took effect. Only commands that must not be repeated.
CHECKS = {
    "ledger adjust": "`tillbook ledger balances`. Or repeat it within 10 minutes: it is refused if it took effect",
    "merchant rotate": "`tillbook merchant show KEY`. If `updatetime` is recent, the secret was replaced. Another "
    "rotation ends the old secret at once",
    "epay enable": "`tillbook epay show KEY`. If it is shown, `tillbook epay rotate KEY` shows a new key",
    "epay rotate": "`tillbook epay show KEY`. If `updatetime` is recent, the key was replaced. Another rotation ends "
    "the old key at once",
    "merchant add": "`tillbook merchant list`. If it is listed, `tillbook merchant rotate KEY` shows a new secret",
    "account add": "`tillbook account list KEY`",
    "channel add": "`tillbook channel list`",
}
CHECK_ANY = "whether the change was made"

# Unix times with these names are shown to people in the machine's time zone.
TIMES = {"at", "createtime", "updatetime", "due_at", "expires_at", "shown_from", "left_alone_until"}

# Numbers with these names are counts: people see them with separators of thousands. Others may be ids.
COUNTS = {"count", "lines", "matched", "differences", "orders", "failures", "attempts"}

# The names of columns and facts, which people see translated. JSON has them as they are.
_NAMES = """
    about accepted account action adjustments adjustments_count allowed_addresses amount amounts answer api_secret
    api_url approved_by at attempts audit auto_accept_max available balance bank body booked buy_rate
    callback_secret callback_url callbacks card_number category channel channel_reference channels check clock
    closing cny_amount code collect color commission_rate connection contact cost_rates costs count createtime
    customer_name daily_amount daily_count day deducted delivered deposit_rate deposits deposits_amount
    deposits_count detail difference differences digest_hour driver due_at enabled entries events exceptions
    exceptions_count expected expires_at failures fee_returned fees fen fields from group groups head health held
    here history hosts hours keys kind language last ledger left_alone_until line lines logo_type loss matched max
    memo merchant merchant_actual_amount merchant_order_no merchant_refund_no merchants method milliseconds min mode
    month name net new_order_url note notes old_one_valid_hours on_file opening operator order_no order_type orders
    owner paid_from passage_rate path pay_method pay_out payment payment_method period pid platform_public_key
    position private_key problem purpose questioned real_name reason reference refund_auto_max refund_count
    refund_deducted refund_fees refund_no refunds refunds_amount refunds_count refused requested_by resolution
    result return_reference return_url returned_on role second_factor see seentime sell_rate service_amount
    service_rate settlement_days severity shown_from signature since source state status sub_bank takes_orders text
    their_signature there to today_amount today_count tried type types uncounted uncredited under_way unexplained
    unknown unusable updatetime version webhooks weight who why withdrawals withdrawals_amount withdrawals_count
    yuan
"""
NAMES = {"to do", *_NAMES.split()}
_AMOUNT = re.compile(r"(>?-?)([0-9,]{1,17}\.[0-9]{2})", re.ASCII)

ROW_ID = click.IntRange(1, LARGEST_ID)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
limit_option = click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="Show at most this many."
)


class _WrongSchema(click.ClickException):
    exit_code = 2


def words() -> Language:
    """Return the language of the commands' results and errors: the setting `language`. JSON has the API's values."""
    return language_of(current().settings.language)


def said(text: str, /, **values: Any) -> str:
    """Return a text, or a message with its own values, in the language of the commands."""
    if isinstance(text, Message):
        return words().gettext(text.text, **text.values)
    return words().gettext(text, **values)


def reason_text(why: Reason) -> str:
    """Return the reason of an event or exception in the language of the commands."""
    return why.text(said(why.code.template))


def tell_exception(row: PaymentException) -> None:
    """Print an open exception with its cause."""
    text = N_("exception %(id)s (%(kind)s): %(reason)s")
    click.echo(said(text, id=row.id, kind=row.kind, reason=reason_text(reason_of(row))))


def refusal(error: Exception) -> click.ClickException:
    """Return the exception that ends a command with one line."""
    if isinstance(error, OperatorError):
        # The label of a status is the only value that is a text to translate.
        values = {name: said(value) if name == "status" else value for name, value in error.values.items()}
        # A text without values may have a driver's text in it.
        return click.ClickException(said(error.text, **values) if values else words().known(error.text))
    return _WrongSchema(str(error)) if isinstance(error, schema.WrongSchema) else click.ClickException(str(error))


@contextmanager
def ends_in_one_line() -> Iterator[None]:
    """End the process with one line and status 2 if a setting, key, database or address cannot be used."""
    try:
        yield
    except PermissionError as error:
        text = denied(Path(error.filename)) if error.filename else str(error)
    except (WrongSetting, VaultLocked, schema.WrongSchema, NoDriver, OperatorError, OSError) as error:
        text = str(error)
    except DatabaseError as error:
        fault = fault_of(error)
        meaning = f"{fault.text} ({error})" if fault else str(error)
        opened, chosen = current().database, current().settings
        name = getattr(opened, "database", "") or ("database_url" if chosen.database_url else chosen.database)
        text = f"{name}: {' '.join(meaning.split())}"
    else:
        return
    click.echo(f"error: {text}", err=True)
    sys.exit(2)


class _Discreet(click.Command):
    """A command that does not repeat a rejected value: it may be a password in the wrong place."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError."""
        given = list(map(str, args))
        typed = [text for each in given if (text := each.partition("=")[2] if each.startswith("-") else each)]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            message = error.message
            for text in typed:
                message = message.replace(repr(text), HIDDEN)
            if type(error) is click.UsageError:  # unexpected arguments, which it repeats in parentheses
                message = re.split(r" \(|（", message)[0]
            error.message = message  # type: ignore[misc]
            raise


class Command(_Discreet):
    """A command that ends with one line if it fails."""

    any_schema = False

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A failure ends it with one line and status 1, or 2 if it cannot work on this database."""
        try:
            if not self.any_schema:
                schema.check()
            return super().invoke(ctx)
        except (OperatorError, VaultLocked, schema.WrongSchema) as error:
            raise refusal(error) from None
        except CommitLost as error:
            check = CHECKS.get(f"{ctx.info_name} {ctx.invoked_subcommand}", CHECK_ANY)
            text = f"the connection to Postgres was lost during the commit ({error}): the command may have taken effect"
            raise click.ClickException(f"{text}. Before you repeat it, check {check}") from None
        except DatabaseError as error:
            if fault := fault_of(error):
                raise click.ClickException(f"{fault.text} ({error})") from None
            if isinstance(error, OperationalError):
                raise click.ClickException(f"database error: {error}") from None
            raise


class Commands(Command, LazyGroup):
    """A group of such commands."""

    command_class = _Discreet


class AnySchema(Commands):
    """Commands that also work with the database of an older version."""

    any_schema = True


class Hundredths(click.ParamType[Any]):
    """A decimal number that a schema field converts to integer hundredths."""

    def __init__(self, name: str, field: fields.Field[Any]):
        self.name, self.field = name, field

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return hundredths."""
        if isinstance(value, int):
            return value
        try:
            return self.field.deserialize(value)
        except ValidationError as error:
            self.fail(words().sentences(*map(said, error.messages)), param, ctx)


def yuan(zero: bool = False, negative: bool = False, plain: bool = False) -> Hundredths:
    """Return the type of an amount in yuan, such as 12.50, which is converted to fen."""
    return Hundredths("yuan", Sum(zero=zero, negative=negative, plain=plain))


def percent(low: int = 0) -> Hundredths:
    """Return the type of a rate in percent with at most two decimals, such as 0.60, converted to basis points."""
    return Hundredths("percent", Percent(low))


def options(*each: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return several options as one decorator, in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(each), command)


def transfer_options(reference: str) -> Callable[[Any], Any]:
    """Return the options about a transfer that returned money; `reference` is the help of its transaction ID."""
    return options(
        click.option("--reference", default="", help=reference),
        click.option("--date", default="", help="Day of the transfer in China, such as 2026-05-01. Default: today."),
        click.option("--shared-reference", "shared", is_flag=True, help="Confirm that it also returned other money."),
    )


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def wanted_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given. Raises UsageError if there are none."""
    if not (given := given_of(options)):
        raise click.UsageError(said(N_("Specify at least one option.")))
    return given


def picked(row: Any, *names: str) -> dict[str, Any]:
    """Return these attributes of a row by name."""
    return {name: getattr(row, name) for name in names}


def when(timestamp: int | None) -> str:
    """Return a Unix time in the machine's time zone; empty for none."""
    return datetime.fromtimestamp(timestamp).astimezone().strftime("%Y-%m-%d %H:%M:%S") if timestamp else ""


def show(value: Any, as_json: bool, people: Callable[[Any], None]) -> None:
    """Print a value as JSON, or with the function `people`."""
    if as_json:
        click.echo(json.dumps(value, ensure_ascii=False, indent=2))
    else:
        people(value)


def table(rows: Sequence[dict[str, Any]], nothing: str = N_("no results")) -> None:
    """Print rows in aligned columns; numbers and amounts are aligned to the right."""
    if not rows:
        click.echo(said(nothing))
        return
    lines = [[*map(heading, rows[0])], *([_cell(name, value) for name, value in row.items()] for row in rows)]
    widths = [max(columns(line[column]) for line in lines) for column in range(len(rows[0]))]
    right = [
        name not in TIMES and (type(value) in (int, float) or bool(_AMOUNT.fullmatch(str(value))))
        for name, value in rows[0].items()
    ]
    for line in lines:
        cells = []
        for text, width, to_right in zip(line, widths, right, strict=True):
            blank = " " * (width - columns(text))
            cells.append(blank + text if to_right else text + blank)
        click.echo("  ".join(cells).rstrip())


def facts(value: dict[str, Any]) -> None:
    """Print the facts of one thing, one on each line."""
    shown = [(heading(name), _cell(name, fact)) for name, fact in value.items()]
    width = max(columns(name) for name, _ in shown)
    for name, fact in shown:
        click.echo(f"{name}{' ' * (width - columns(name))}  {fact}".rstrip())


def heading(name: str) -> str:
    """Return the displayed name of a column or fact."""
    return said(name) if name in NAMES else name


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in TIMES:
        return when(value)
    if isinstance(value, bool):
        return said("yes") if value else said("no")
    if name in COUNTS and isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str) and (amount := _AMOUNT.fullmatch(value)):
        return amount[1] + grouped(fen(amount[2].replace(",", "")))
    # Text from merchants must not move the cursor or color the screen.
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(value).strip())
