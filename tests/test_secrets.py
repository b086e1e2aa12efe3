"""Secrets and personal data: encrypted on disk, and in no log or error."""

import json
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest

from app import create_app
from models.db import writer
from models.db.base import database
from services.channels import channel_setup
from tests.databases import settings_of
from tests.pages import FORM
from tests.support import CARD, PERSON, Api, Receiver, Service, signed, until
from tests.trial_service import Trial

pytestmark = [pytest.mark.sqlite, pytest.mark.usefixtures("slow")]

CHANNEL_SECRET = "channel-config-secret-4711"
PERSONAL = {
    "the payer's name": "欧阳询付款人",
    "the holder's name": "司马相如持卡人",
    "the certificate's name": "诸葛亮实名",
    "the certificate": "110101199003077758",
    "the mobile number": "13911112222",
    "the e-mail address": "zhuge.liang@example.com",
    "the address": "南阳卧龙岗一号",
    "the card": "6222021234567890123",
    "the account on file": "6217009876543210987",
    "the name on file": "公孙胜收款人",
}
PERSON_SENT = PERSON | {
    "name": PERSONAL["the certificate's name"],
    "cert_no": PERSONAL["the certificate"],
    "mobile_no": PERSONAL["the mobile number"],
    "email": PERSONAL["the e-mail address"],
    "address": PERSONAL["the address"],
}
CARD_SENT = CARD | {"card_name": PERSONAL["the holder's name"], "card_no": PERSONAL["the card"]}
SELL_A = {"channel": 1, "gatewaya_personal_data": PERSON_SENT, "gatewaya_card_info": CARD_SENT}
PAYEE = {"payee": "Payee 收款公司", "account": "6212260000111122223", "qr_wxpay": "wxp://own-static-code"}


def _set_up(command, receiver):
    """A real merchant with realistic channels; returns its secrets."""
    shop = json.loads(command("merchant", "add", "shop", "--callback-url", receiver.url, "--json"))
    channel_setup.add_channel("gateway_a", Trial.name, "New", config={"secret": CHANNEL_SECRET})
    pairs = [part for name, value in PAYEE.items() for part in ("--config", f"{name}={value}")]
    command("channel", "add", "--name", "New", "--category", "gateway_c", "--driver", "manual", *pairs)
    for channel in ("1", "2"):
        command("channel", "link", channel, "shop")
    account = ("--card-number", PERSONAL["the account on file"], "--real-name", PERSONAL["the name on file"])
    command("account", "add", "shop", *account)
    command("ledger", "adjust", "shop", "1000", "--reason", "start")
    receiver.secret = shop["callback_secret"]
    return shop


def _walk(command, api):
    """Deposits and withdrawals on both channels; returns one number of each."""
    deposit = api.buy("20.00", channel=1, customer_name=PERSONAL["the payer's name"]).data["order_no"]
    assert api.notice(deposit, 2_000, secret=CHANNEL_SECRET).status == 200
    payouts = [api.sell("10.00", **SELL_A).data["order_no"], api.sell("10.00", channel=2).data["order_no"]]
    for order_no in payouts:
        command("order", "accept", order_no)
    command("order", "paid", payouts[1], "--reference", "BANK-1")
    until(lambda: {api.status(order_no) for order_no in [deposit, *payouts]} == {"completed"})
    by_hand = api.buy("20.00", channel=2, customer_name=PERSONAL["the payer's name"]).data["order_no"]
    assert PAYEE["account"] in api.send("GET", f"/addons/paychannel/pay/index?order_no={by_hand}").text
    return deposit, payouts[0]


