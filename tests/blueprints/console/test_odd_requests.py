"""Addresses and cookies that no page of the console makes cause no failure and no redirect elsewhere."""

import re

import pytest

LISTS = [
    *("orders", "payouts", "claims"),
    *("exceptions", "callbacks", "entries", "merchants", "channels", "accounts", "audit"),
]
ODD = [
    "before=abc",
    "before=-1",
    f"before={2**70}",
    f"after={2**70}",
    f"page={2**70}&page_size=-1&sort=99&desc=x",
    "flt_since=9999-99",
    "flt_since=0001-01-01",
    "flt_until=9999-12-31",
    "search=%00",
    "search=%FF%FE",
    "jump=1&search=%00",
    f"search={'x' * 10_000}",
    "flt_merchant=%00&flt_channel=%D9%A1",
    "endpoint=x",
    "self=x",
    "_method=POST",
]


@pytest.mark.parametrize("name", LISTS)
def test_any_address_of_a_list_gets_a_response(name, console, export):
    answers = {odd: console.get(f"/console/{name}/?{odd}").status_code for odd in ODD}
    answers |= {f"export?{odd}": export(f"{name}/export?{odd}", buffered=True).status_code for odd in ODD}
    assert {path: status for path, status in answers.items() if status not in (200, 422)} == {}


def test_an_argument_of_the_address_does_not_change_links(console, page, api):
    for _ in range(51):
        api.buy()
    shown = page("orders/?_external=1&_scheme=javascript&_anchor=x&flt_type=buy")
    assert shown.sends["Export as CSV"] == "/console/orders/export?flt_type=buy"
    assert re.fullmatch(r"/console/orders/\?flt_type=buy&before=\d+", shown.links["Older"])
    assert {each.partition("/")[0] for each in shown.addresses} == {"", "#main"}


@pytest.mark.parametrize(
    "path",
    [
        *(f"channel/{2**70}", f"operators/{2**70}/password", f"reconciliation/{2**70}", "merchant/%00", "order/%00"),
        *("statements/?month=9999-12", "statements/?month=0001-01"),
    ],
)
def test_an_impossible_row_is_not_found(path, console):
    assert console.get(f"/console/{path}").status_code == 404


@pytest.mark.parametrize(
    "zone", ["No/Where", "Asia", "", "../../etc/passwd", "/etc/passwd", "x" * 3_000, "é", "UTC\x01"]
)
def test_times_are_utc_for_a_browser_of_unknown_zone(zone, console):
    console.set_cookie("console_zone", zone, path="/console")
    assert 'data-zone="UTC"' in console.get("/console/orders/").text
