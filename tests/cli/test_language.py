"""The commands in Chinese: results and errors follow the setting `language`, and JSON stays as it is."""

import re

import pytest

from models.tables.channel import Channel
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
    assert re.search(r"^cny_amount +1,234\.50$", flask("order", "show", order_no).output, re.MULTILINE)
    assert flask_json("order", "show", order_no)["cny_amount"] == "1234.50"
    assert flask_json("order", "list")[0]["cny_amount"] == "1234.50"
    assert "1,000,000.00" in flask("channel", "list").output
