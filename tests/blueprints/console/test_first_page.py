"""Signing in leads to the console's first page, for either role."""


def test_an_operator_and_a_viewer_both_see_the_first_page(page, console, viewer):
    for client in (console, viewer):
        assert "Overview" in page(client=client).text


def test_a_viewers_forms_are_refused(send, viewer):
    assert send("orders/", client=viewer).status_code == 403
