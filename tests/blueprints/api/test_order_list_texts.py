"""Finding orders by a part of the merchant's own number, indexed or not yet."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.queries import search
from tests.plans import Heard

MANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CHARACTERS = "aAbBzZ09 äÄßſKéÉ订单𝒳İı%_\\\"'*^-+:(){}[]/.,~#\N{COMBINING ACUTE ACCENT}\N{ZERO WIDTH JOINER}"
NUMBERS = [
    *("AB%c-1", "abXc-2", "A_B_C-3", "a\\b\\c", "订单-第一号", "Äpfel-1", "äpfel-2", 'say "hi"', "it's", "100", "1000"),
    *("a AND b", "NEAR(a b)", "tri*gram", "^start", "a:b", "-minus", "𝒳𝒴𝒵-1", "kelvin", "Straße"),
    "\N{KELVIN SIGN}elvin",
]
SOUGHT = [
    *("ab", "b%c", "_b_", "_", "\\", "\\b\\", "单-第", "ä", "äpf", "ÄPF", "PFEL", '"hi"', '" "', "'s", "t's", "0"),
    *("100", "1000", " AND ", "and", "near(", "*", "*gram", "^st", "a:b", "-mi", "𝒴𝒵-", "𝒳𝒴𝒵", "kel", "elvin", "aße"),
    *("\N{KELVIN SIGN}el", "%", "%%%", "___", "'; --", "NOT", "OR", '"""', "merchant_order_no:a", "nothing"),
]


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 1_000_000, "short_searches": 1_000_000}


def lower(text):
    """A text without the case of its ASCII letters."""
    return "".join(char.lower() if char.isascii() else char for char in text)


def found(api, text, **more):
    """The merchant's own numbers in which the service finds a text, sorted."""
    data = api.listed(merchant_order_no=text, limit=100, **more).data
    assert data["total"] == len(data["list"])
    return sorted(order["merchant_order_no"] for order in data["list"])


@pytest.mark.parametrize(  # how many numbers are in the index, and up to how many of its candidates each is checked
    ("indexed", "rare"), [(0, 2000), (len(NUMBERS) // 2, 0), (len(NUMBERS) // 2, 3), (1000, 0), (1000, 2000)]
)
def test_a_text_is_found_literally_except_for_ascii_case(api, monkeypatch, indexed, rare):
    monkeypatch.setattr(search, "RARE", rare)
    for number in NUMBERS:
        api.buy(merchant_order_no=number)
    search.index_more(indexed)
    for text in SOUGHT:
        assert found(api, text) == sorted(number for number in NUMBERS if lower(text) in lower(number)), text


def test_a_search_finds_one_merchants_orders_of_one_kind(api, other):
    for number in range(8):
        for client, name in ((api, "ours"), (other, "theirs")):
            order_no = client.buy(merchant_order_no=f"{name}-{number}").data["order_no"]
            if number % 2:
                client.play(order_no, "fail")
        if number == 4:
            search.index_more(1000)
    assert found(api, "-3") == ["ours-3"]
    assert found(api, "s-3") == ["ours-3"]
    assert found(other, "ours-") == []
    assert found(api, "ours-", status="cancelled") == [f"ours-{number}" for number in (1, 3, 5, 7)]
    assert found(api, "ours-", status="cancelled", order_type=2) == []
    assert [api.listed(merchant_order_no="ours-", limit=3, page=page).data["total"] for page in (1, 3, 4)] == [8] * 3
    page = api.listed(merchant_order_no="OURS-", limit=3, page=2).data["list"]
    assert [order["merchant_order_no"] for order in page] == ["ours-4", "ours-3", "ours-2"]


@pytest.mark.parametrize("indexed", [0, 1, 1000])
def test_long_texts_that_differ_only_at_their_end_are_distinguished(api, indexed):
    same = "".join(chr(ord("!") + at) for at in range(90)) + "x" * 160
    for end in "AB":
        api.buy(merchant_order_no=same + end)
    search.index_more(indexed)
    assert found(api, same + "A") == [same + "A"]
    assert found(api, same + "b") == [same + "B"]
    assert found(api, same + "C") == []
    assert found(api, same[:-1]) == found(api, same) == [same + "A", same + "B"]


@MANY
@given(
    number=st.text(CHARACTERS, min_size=1, max_size=12),
    start=st.integers(0, 11),
    length=st.integers(1, 12),
    upper=st.booleans(),
    indexed=st.booleans(),
)
def test_every_part_of_every_number_finds_it(api, number, start, length, upper, indexed):
    order_no = api.buy(merchant_order_no=number).data["order_no"]
    if indexed:
        search.index_more(1000)
    part = number[start % len(number) :][:length]
    text = "".join(char.upper() if upper and char.isascii() else char for char in part)
    assert order_no in [order["order_no"] for order in api.listed(merchant_order_no=text, limit=1).data["list"]]


@pytest.mark.sqlite
def test_a_prefix_that_all_numbers_share_is_not_looked_up(api):
    """Its list in the index is as long as the table, and would be read for each search by a whole number."""
    for number in range(20):
        api.buy(merchant_order_no=f"SHOP-{number * 27_919:06}")
    search.index_more(100)
    with Heard() as heard:
        assert api.listed(merchant_order_no="shop-474623").data["total"] == 1
    ((sought, _),) = (values for sql, values in heard.statements.items() if "MATCH" in sql)
    assert "474" in sought
    assert "sho" not in sought
    assert max(len(values) for values in heard.statements.values()) < 20, "orders that it may be are no parameters"
