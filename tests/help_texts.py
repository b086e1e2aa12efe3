"""The texts of the commands' help, for `make messages`: pyproject.toml names this extractor."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import click
from babel.messages.extract import extract_python

import cli
from cli.command_line import COMMON_TASKS
from cli.help import paragraphs
from cli.output import NAMES

# Its other modules have messages for programmers and for shells.
CLICK = (click.core, click.decorators, click.exceptions, click.formatting, click.parser, click.termui, click.types)


def of_commands(group: click.Group) -> Iterator[str]:
    """Yield the texts of a group's commands and of their options."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        yield from paragraphs(command.help or "")
        yield from (each.help for each in command.params if isinstance(each, click.Option) and each.help)
        if isinstance(command, click.Group):
            yield from of_commands(command)


def extract(file: Any, keywords: Any, comment_tags: Any, options: Any) -> Iterator[tuple[int, str, Any, list[str]]]:
    """Yield the texts of a module, of the help of all commands, and of click."""
    yield from extract_python(file, keywords, comment_tags, options)
    tasks = [text for heading, each in COMMON_TASKS.items() for text in (heading, *each.values())]
    for text in (*tasks, *NAMES, *of_commands(cli.commands())):
        yield 0, "gettext", text, []
    for module in CLICK:
        source = BytesIO(inspect.getsource(module).encode())
        found = extract_python(source, keywords, comment_tags, options)
        # Not click's sentence about the version, which the commands do not use.
        yield from (each for each in found if "%(" not in str(each[2]))
