"""Make the database that this release keeps for the tests of later ones: `python -m tests.released_database`.

It seeds a demo, places orders over HTTP, and runs commands. Then it writes `tests/data/VERSION.sql`, a dump by the
program `sqlite3` (Debian: sqlite3), and `VERSION.key`, which opens the encrypted columns. All of the data is made up.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from runtime.settings import VERSION
from tests import support
from tests.support import DemoApi, DemoService, until

DATA = Path(__file__).parent / "data"
HEAD = f"""\
-- A database of release {VERSION}, made by `python -m tests.released_database` with that release's code.
-- All of it is made up. {VERSION}.key opens its encrypted columns; the key guards nothing else.
"""
PERSON = support.PERSON | {"name": "王五"}
CARD = support.CARD | {"card_name": "王五", "prov_id": "440000", "area_id": "440100"}
GATEWAY_A = {"gatewaya_personal_data": PERSON, "gatewaya_card_info": CARD}


def _number(answer) -> str:
    assert answer.code == 1, answer
    return answer.data["order_no"]


def _deposits(service: DemoService, api: DemoApi, other: DemoApi) -> None:
    """Deposits in each state, and with each kind of exception that the demo can play."""
    paid = _number(api.buy("100.00", merchant_order_no="SHOP/2026-1001"))
    api.play(paid, "success")
    api.play(_number(api.buy("20.50", channel=1, merchant_order_no="SHOP/2026-1002")), "late")
    for number in ("特价-百分100%_1003", ""):  # within one second, like many others
        api.buy("66.66", merchant_order_no=number)
    api.buy("30.00", channel=3, merchant_order_no="shop/2026-1004", customer_name="李四")
    wrong = _number(api.buy("10.00", channel=3, merchant_order_no="shop/2026-1005"))
    service.flask("order", "paid", wrong, "--amount", "9", "--reference", "BANK-1")
    credited = _number(other.buy("7.00", channel=3, merchant_order_no="other-1"))
    service.flask("order", "paid", credited, "--amount", "6", "--reference", "BANK-2")
    service.flask("order", "resolve", credited, "--credit")
    completed = _number(other.buy("8.00", channel=3, merchant_order_no="other-2"))
    service.flask("order", "paid", completed, "--amount", "8.50", "--reference", "BANK-3")
    service.flask("order", "resolve", completed, "--complete", "--yes")
    other.buy("5.00", merchant_order_no="SHOP/2026-1001")
    api.buy("15.00", headers={"Idempotency-Key": "kept"}, merchant_order_no="retried")


def _withdrawals(service: DemoService, api: DemoApi) -> None:
    """Withdrawals in each state."""
    service.flask("order", "approve", done := _number(api.sell("50.00", merchant_order_no="PAYOUT-77")))
    until(lambda: api.status(done) == "completed")
    api.sell("12.34", channel=1, merchant_order_no="PAYOUT-78", **GATEWAY_A)
    rejected = _number(api.sell("1.00", channel=3))
    service.flask("order", "reject", rejected, "--reason", "unknown payee")
    service.flask("order", "approve", _number(api.sell("2.00", channel=3)))


def _set_up(service: DemoService) -> None:
    """Make an operator's changes: a third merchant, secrets, an account, a balance, and accounts of the console."""
    rates = ("--buy-rate", "0.5", "--sell-rate", "0.2")
    service.flask("merchant", "add", "third", "--name", "Third Shop 第三商户", *rates)
    for key in ("third", "other"):
        service.flask("channel", "link", "3", key)
    service.flask("merchant", "rotate", "third")
    service.flask("merchant", "rotate", "third", "--callback")
    service.flask("account", "add", "third", "--card-number", "6222020000000000025", "--real-name", "赵六")
    service.flask("ledger", "adjust", "third", "25", "--channel", "3", "--reason", "opening balance")
    password = "correct horse battery staple"
    service.flask("operator", "add", "auditor", "--role", "viewer", stdin=f"{password}\n{password}\n")
    service.flask("privacy", "export", "--name", "nobody")


def make(instance: Path) -> None:
    """Fill the database of an instance folder and stop the service."""
    service = DemoService(instance)
    service.flask("seed", "--orders", "60")
    service.start()
    try:
        _set_up(service)
        _deposits(service, service.api, DemoApi(service.api.send, "other"))
        _withdrawals(service, service.api)
    finally:
        assert service.stop() == 0
    service.flask("ledger", "verify")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "instance"
        make(made)
        dump = support.finished(["sqlite3", made / "orders.sqlite", ".dump"], check=True).stdout
        (DATA / f"{VERSION}.sql").write_text(HEAD + dump, "utf-8")
        shutil.copy(made / "vault.key", DATA / f"{VERSION}.key")
