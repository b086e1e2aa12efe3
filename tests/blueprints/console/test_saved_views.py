"""Saved views: the filters of a list that a person keeps under a name."""

import pytest

from services.console import saved_views


@pytest.fixture
def save(send):
    """`save("orders", "flt_type=sell", "Withdrawals")`: save these filters."""
    return lambda name, query, title, **more: send(f"{name}/views?{query}", name=title, **more)


def views(shown):
    return {name: url for name, url in shown.links.items() if name in ("Withdrawals", "Open <b>")}


def test_filters_are_saved_and_opened_by_their_name(save, page):
    answer = save("orders", "flt_type=sell&flt_since=2026-01-02&before=7", "Withdrawals")
    assert (answer.status_code, answer.location) == (303, "/console/orders/?flt_type=sell&flt_since=2026-01-02")
    assert views(page("orders/")) == {"Withdrawals": "/console/orders/?flt_type=sell&flt_since=2026-01-02"}
    assert not views(page("payouts/")), "a view belongs to one list"


def test_a_view_belongs_to_its_author_who_may_be_a_viewer(save, page, viewer):
    assert save("orders", "flt_type=sell", "Withdrawals", client=viewer).status_code == 303
    assert views(page("orders/", client=viewer))
    assert not views(page("orders/"))


def test_the_same_name_replaces_a_view_and_a_view_can_be_deleted(save, send, page):
    save("orders", "flt_type=sell", "Withdrawals")
    save("orders", "flt_type=sell&flt_status=paid", "Withdrawals")
    query = "flt_status=paid&flt_type=sell"
    assert views(page("orders/")) == {"Withdrawals": f"/console/orders/?{query}"}
    shown = page(f"orders/?{query}")
    assert "Delete this view" in shown.sends
    assert send(f"orders/views/delete?{query}", name="Withdrawals").location == f"/console/orders/?{query}"
    assert not views(page("orders/"))


@pytest.mark.parametrize("title", ["", " ", "x" * 41, "a\u202eb"])
def test_an_invalid_name_is_refused(save, page, title):
    save("orders", "flt_type=sell", title)
    assert "A view's name has 1 to 40 characters." in page("orders/").text


def test_the_number_of_views_is_limited(save, page, monkeypatch):
    monkeypatch.setattr(saved_views, "MOST", 1)
    save("orders", "flt_type=buy", "Withdrawals")
    save("orders", "flt_type=sell", "Open <b>")
    shown = page("orders/")
    assert "at most 1 saved views" in shown.text
    assert list(views(shown)) == ["Withdrawals"]


def test_a_views_name_and_filters_are_escaped(save, page):
    save("orders", "search=%22%3E%3Cb%3E&other=1", "Open <b>")
    shown = page("orders/")
    assert views(shown) == {"Open <b>": "/console/orders/?search=%22%3E%3Cb%3E"}
    assert "Open <b>" not in shown.html
