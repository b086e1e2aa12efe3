"""Moving all merchants of a channel to another one: shown first, then confirmed."""

import pytest

from tests.blueprints.console.acting import token_of
from tests.blueprints.console.setting_up.filling import Page


@pytest.fixture(autouse=True)
def _same_methods(flask):
    flask("channel", "set", "4", "--pay-method", "wxpay,alipay,bank")


@pytest.fixture
def confirm(console):
    """`confirm("channel/2/move?to=4")`: send the form that a page shows, once or again."""

    def shown(path):
        forms = Page(console.get(f"/console/{path}").text).forms
        return next(form for form in forms if "mark" in form.sent).sent

    def send(path, form=None):
        return console.post("/console/channel/2/move", data=form or shown(path))

    send.shown = shown
    return send


MOVE, KEEP = "channel/2/move?to=4", "channel/2/move?to=4&keep=yes"


def test_the_page_shows_the_merchants_and_what_changes_for_them(flask, page):
    flask("epay", "enable", "demo", "--host", "shop.example", "--type", "alipay=2", "--type", "bank=3")
    flask("channel", "set", "4", "--pay-method", "wxpay,alipay", "--max", "500", "--settlement-days", "1")
    chosen = page("channel/2/move").text
    assert ("Sandbox D" in chosen, "Move 2 merchants" in chosen, "Settings that differ" in chosen) == (
        True,
        False,
        False,
    )
    shown = page(MOVE)
    settings = {row["Setting"]: (row["Sandbox B"], row["Sandbox D"]) for row in shown.rows if "Setting" in row}
    assert settings["Payment methods of deposits"] == (
        "WeChat Pay, Alipay, Bank transfer",
        "WeChat Pay, Alipay without Bank transfer",
    )
    assert settings["Order amounts (¥)"] == ("0.01 to 1,000,000.00", "0.01 to 500.00")
    assert settings["Settlement delay of deposits (T+N)"] == ("0", "1")
    assert settings["Channel fee on withdrawals (paid by the merchant)"] == ("-0.10 %", "0.00 %")
    demo, other = [row for row in shown.rows if "Epay gateway" in row]
    assert demo["Channels"] == "gets Sandbox D loses Sandbox B"
    assert demo["Epay gateway"] == "alipay: Sandbox B → Sandbox D"
    assert other["Channels"] == "has Sandbox D already loses Sandbox B"
    assert "Move 2 merchants" in shown.text


def test_a_confirmed_move_takes_effect_and_is_recorded(confirm, merchants_of, page, audited, api):
    order_no = api.buy(channel=2).data["order_no"]
    assert confirm(MOVE).status_code == 303
    assert (merchants_of(2), merchants_of(4)) == ([""], ["demo", "other"])
    assert "2 merchants now use Sandbox D." in page("channel/2").text
    assert audited()[-1] == "demo move merchants channel 2 channel: 4; merchant: demo, other"
    assert "moved the merchants of channel Sandbox B to another channel" in page("audit/").text
    assert (api.buy(channel=4).code, api.buy(channel=2).code) == (1, 40403)
    api.play(order_no, "success")
    assert api.status(order_no) == "completed"


def test_merchants_can_keep_the_channel(confirm, merchants_of, audited):
    assert confirm(KEEP).status_code == 303
    assert (merchants_of(2), merchants_of(4)) == (["demo", "other"], ["demo", "other"])
    assert audited()[-1] == "demo share merchants channel 2 channel: 4; merchant: demo, other"


CHANGES = [
    ("channel", "unlink", "2", "other"),
    ("channel", "link", "4", "demo"),
    ("channel", "set", "4", "--settlement-days", "1"),
    ("epay", "enable", "demo", "--host", "shop.example", "--type", "alipay=2"),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: " ".join(change[:3]))
def test_a_move_that_would_change_something_else_than_shown_is_shown_again(flask, confirm, merchants_of, change):
    form = confirm.shown(MOVE)
    flask(*change)
    before = merchants_of(2), merchants_of(4)
    answer = confirm(MOVE, form)
    assert answer.status_code == 422
    assert "changed in the meantime" in answer.text
    assert (merchants_of(2), merchants_of(4)) == before
    again = next(form for form in Page(answer.text).forms if "mark" in form.sent)
    assert confirm(MOVE, again.sent).status_code == 303
    assert merchants_of(2) == [""]


def test_a_form_that_is_sent_twice_moves_once(confirm, merchants_of):
    form = confirm.shown(MOVE)
    assert [confirm(MOVE, form).status_code for _ in range(2)] == [303, 422]
    assert merchants_of(4) == ["demo", "other"]


def test_a_move_to_a_channel_without_payments_is_refused(flask, page, merchants_of):
    flask("channel", "add", "--category", "gateway_b", "--driver", "group", "--name", "Empty")
    shown = page("channel/2/move?to=5", status=422)
    assert "Payers cannot pay through channel 5." in shown.text
    flask("channel", "set", "4", "--disabled")
    assert "Sandbox D" not in page("channel/2/move").text
    for target in ("4", "2", "99", "x", ""):
        assert "Move 2 merchants" not in page(f"channel/2/move?to={target}").text
    page("channel/99/move", status=404)
    assert merchants_of(2) == ["demo", "other"]


def test_only_administrators_move_merchants(flask, sign_in, page, merchants_of, confirm):
    form = confirm.shown(MOVE)
    for role in ("viewer", "operator"):
        flask("operator", "set", "viewer", "--role", role)
        client = sign_in("viewer")
        assert client.get(f"/console/{MOVE}").status_code == 403
        form["csrf_token"] = token_of(client)
        assert client.post("/console/channel/2/move", data=form).status_code == 403
        assert "Move merchants" not in page("channel/2", client=client).text
    assert "Move merchants" in page("channel/2").text
    assert merchants_of(2) == ["demo", "other"]
