"""What the pages say of the clients: every file is named, and the first code that one is asked to run runs."""

import re

from tests.support import ROOT

DOCS = ROOT / "docs"


def test_the_page_of_the_clients_names_every_file():
    page = (DOCS / "clients" / "README.md").read_text("utf-8")
    files = {file.name for file in (DOCS / "clients").glob("*.*")} - {"README.md"}
    assert {name for name in files if f"]({name})" not in page} == set()


def test_the_code_of_the_first_ten_minutes_runs_as_it_is(clients_by_name, live):
    client = clients_by_name("Python")
    first, payout = re.findall(r"```python\n(.*?)```", (DOCS / "integrating.md").read_text("utf-8"), re.DOTALL)
    (client.folder / "first.py").write_text(first, "utf-8")
    (client.folder / "payout.py").write_text(payout, "utf-8")
    python = client.language.tool

    done = client.run(f"{python} first.py", MERCHANT_URL=live.url)
    channels, created, same, status, total = done.stdout.decode().splitlines()
    assert channels.count("Sandbox") == 2
    assert created.startswith(f"1 {live.url}/addons/paychannel/pay/index?order_no=")
    assert (same, status, int(total) > 0) == ("True", "pending", True)

    done = client.run(f"{python} payout.py", MERCHANT_URL=live.url)
    order_no, deducted = done.stdout.decode().split()
    assert live.api.detail(order_no=order_no).data["merchant_actual_amount"] == int(deducted)
