"""The pages for integrators: every client is named, and the code on the pages runs unchanged."""

import json
import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from standardwebhooks import WebhookVerificationError

from services.sandbox.seeding import CALLBACK_SECRETS
from tests.support import ROOT, completed

DOCS = ROOT / "docs"


def test_the_page_of_the_clients_names_every_file():
    page = (DOCS / "clients" / "README.md").read_text("utf-8")
    files = {file.name for file in (DOCS / "clients").glob("*.*")} - {"README.md"}
    assert {name for name in files if f"]({name})" not in page} == set()


def _blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def test_the_code_of_the_integration_guide_runs_unchanged(clients_by_name, live):
    client = clients_by_name("Python")
    names = ("first.py", "payout.py", "refund.py", "gateway_a.py")
    paid = completed(live.api)
    for name, code in zip(names, _blocks("integrating.md", "python"), strict=True):
        (client.folder / name).write_text(code, "utf-8")
    printed = [
        client.run(f"{client.language.tool} {name}", MERCHANT_URL=live.url).stdout.decode().splitlines()
        for name in names
    ]
    channels, created, same, status, total = printed[0]
    assert channels.count("Sandbox") == 2
    assert created.startswith(f"1 {live.url}/addons/paychannel/pay/index?order_no=")
    assert (same, status, int(total) > 0) == ("True", "pending", True)

    order_no, deducted = printed[1][0].split()
    assert live.api.detail(order_no=order_no).data["merchant_actual_amount"] == int(deducted)

    assert len(printed[2]) == 3
    code, refund_no, status = printed[2][0].split()
    assert (code, status, printed[2][1:]) == ("1", "completed", ["True", "100"])
    found = live.api.call("refundQueryDetail", {"refund_no": refund_no}).data
    assert (found["order_no"], found["reason"]) == (paid, "Returned goods")

    code, order_no = printed[3][0].split()
    assert (code, live.api.detail(order_no=order_no).data["cny_amount"]) == ("1", "20.00")


def test_the_script_of_the_integration_guide_signs_without_a_client(clients_by_name, live):
    client = clients_by_name("bash")
    (script,) = _blocks("integrating.md", "bash")
    (client.folder / "create.sh").write_text(script, "utf-8")
    created = json.loads(client.run("bash create.sh", MERCHANT_URL=live.url).stdout)
    assert (created["code"], created["data"]["cny_amount"]) == (1, "12.50")


def test_the_script_of_the_callbacks_page_prints_the_signature_of_its_request(clients_by_name):
    client = clients_by_name("bash")
    (request,) = _blocks("callbacks.md", "text")
    (script,) = (block for block in _blocks("callbacks.md", "sh") if "openssl" in block)
    (client.folder / "signature.sh").write_text(script, "utf-8")
    signature = client.run("bash signature.sh").stdout.decode()
    assert f"webhook-signature: v1,{signature}\n" in request
    assert request.rstrip().splitlines()[-1] in script


def test_the_commands_of_the_epay_page_place_query_and_refund_a_payment(clients_by_name, live):
    client, enable = clients_by_name("bash"), _blocks("epay-inbound.md", "sh")[0]
    keys = json.loads(live.flask(*enable.split()[1:], "--json").stdout)
    assert [line.split()[0] for line in _blocks("epay-inbound.md", "text")[0].splitlines()] == list(keys)
    own = {"THE_KEY": keys["key"], "http://127.0.0.1:8000": live.url, "https://pay.example.com": live.url}
    answers = []
    for script in (block for block in _blocks("epay-inbound.md", "sh") if "curl" in block):
        code = re.sub("|".join(own), lambda found: own[found[0]], script)
        (client.folder / "epay.sh").write_text(code, "utf-8")
        if "act=refund" in script:
            live.api.play(answers[0]["trade_no"], "success")
        answers.append(json.loads(client.run("bash epay.sh").stdout))
    placed, found, refunded = answers
    assert (placed["code"], found["code"], found["status"], found["money"]) == (1, 1, 0, "12.50")
    assert found["trade_no"] == placed["trade_no"]
    assert (refunded["code"], refunded["status"], refunded["trade_no"]) == (1, 1, placed["trade_no"])
    assert [list(json.loads(block)) for block in _blocks("epay-inbound.md", "json")] == [*map(list, answers)]


def test_the_code_of_the_page_on_returning_signs_and_verifies_its_address(clients_by_name, time_machine):
    client = clients_by_name("bash")
    (address,) = _blocks("returning.md", "text")
    fields = dict(parse_qsl(urlsplit(address.strip()).query))
    (script,) = (block for block in _blocks("returning.md", "sh") if "openssl" in block)
    (client.folder / "return.sh").write_text(script, "utf-8")
    assert f"v1,{client.run('bash return.sh').stdout.decode()}" == fields["signature"]
    time_machine.move_to(int(fields["timestamp"]))
    (code,) = _blocks("returning.md", "python")
    exec(code, names := {})
    names["verify"](fields, CALLBACK_SECRETS["demo"])
    with pytest.raises(WebhookVerificationError):
        names["verify"](fields | {"status": "confirmed"}, CALLBACK_SECRETS["demo"])
