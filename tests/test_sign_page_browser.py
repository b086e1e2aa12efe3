"""An integrator with a real browser at the signature explainer, in both sizes and languages."""

from urllib.parse import urlencode

import pytest

from tests.browser import DESKTOP, NEEDS_CHROMIUM, PHONE, Person, watched
from tests.epay_shop import text_to_sign
from tests.wrong_epay_signers import digest
from tests.wrong_signers import ENDPOINT, QUERY, Mistaken, hexed

pytestmark = NEEDS_CHROMIUM


@pytest.fixture
def person(chrome):
    yield from watched(Person(chrome))


@pytest.mark.parametrize(("size", "language"), [(PHONE, "zh-CN,zh"), (DESKTOP, "en-US,en")], ids=["phone", "desktop"])
def test_the_sender_of_a_wrong_request_sees_it_and_compares_another_text(size, language, person, running):
    mistaken = Mistaken(f"nonce-of-{size[0]}")
    wrong = mistaken.text.replace("12.50", "12.5")
    assert running.api.post(ENDPOINT, mistaken.body(hexed(wrong)), query=f"?{QUERY}").code == 40102
    person.sits_at(size, language)
    person.opens(f"{running.url}/sandbox/sign")
    assert person.find(".text .different code").text == "cny_amount=12.50"
    assert person.find(".text .theirs code").text == "cny_amount=12.5"
    assert not person.scrolls_sideways

    theirs = person.find("textarea[name=theirs]")
    theirs.send_keys(mistaken.text.replace("order_type=1", "order_type=2"))
    person.find("form .primary").click()
    person.waits_for(lambda: person.find(".text .theirs code").text == "order_type=2")
    assert not person.scrolls_sideways
    assert person.find("textarea[name=theirs]").get_attribute("value").count("\n") == mistaken.text.count("\n")


@pytest.mark.parametrize(("size", "language"), [(PHONE, "zh-CN,zh"), (DESKTOP, "en-US,en")], ids=["phone", "desktop"])
def test_a_shops_developer_pastes_an_address_and_the_key_into_the_tab_for_epay(size, language, person, running):
    person.sits_at(size, language)
    person.opens(f"{running.url}/sandbox/sign?protocol=api")
    person.find(".protocols a[href$=epay]").click()
    person.waits_for(lambda: person.find(".protocols [aria-current]").get_attribute("href").endswith("epay"))
    fields = {"pid": "7", "money": "12.50", "notify_url": "https://shop.example/notify?a=1", "sitename": "x" * 200}
    sign = digest(f"{text_to_sign(fields)}&key=1234567")
    person.find("[name=body]").send_keys(f"https://pay.example.com/submit.php?{urlencode(fields | {'sign': sign})}")
    person.find("[name=secret]").send_keys("1234567")
    person.find("form .primary").click()
    person.waits_for(lambda: person.find(".text .theirs code").text.endswith("x&"))
    assert person.find("[name=secret]").get_attribute("value") == ""
    assert not person.scrolls_sideways
