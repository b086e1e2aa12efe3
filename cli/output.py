"""How commands read amounts and show rows: as a table for people, as JSON for scripts."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import reduce
from typing import Any

import click
from marshmallow import ValidationError, fields
from peewee import DatabaseError, OperationalError

from cli.lazy import LazyGroup
from models import schema
from models.db.base import LARGEST_ID
from models.db.errors import fault_of
from models.db.postgres import CommitLost, NoDriver
from runtime import current
from schemas.fields import Percent, Sum
from services.errors import OperatorError
from services.security.masking import HIDDEN
from services.security.vault import VaultLocked
from settings import WrongSetting

# How to find out whether a command counted whose commit was lost; only those that would count twice.
CHECKS = {
    "ledger adjust": "`orders ledger balances`, or repeat it within 10 minutes: it is refused if it counted",
    "merchant rotate": "`orders merchant show KEY`: if `updatetime` is now, the secret is replaced, and rotating again "
    "ends the one before it at once",
    "merchant add": "`orders merchant list`; if it is there, `orders merchant rotate KEY` prints a secret",
    "account add": "`orders account list KEY`",
    "channel add": "`orders channel list`",
}
CHECK_ANY = "look at what it was to change"

# Unix times by these names are shown to people in the machine's zone.
TIMES = {"at", "createtime", "updatetime", "due_at", "expires_at", "left_alone_until"}

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


class _WrongSchema(click.ClickException):
    exit_code = 2


def refusal(error: Exception) -> click.ClickException:
    """What ends a command with one line."""
    return _WrongSchema(str(error)) if isinstance(error, schema.WrongSchema) else click.ClickException(str(error))


@contextmanager
def ends_in_one_line() -> Iterator[None]:
    """A setting, key, database or address that can't be used ends the process with one line and status 2."""
    try:
        yield
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
    """Repeats no value that it refuses: it may be a password that was meant for another place."""

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
            if "unexpected extra argument" in message:
                message = message.partition(" (")[0]
            error.message = message  # type: ignore[misc]
            raise


class Command(_Discreet):
    """A command that ends with one line where something can't be done."""

    any_schema = False

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what it can't do becomes a line and status 1, or 2 where it can't work on this database."""
        try:
            if not self.any_schema:
                schema.check()
            return super().invoke(ctx)
        except (OperatorError, VaultLocked, schema.WrongSchema) as error:
            raise refusal(error) from None
        except CommitLost as error:
            check = CHECKS.get(f"{ctx.info_name} {ctx.invoked_subcommand}", CHECK_ANY)
            text = f"the connection to Postgres was lost during the commit, so this may have been done or not ({error})"
            raise click.ClickException(f"{text}. Check before you repeat it: {check}") from None
        except DatabaseError as error:
            if fault := fault_of(error):
                raise click.ClickException(f"{fault.text} ({error})") from None
            if isinstance(error, OperationalError):
                raise click.ClickException(f"the database: {error}") from None
            raise


class Commands(Command, LazyGroup):
    """A group of such commands."""

    command_class = _Discreet


class AnySchema(Commands):
    """Commands that work with any database, also one of an older version."""

    any_schema = True


class Typed(click.ParamType[Any]):
    """A text that a field of the contract reads; becomes what the field loads."""

    field: fields.Field[Any]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Hundredths."""
        if isinstance(value, int):
            return value
        try:
            return self.field.deserialize(value)
        except ValidationError as error:
            self.fail(" ".join(error.messages), param, ctx)


class YuanType(Typed):
    """An amount in yuan, such as 12.50; becomes integer fen. `zero` and `negative` say what else is an amount."""

    name = "yuan"

    def __init__(self, zero: bool = False, negative: bool = False):
        self.field = Sum(zero=zero, negative=negative)


class PercentType(Typed):
    """A rate in percent with at most two decimals, such as 0.60; becomes integer basis points."""

    name = "percent"

    def __init__(self, low: int = 0):
        self.field = Percent(low)


def options(*each: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, shown in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(each), command)


YUAN, PERCENT = YuanType(), PercentType()
ROW_ID = click.IntRange(1, LARGEST_ID)


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def picked(row: Any, *names: str) -> dict[str, Any]:
    """These attributes of a row, by their names."""
    return {name: getattr(row, name) for name in names}


def when(timestamp: int | None) -> str:
    """A Unix time in the machine's zone."""
    return datetime.fromtimestamp(timestamp).astimezone().strftime("%Y-%m-%d %H:%M:%S") if timestamp else ""


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def show(value: Any, as_json: bool, people: Callable[[Any], None]) -> None:
    """Print a value as JSON, or by `people`."""
    if as_json:
        click.echo(json.dumps(value, ensure_ascii=False, indent=2))
    else:
        people(value)


def table(rows: Sequence[dict[str, Any]], nothing: str = "nothing there") -> None:
    """Rows under their names, in columns as wide as they need; numbers to the right."""
    if not rows:
        click.echo(nothing)
        return
    lines = [list(rows[0]), *([_cell(name, value) for name, value in row.items()] for row in rows)]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(rows[0]))]
    right = [type(value) in (int, float) and name not in TIMES for name, value in rows[0].items()]
    for line in lines:
        cells = []
        for text, width, to_right in zip(line, widths, right, strict=True):
            blank = " " * (width - _width(text))
            cells.append(blank + text if to_right else text + blank)
        click.echo("  ".join(cells).rstrip())


def facts(value: dict[str, Any]) -> None:
    """One thing, a line a fact."""
    width = max(_width(name) for name in value)
    for name, fact in value.items():
        click.echo(f"{name.ljust(width)}  {_cell(name, fact)}".rstrip())


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in TIMES:
        return when(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    # What a merchant or its server sent must not move the cursor or colour the screen.
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(value).strip())
