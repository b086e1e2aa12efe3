"""Every published client verifies the fields with which payers return, and refuses all others."""

import time
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from standardwebhooks import Webhook

from services.sandbox import seeding
from tests.clients.languages import LANGUAGES
from tests.clients.receivers import send
from tests.pages import BACK
from tests.support import completed, until

SECRET = seeding.CALLBACK_SECRETS["demo"]
ANOTHER = "whsec_" + "A" * 43 + "="
RECEIVING = [name for name, language in LANGUAGES.items() if language.receive]
FIELDS = ("order_no", "merchant_order_no", "status", "timestamp", "signature")


def signed(number="A-1001", *, secret=SECRET, ago=0):
    """The fields of a return, by a public library."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    return {
        "order_no": "202611218899480685472049",
        "merchant_order_no": number,
        "status": "completed",
        "timestamp": str(int(at.timestamp())),
        "signature": Webhook(secret).sign("202611218899480685472049", at, f"completed.{number}"),
    }


def without(name, fields=None):
    return {each: value for each, value in (fields or signed()).items() if each != name}


def verified_by_bash(client, fields, **settings):
    """The result of the bash client's function for a return."""
    parts = [fields.get(name, "") for name in FIELDS]
    done = client.run("""bash -c '. ./merchant.sh && verified_return "$@"' bash""", *parts, **settings)
    return {0: True, 1: False}[done.returncode]


@pytest.fixture
def returning(live):
    """`returning(url)`: the address to which the service sends the payer of a completed order."""

    def pay(url):
        live.flask("merchant", "page", "demo", "--return-url", url)
        return live.api.send("GET", f"{BACK}?order_no={completed(live.api)}").headers["Location"]

    yield pay
    live.flask("merchant", "page", "demo", "--return-url", seeding.PAGE["return_url"])


@pytest.mark.parametrize("language", RECEIVING)
def test_its_receiver_accepts_a_payer_whom_the_service_sends_back(language, listening, returning):
    url, printed = listening(MERCHANT_CALLBACK_SECRET=SECRET)
    address = returning(f"{url}?page=1")
    assert send("GET", address) == 200
    until(lambda: f"return {dict(parse_qsl(urlsplit(address).query))['order_no']} completed" in printed())


def test_the_bash_function_accepts_the_services_fields(clients_by_name, returning):
    fields = dict(parse_qsl(urlsplit(returning("https://shop.example/")).query))
    assert verified_by_bash(clients_by_name("bash"), fields, MERCHANT_CALLBACK_SECRET=SECRET)


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_accepts_only_signed_returns_and_none_without_a_secret(language, believes):
    def accepts(fields, secret=SECRET):
        def by_http(url):
            return send("GET", f"{url}?{urlencode(fields)}")

        def by_function(client, **settings):
            return verified_by_bash(client, fields, **settings)

        return believes(by_http, by_function, secret)

    assert accepts(signed())
    assert accepts(signed("商户 A/1&b=2+3"))
    assert accepts(signed(""))
    assert accepts(without("merchant_order_no", signed("")))
    assert accepts(signed(ago=200))
    during_a_rotation = f"{signed(secret=ANOTHER)['signature']} {signed()['signature']}"
    assert accepts(signed() | {"signature": during_a_rotation})

    refused = {
        "changed status": accepts(signed() | {"status": "confirmed"}),
        "changed number": accepts(signed() | {"merchant_order_no": "A-1002"}),
        "changed order": accepts(signed() | {"order_no": "202611218899480685472050"}),
        "changed time": accepts(signed(ago=100) | {"timestamp": str(int(time.time()))}),
        "old": accepts(signed(ago=400)),
        "from the future": accepts(signed(ago=-400)),
        "no number of seconds": accepts(signed() | {"timestamp": "1e9"}),
        "after the rotation": accepts(signed(secret=ANOTHER)),
        "empty signature": accepts(signed() | {"signature": ""}),
        **{f"without {name}": accepts(without(name)) for name in FIELDS},
        "a list": accepts(without("signature") | {"signature[]": signed()["signature"]}),
        "nothing": accepts({}),
    }
    assert [name for name, believed in refused.items() if believed] == []
    assert not accepts(signed(), secret="")
