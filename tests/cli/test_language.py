"""The commands in Chinese: results and errors follow the setting `language`, and JSON stays as it is."""

import re
from datetime import datetime

import pytest

from models.tables.channel import Channel
from runtime.clock import CHINA
from tests.wrong_signers import ENDPOINT, QUERY, Mistaken

ENGLISH = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")


@pytest.fixture
def settings_of_app():
    """The service's language is Chinese."""
    return {"language": "zh"}


def test_results_and_refusals_are_chinese(flask, refuses, api):
    order_no = api.buy("1234.50", channel=3).data["order_no"]
    assert "没有待办" in flask("to-do").output
    assert flask("order", "paid", order_no).output.splitlines()[-1] == f"订单 {order_no}：completed"
    assert not ENGLISH.search(refuses("order", "reject", order_no, "--reason", "x"))
    assert "请至少指定一个选项。" in refuses("channel", "set", "1")
    assert "操作员已确认" in flask("order", "show", order_no).output
    assert "必须是小数形式的数字。" in refuses("order", "paid", order_no, "--amount", "x")
    assert "无法读取 --callback-url 的文件：" in refuses("merchant", "set", "demo", "--callback-url", "@nowhere")


def test_maintenance_is_chinese(flask, tmp_path):
    checked = [line for line in flask("ledger", "verify").stdout.splitlines() if line]
    assert all(line.startswith("通过  ") for line in checked)
    assert [line for line in checked if ENGLISH.search(line)] == []
    assert "尚未清除" in flask("privacy", "erase", "--name", "张三").output


def test_the_names_of_columns_and_facts_are_chinese(flask, flask_json, api):
    order_no = api.buy("1234.50", channel=3).data["order_no"]
    api.sell("50.00", channel=3)
    flask("order", "paid", order_no)
    flask("refund", "create", order_no, "10.00")
    flask("operator", "add", "lei", typed="a-long-password-1")
    flask("epay", "enable", "demo", "--host", "shop.example")
    number = flask_json("callback", "list")[0]["id"]
    for command in (
        ("to-do",),
        ("order", "list"),
        ("order", "show", order_no),
        ("refund", "list"),
        ("refund", "show", flask_json("refund", "list")[0]["refund_no"]),
        ("callback", "list"),
        ("callback", "show", number),
        ("merchant", "list"),
        ("merchant", "show", "demo"),
        ("merchant", "page", "demo"),
        ("account", "list"),
        ("channel", "list"),
        ("channel", "check", "3"),
        ("sign", "epay", "--query", "pid=1&money=1&sign=x"),
        ("epay", "list"),
        ("epay", "show", "demo"),
        ("ledger", "balances"),
        ("ledger", "checkpoints"),
        ("operator", "list"),
        ("merchant", "statement", "demo", f"{datetime.now(CHINA):%Y-%m}"),
    ):
        shown = flask(*command).stdout
        for block in shown.strip().split("\n\n"):
            lines = block.splitlines()
            is_table = len(lines[0].split()) > 2 or len(lines[0].split()) == 1  # a part has its name above
            names = " ".join(lines[:2] if len(lines[0].split()) == 1 else lines[:1] if is_table else ()).split()
            names += [] if is_table else [line.split()[0] for line in lines]
            assert {name for name in names if re.fullmatch("[a-z_]+", name)} <= {"id", "key"}, command


def test_the_explanation_of_a_signature_is_chinese(flask, tmp_path):
    mistaken = Mistaken()
    files = {"body": mistaken.body("0" * 64), "theirs": mistaken.text.replace("12.50", "12.5").encode()}
    options = []
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
        options += [f"--{name}", tmp_path / name]
    shown = flask("sign", ENDPOINT, *options, "--query", QUERY, "--merchant", "demo", fails=True).output
    told = [line for line in shown.splitlines() if re.search(r"[\u4e00-\u9fff]", line)]
    assert len(told) > 5
    assert [line for line in told if ENGLISH.search(line)] == []


def test_amounts_and_counts_have_separators_in_tables_but_not_in_json(flask, flask_json, api):
    order_no = api.buy("1234.50").data["order_no"]
    Channel.update(max_amount=1_000_000_00).where(Channel.id == 1).execute()
    assert "1,234.50" in flask("order", "list").output
    assert re.search(r"^金额 +1,234\.50$", flask("order", "show", order_no).output, re.MULTILINE)
    assert flask_json("order", "show", order_no)["cny_amount"] == "1234.50"
    assert flask_json("order", "list")[0]["cny_amount"] == "1234.50"
    assert "1,000,000.00" in flask("channel", "list").output


def test_a_channel_check_without_a_usable_response_is_chinese(flask_json, refuses, web_server):
    config = {"base_url": web_server.url_for("/"), "pid": "1000", "key": "secret", "version": "1"}
    pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
    new = ("--category", "gateway_b", "--driver", "epay", "--name", "A")
    number = flask_json("channel", "add", *new, *pairs)["id"]
    said = refuses("channel", "check", number)
    assert re.search(r"Error: [\w.]+ 返回 HTTP 500：不是 JSON 对象", said)
