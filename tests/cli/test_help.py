"""Help of commands: each option and argument is explained, each list has --json, and the overview begins with tasks."""

import os
import re
import subprocess
import sys

import click
import pytest

import cli
from cli.command_line import COMMON_TASKS, Tillbook
from cli.help import columns
from runtime.settings import VERSION
from tests.support import ROOT, Service

CONTEXT = click.Context(click.Command("flask"))


def commands_of(group):
    """Return a group's commands by name, including those that are imported when they are called."""
    return {name: group.get_command(CONTEXT, name) for name in group.list_commands(CONTEXT)}


TOP = commands_of(cli.commands())
GROUPS = {name: commands_of(command) for name, command in TOP.items() if isinstance(command, click.Group)}
COMMANDS = {name: command for name, command in TOP.items() if name not in GROUPS} | {
    f"{group} {name}": command for group, commands in GROUPS.items() for name, command in commands.items()
}
CHINESE = re.compile("[\u4e00-\u9fff]")
ENGLISH = re.compile("([a-z]{2,} ){2}[a-z]{2,}")
CODE = re.compile("`[^`]*`")
READING = ("list", "show", "balances", "checkpoints", "verify", "reconcile")
PROMISED = """serve demo to-do seed reconcile sign
    merchant: add set show list rotate page statement statements test-callback
    channel: add set link unlink list
    account: add list
    order: list show approve check reject paid returned not-received resolve unknown
    callback: list show redeliver
    notification: list test
    bill: list fetch
    difference: list check explain
    ledger: balances checkpoints verify adjust remove-sandbox
    operator: add list password reset-factor set
    db: migrate backup restore copy
    vault: rotate
    privacy: export erase"""


def test_every_promised_command_exists():
    """Other people's scripts use these names."""
    single, *groups = PROMISED.splitlines()
    promised = single.split()
    for line in groups:
        group, names = line.split(":")
        promised += [f"{group.strip()} {name}" for name in names.split()]
    assert set(promised) <= set(COMMANDS)
    for alias in ("order accept", "order ask", "order settle", "ledger heads"):  # earlier names
        group, name = alias.split()
        assert TOP[group].get_command(CONTEXT, name).name not in (None, name)
        assert name not in GROUPS[group]


def test_each_command_has_the_name_that_it_is_imported_by_and_help_for_each_option_and_argument():
    for name, command in COMMANDS.items():
        assert command.name == name.split()[-1]
        context = click.Context(command, info_name=name)
        _, explained = command.get_help(context).split("\n", 1)  # the text after the usage line
        assert command.help, name
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                assert parameter.make_metavar(context).strip("[]") in explained, f"{name}: argument {parameter.name}"
            else:
                assert parameter.help, f"{name}: option {parameter.opts}"
        if command.name in READING:
            assert "--json" in [option for parameter in command.params for option in parameter.opts], name


def test_the_lists_of_commands_are_complete_and_truncate_no_description(app, flask):
    assert set(app.cli.list_commands(CONTEXT)) == set(TOP)
    assert "..." not in flask("--help").output.split("Commands:")[1]
    for group, commands in GROUPS.items():
        shown = flask(group, "--help").output
        assert all(name in shown and command.get_short_help_str(200) for name, command in commands.items())
        assert "..." not in shown.split("Commands:")[1], group


@pytest.mark.usefixtures("chinese")
def test_in_chinese_each_text_of_the_help_is_chinese_and_no_line_is_too_wide():
    top = commands_of(cli.commands())
    of_groups = {f"{group} {name}": each for group in GROUPS for name, each in commands_of(top[group]).items()}
    for name, command in {**top, **of_groups}.items():
        options = [each.help for each in command.params if isinstance(each, click.Option)]
        texts = [command.short_help, *command.help.split("\n\n"), *options]
        assert [text for text in texts if not CHINESE.search(text) or ENGLISH.search(CODE.sub("", text))] == [], name
        assert "。" not in command.short_help
        shown = command.make_context(name, [], resilient_parsing=True).get_help()
        assert max(map(columns, shown.splitlines())) <= 80, name


