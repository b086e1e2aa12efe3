"""Every published client accepts the service's callbacks, and no others."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from services.sandbox import seeding
from services.security.signing import sign_webhook
from tests.clients.languages import LANGUAGES
from tests.clients.receivers import send
from tests.support import completed, until

SECRET = seeding.CALLBACK_SECRETS["demo"]
BODY = '{"type":"order.completed","data":{"order_no":"202611218899480685472049","note":"张三"}}'
RECEIVING = [name for name, language in LANGUAGES.items() if language.receive]


def signed(body=BODY, *, secret=SECRET, ago=0, webhook_id="msg_1"):
    """The headers of a callback, by a public library."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(webhook_id, at, body),
    }


def without(name, headers):
    return {each: value for each, value in headers.items() if each != name}


def with_another_signature(headers):
    """Headers as during a secret rotation: another secret's signature comes first."""
    return headers | {"webhook-signature": f"v1,{'A' * 43}= {headers['webhook-signature']}"}


def verified_by_bash(client, headers, body, **settings):
    """The result of the bash client's function for a callback."""
    parts = [headers.get(name, "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature")]
    done = client.run("""bash -c '. ./merchant.sh && verified "$@"' bash""", *parts, given=body, **settings)
    return {0: True, 1: False}[done.returncode]


@pytest.fixture
def tell(live):
    """`tell(url)`: until the test ends, the service sends its callbacks to this address."""
    yield lambda url: live.flask("merchant", "set", "demo", "--callback-url", url)
    live.flask("merchant", "set", "demo", "--callback-url", seeding.INBOX)  # a later test may listen at that address


@pytest.mark.parametrize("language", RECEIVING)
def test_its_receiver_accepts_the_services_callback(language, listening, live, tell):
    url, printed = listening(MERCHANT_CALLBACK_SECRET=SECRET)
    tell(url)
    order_no = completed(live.api)
    until(lambda: f"order.completed {order_no}" in printed())


@pytest.mark.parametrize("language", RECEIVING)
def test_its_receiver_accepts_the_callback_of_a_refund(language, listening, live, tell):
    url, printed = listening(MERCHANT_CALLBACK_SECRET=SECRET)
    tell(url)
    order_no = completed(live.api)
    fields = {"order_no": order_no, "cny_amount": "1.00", "merchant_refund_no": f"R-{language}"}
    assert live.api.call("createRefund", fields).data["status"] == "completed"
    until(lambda: f"refund.completed {order_no}" in printed())


def test_the_bash_function_accepts_the_services_callback(clients_by_name, live, receiver, tell):
    tell(receiver.url)
    completed(live.api)
    until(lambda: receiver.got)
    got = receiver.got[0]
    headers = {name.lower(): value for name, value in got.headers.items()}
    assert verified_by_bash(clients_by_name("bash"), headers, got.body, MERCHANT_CALLBACK_SECRET=SECRET)


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_accepts_only_signed_callbacks_and_none_without_a_secret(language, believes):
    def accepts(headers, body=BODY, secret=SECRET):
        def by_http(url):
            return send("POST", url, headers, body)

        def by_function(client, **settings):
            return verified_by_bash(client, headers, body.encode(), **settings)

        return believes(by_http, by_function, secret)

    assert accepts(signed())
    assert accepts(with_another_signature(signed()))
    assert accepts(signed(ago=200))
    assert accepts(signed(ago=-200))

    another = "whsec_" + "A" * 43 + "="
    refused = {
        "altered body": accepts(signed(), BODY.replace("completed", "cancelled")),
        "body with a newline": accepts(signed(), BODY + "\n"),
        "another secret": accepts(signed(secret=another)),
        "old": accepts(signed(ago=400)),
        "from the future": accepts(signed(ago=-400)),
        "altered id": accepts(signed() | {"webhook-id": "msg_2"}),
        "altered timestamp": accepts(signed(ago=100) | {"webhook-timestamp": str(int(time.time()))}),
        "no number": accepts(signed() | {"webhook-timestamp": "1e9"}),
        "endless number": accepts(signed() | {"webhook-timestamp": "9" * 5000}),
        "other digits": accepts(signed() | {"webhook-timestamp": "²".encode().decode("latin-1")}),
        "no signature": accepts(without("webhook-signature", signed())),
        "empty signature": accepts(signed() | {"webhook-signature": ""}),
        "odd signature": accepts(signed() | {"webhook-signature": "v1,é v1 , v1,*"}),
        "other version": accepts(signed() | {"webhook-signature": signed()["webhook-signature"].replace("v1,", "v2,")}),
        "no timestamp": accepts(without("webhook-timestamp", signed())),
        "no id": accepts(without("webhook-id", signed())),
    }
    assert [name for name, believed in refused.items() if believed] == []

    headers = signed()
    with_an_empty_key = sign_webhook([""], headers["webhook-id"], int(headers["webhook-timestamp"]), BODY)
    assert not accepts(headers, secret="")
    assert not accepts(headers | {"webhook-signature": with_an_empty_key}, secret="")