def _errors(api, deposit):
    """The responses to failed requests that contain every kind of secret."""
    bad = signed("createOrder", {"order_type": 2, "cny_amount": "1"} | SELL_A, "shop", api.secret)
    sent = json.dumps(bad, ensure_ascii=False)
    return [
        api.post("createOrder", json.dumps(bad | {"signature": "0" * 64}).encode()),
        api.post("createOrder", sent.encode()[:-9]),
        api.post("createOrder", sent.encode(), FORM),
        api.sell("99999.00", **SELL_A),
        api.sell("1.001", **SELL_A | {"gatewaya_card_info": CARD_SENT | {"prov_id": "999999"}}),
        api.sell("1.00", **SELL_A | {"gatewaya_card_info": CARD_SENT | {"card_no": PERSONAL["the card"] + "x"}}),
        api.sell("1.00", **SELL_A | {"gatewaya_personal_data": PERSON_SENT | {"cert_type": PERSON_SENT["cert_no"]}}),
        api.sell("1.00", **SELL_A | {"channel": 2}),
        api.buy("1.00", channel=1, customer_name=PERSONAL["the payer's name"] * 60),
        api.send("POST", f"/addons/paychannel/notify/{deposit}", json.dumps(PERSON_SENT).encode()),
    ]


@pytest.fixture(scope="module")
def walked(tmp_path_factory, _web_server):
    """A real process outside demo mode at DEBUG level: its files, its log and its errors after a full run."""
    folder = tmp_path_factory.mktemp("secrets")
    receiver = Receiver(_web_server, f"/{folder.name}", "")  # its own path, because a process may set this up twice
    service = Service(folder, ORDERS_LOG_LEVEL="DEBUG")
    runner = create_app(settings_of(folder)).test_cli_runner()

    def command(*arguments):
        result = runner.invoke(args=list(arguments))
        assert result.exit_code == 0, result.output
        return result.stdout

    shop = _set_up(command, receiver)
    service.start()
    service.api = api = Api(service.api.send, "shop", shop["api_secret"])
    deposit, payout = _walk(command, api)
    until(lambda: len(receiver.got) >= 3)
    rotated = [json.loads(command("merchant", "rotate", "shop", *more, "--json")) for more in ((), ("--callback",))]
    renewed = Api(api.send, "shop", rotated[0]["api_secret"])
    assert (api.listed().code, renewed.listed().code) == (1, 1)
    errors = _errors(renewed, deposit)
    assert service.stop() == 0
    writer.stop()
    database.close()
    with closing(sqlite3.connect(folder / "orders.sqlite")) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    secrets = {
        "secret": shop["api_secret"],
        "callback secret": shop["callback_secret"].removeprefix("whsec_"),
        "new secret": rotated[0]["api_secret"],
        "new callback secret": rotated[1]["callback_secret"].removeprefix("whsec_"),
        "key": (folder / "vault.key").read_text().strip(),
        "channel secret": CHANNEL_SECRET,
    }
    return SimpleNamespace(
        folder=folder,
        orders={"orders.sqlite": deposit, "sandbox.sqlite": payout},
        errors=errors,
        log=service.log.read_bytes(),
        known=PERSONAL | PAYEE | secrets,
    )


def _found(walked, data):
    """The names of the secrets in the bytes, in UTF-8 or as JSON escapes."""
    spelt = {name: (text.encode(), json.dumps(text)[1:-1].encode()) for name, text in walked.known.items()}
    return sorted(name for name, spellings in spelt.items() if any(each in data for each in spellings))


def test_no_secret_is_in_a_file_and_others_may_not_read_them(walked):
    for file, order_no in walked.orders.items():
        data = (walked.folder / file).read_bytes()
        assert order_no.encode() in data  # the file is the right one, and readable
        assert _found(walked, data) == []
    names = {path.name for path in walked.folder.iterdir()}
    assert names == {"orders.sqlite", "sandbox.sqlite", "vault.key", "service.log", "service.lock"}
    assert (walked.folder / "vault.key").stat().st_mode & 0o777 == 0o600
    assert (walked.folder / "orders.sqlite").stat().st_mode & 0o077 == 0


def test_no_secret_is_logged(walked):
    assert b" DEBUG " in walked.log
    assert _found(walked, walked.log) == []
    assert b"Traceback" not in walked.log


def test_no_secret_is_in_an_error(walked):
    assert all(400 <= answer.status < 500 for answer in walked.errors)
    for answer in walked.errors:
        assert _found(walked, answer.text.encode()) == [], answer