@pytest.mark.usefixtures("chinese")
def test_in_chinese_the_overview_is_chinese_and_aligned():
    context = Tillbook(None).make_context("tillbook", [], resilient_parsing=True)
    usage, *lines = context.get_help().splitlines()
    assert usage == "用法： tillbook [OPTIONS] COMMAND [ARGUMENTS]"
    assert [line for line in lines if line.strip() and not CHINESE.search(line)] == []
    assert max(map(columns, lines)) <= 80
    of_tasks = [line for line in lines if line.startswith("    tillbook")]
    assert len({columns(CHINESE.split(line)[0]) for line in of_tasks}) == 1


@pytest.mark.usefixtures("chinese")
def test_in_chinese_the_errors_of_usage_are_chinese(refuses):
    for arguments, said in (
        (["order", "show"], "错误：缺少参数 'ORDER_NO'."),
        (["order", "nothing"], "错误：没有命令 'nothing'。"),
        (["order", "list", "--nothing"], "错误：没有选项 '--nothing'。"),
        (["order", "list", "--limit", "0"], "错误：'--limit' 的值无效：0 不在范围 1<=x<=10000 之内。"),
        (["order", "list", "--status", "x"], "错误：'--status' 的值无效："),
        (["channel", "add", "--name", "x"], "错误：缺少选项 '--category'. 可选值："),
    ):
        message = refuses(*arguments)
        assert message.startswith("用法： ")
        assert "查看帮助。" in message
        assert said in message


def test_common_tasks_are_commands():
    tasks = [typed.split() for tasks in COMMON_TASKS.values() for typed in tasks]
    assert [words for words in tasks if words[0] not in COMMANDS and " ".join(words[:2]) not in COMMANDS] == []


@pytest.mark.usefixtures("slow")
def test_the_command_works_in_any_folder_and_its_help_needs_no_database(tmp_path):
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "tillbook"
    link.symlink_to(ROOT / "cli" / "tillbook.sh")
    environ = os.environ | {"ORDERS_INSTANCE": str(tmp_path / "instance")}
    for arguments in ([], ["--help"]):
        done = subprocess.run([link, *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
        tasks, commands = done.stdout.split("All commands:")
        assert done.stdout.startswith("Usage: tillbook [OPTIONS] COMMAND")
        assert "tillbook order paid ORDER_NO" in tasks
        assert set(TOP) <= {line.split()[0] for line in commands.splitlines() if line}
    assert not (tmp_path / "instance").exists()


@pytest.mark.sqlite
def test_the_version_is_shown_without_a_database(tmp_path):
    service = Service(tmp_path / "nothing")
    assert service.flask("--version").stdout == f"Tillbook {VERSION}\n"
    assert not service.instance.exists()


@pytest.mark.usefixtures("slow")
def test_the_setting_language_is_the_language_of_the_help(tmp_path):
    def first_line(*arguments, **environ):
        environ = os.environ | {"ORDERS_INSTANCE": str(tmp_path / "instance")} | environ
        done = subprocess.run(
            [sys.executable, "app.py", *arguments], cwd=ROOT, env=environ, capture_output=True, encoding="utf-8"
        )
        return (done.stdout or done.stderr).splitlines()[0]

    assert first_line("--help", ORDERS_LANGUAGE="zh").startswith("用法：")
    assert first_line("order", "show", ORDERS_LANGUAGE="zh").startswith("用法：")
    assert first_line("--help", LANG="zh_CN.UTF-8").startswith("Usage:")
    assert first_line("--help", ORDERS_LANGUAGE="zh", ORDERS_PORT="x").startswith("Usage:")  # an invalid setting


SERVED = {"blueprints", "serving", "granian", "uvloop", "wtforms", "apscheduler"}
IMPORTED = re.compile(r"^import time: .*\| +([\w.]+)$", re.MULTILINE)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("command", [("merchant", "list"), ("ledger", "balances"), ("operator", "list")], ids=" ".join)
def test_a_command_does_not_import_the_served_part(instance, command):
    """Imports take most of a command's time."""
    timed = [sys.executable, "-X", "importtime", "-m", "flask", *command]
    environ = Service(instance).environ
    done = subprocess.run(timed, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in IMPORTED.findall(done.stderr)}
    assert {"app", "cli", "models", "services"} <= imported
    assert not imported & SERVED
