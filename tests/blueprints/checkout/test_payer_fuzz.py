"""Nothing that a payer or a stranger sends to the pages for payers fails, or leads to another site."""

from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pages import BACK, CASHIER, CHOOSE, CLAIM, FORM, GO, LANGUAGE, OPEN, QR_IMAGE, SIGNED_IN, STATUS
from tests.payers import AGENTS
from tests.upstreams.wechatpay import WechatPay, WechatSignIn

GETS = (CASHIER, f"{CASHIER}/%5Cevil.example", STATUS, GO, BACK, SIGNED_IN, QR_IMAGE, LANGUAGE)
POSTS = (OPEN, CHOOSE, CLAIM)
NAMES = ["order_no", "again", "choice", "code", "state", "v", "to", "stay", "save", "played", "refused"]
NAMES += ["return_url", "url"]
ELSEWHERE = st.sampled_from(
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "%2f%2fevil.example"]
)
TEXT = st.text(max_size=30) | ELSEWHERE
LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30) | ELSEWHERE
HEADERS = st.fixed_dictionaries(
    {"User-Agent": st.sampled_from([*AGENTS.values()]) | LATIN},
    optional={
        "Host": st.sampled_from(["evil.example", "evil.example:80", "localhost"]),
        "Referer": ELSEWHERE,
        "Cookie": LATIN | st.sampled_from(["payer=x; sign_in=x", "sign_in=", "payer_language=xx", "payer_language=zh"]),
        "Accept-Language": LATIN,
        "X-Forwarded-Host": st.just("evil.example"),
    },
)


@pytest.fixture
def settings_of_app():
    return {"private_channels": True, "private_callbacks": True, "pages_per_address": 10**6}


@pytest.fixture
def orders(reach, api, flask, flask_json, web_server):
    """Numbers of deposits in all states, of an epay payment without an order, and of one that needs a sign-in."""
    flask("merchant", "page", "demo", "--return-url", "https://shop.example/{merchant_order_no}")
    config = WechatPay(web_server).config(**WechatSignIn(web_server).config())
    pairs = [part for name, value in config.items() for part in ("--config", f"{name}={value}")]
    new = ("channel", "add", "--category", "gateway_b", "--driver", "wechatpay", "--name", "WeChat Pay", *pairs)
    wechat = flask_json(*new)["id"]
    flask("channel", "link", wechat, "demo")
    numbers = [api.buy(channel=wechat, paychannel_paymethod="wxpay").data["order_no"]]
    numbers += [reach(state) for state in ("completed", "paid", "pending", "cancelled", "checking", "confirmed")]
    return [*numbers, reach("expired")]


@settings(
    max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_request_of_a_payer_fails_or_leads_to_another_site(orders, app, web_server, data):
    number = data.draw(st.sampled_from([*orders, ""]) | TEXT)
    fields = {name: data.draw(TEXT) for name in NAMES} | {"order_no": number}
    path, headers = data.draw(st.sampled_from(GETS + POSTS)), data.draw(HEADERS)
    if path in POSTS:
        answer = app.test_client().post(path, data=urlencode(fields), headers=FORM | headers)
    else:
        answer = app.test_client().get(f"{path}?{urlencode(fields)}", headers=headers)
    assert answer.status_code < 500 or (path, answer.status_code) == (SIGNED_IN, 502)
    target = urlsplit(answer.headers.get("Location", CASHIER))
    known = ("shop.example", urlsplit(web_server.url_for("/")).netloc)
    assert target.path in (CASHIER, BACK) or target.netloc in known
    assert target.netloc in ("", *known)
