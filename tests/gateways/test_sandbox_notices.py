"""The sandbox's notices count if they are signed, name their order and are valid; otherwise nothing changes."""

import json

import pytest

from tests.support import heard, sandbox_notice, sandbox_signed

NOTHING = (1_000_000, 0)
SANDBOX = 2


def _notify(api, order_no, body, headers, method="POST"):
    return api.send(method, f"/addons/paychannel/notify/{order_no}", body, headers)


def _forged(order_no):
    body, headers = sandbox_notice(order_no, 10_000)
    sign = headers["X-Sandbox-Signature"]
    return {
        "no signature": (body, {}),
        "an empty signature": (body, {"X-Sandbox-Signature": ""}),
        "another secret": sandbox_notice(order_no, 10_000, secret="demo-secret"),
        "another amount": (body.replace(b"10000", b"10001"), headers),
        "a byte more": (body + b" ", headers),
        "a character less": (body, {"X-Sandbox-Signature": sign[:-1]}),
        "not ASCII": (body, {"X-Sandbox-Signature": "é" * 64}),
        "no body": (b"", headers),
    }


@pytest.mark.parametrize("forgery", list(_forged("")))
def test_a_forged_notice_is_refused_and_changes_nothing(api, order_details, balances, forgery):
    order_no = api.buy().data["order_no"]
    details = order_details(order_no)
    refused = _notify(api, order_no, *_forged(order_no)[forgery])
    assert (refused.status, refused.text) == (400, "fail")
    assert (heard(order_details(order_no)), balances()) == ((details, ["bad signature"]), NOTHING)


def test_refused_notices_do_not_fill_the_history(api, order_details):
    order_no = api.buy().data["order_no"]
    for number in range(15):
        body = json.dumps(SAID | {"order_no": order_no, f"made up {number}": 1}).encode()
        _notify(api, order_no, *sandbox_signed(body))
        _notify(api, order_no, body, {})
    _, refused = heard(order_details(order_no))
    assert len(refused) == 10
    assert refused.count("bad signature") == 1


def test_a_notice_by_get_is_refused(api):
    order_no = api.buy().data["order_no"]
    assert _notify(api, order_no, b"", {}, "GET").status == 400
    assert api.status(order_no) == "pending"


def test_a_notice_counts_for_the_order_that_it_names_only(api, order_details):
    paid, unpaid = (api.buy().data["order_no"] for _ in range(2))
    details = [order_details(paid), order_details(unpaid)]
    refused = api.notice(paid, 10_000, to=unpaid)
    assert (refused.status, refused.text) == (400, "fail")
    assert [heard(order_details(paid)), heard(order_details(unpaid))] == [
        (details[0], []),
        (details[1], ["it is about another order"]),
    ]
    assert api.notice(paid, 10_000).text == "success"
    assert [api.status(paid), api.status(unpaid)] == ["completed", "pending"]


def test_a_notice_to_no_order_is_not_found(api):
    missing = api.notice("1" * 24, 10_000)
    assert (missing.status, missing.code) == (404, 40401)


def test_each_channel_has_a_secret_of_its_own(api, flask):
    order_no = api.buy().data["order_no"]
    flask("channel", "set", SANDBOX, "--config", "secret=this-channel-s-own")
    assert api.notice(order_no, 10_000).status == 400
    assert api.notice(order_no, 10_000, secret="this-channel-s-own").text == "success"
    assert api.status(order_no) == "completed"


SAID = {"order_no": "?", "state": "paid", "amount": 10_000, "reference": "R-1"}


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"not json",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        {"order_no": "?"},
        SAID | {"state": "eaten"},
        SAID | {"state": None},
        SAID | {"amount": None},
        SAID | {"amount": "10000"},
        SAID | {"amount": 10_000.0},
        SAID | {"amount": 10**30},
        SAID | {"reference": None},
        SAID | {"reference": ["R-1"]},
    ],
    ids=repr,
)
def test_an_invalid_signed_notice_is_refused_and_changes_nothing(api, order_details, said):
    order_no = api.buy().data["order_no"]
    details = order_details(order_no)
    body = said if isinstance(said, bytes) else json.dumps(said).replace("?", order_no).encode()
    refused = _notify(api, order_no, *sandbox_signed(body))
    assert (refused.status, refused.text) == (400, "fail")
    after, reasons = heard(order_details(order_no))
    assert (after, len(reasons)) == (details, 1)


@pytest.mark.parametrize("state", ["open", "absent"])
def test_a_notice_without_effect_changes_nothing(api, order_details, state):
    order_no = api.buy().data["order_no"]
    details = order_details(order_no)
    assert api.notice(order_no, 10_000, state=state).text == "success"
    assert order_details(order_no) == details


def test_a_signed_notice_over_real_http_is_accepted(service):
    api = service.api
    order_no = api.buy().data["order_no"]
    assert api.notice(order_no, 10_000, secret="guessed-secret").status == 400
    assert api.notice(order_no, 10_000).text == "success"
    assert api.status(order_no) == "completed"
