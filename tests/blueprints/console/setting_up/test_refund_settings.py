"""A merchant's settings of refunds: whether it can refund, up to which amount, and which fee goes back."""

from models.tables.merchant import Merchant
from tests.blueprints.console.acting import main_form


def test_they_are_changed_and_the_audit_log_has_the_old_and_the_new_values(console, page):
    _, fields = main_form(console.get("/console/merchant/demo").text)
    shown = page("merchant/demo").fields
    form = fields | {name: shown[name] for name in ("refund_mode", "refund_fees")}
    assert (form["refund_mode"], form["refund_auto_max"], form["refund_fees"]) == ("off", ["0.00"], "keep")
    given = {"refund_mode": "automatic", "refund_auto_max": "50.00", "refund_fees": "proportional"}
    answer = console.post("/console/merchant/demo", data=form | given)
    assert answer.status_code == 303
    row = Merchant.get(Merchant.key == "demo")
    assert (row.refund_mode, row.refund_auto_max, row.refund_fees) == ("automatic", 5_000, "proportional")
    entry = page("audit/").rows[0]
    assert entry["Event"].startswith("demo changed merchant")
    assert entry["Details"].endswith(
        "Refunds by the merchant: Off → Automatic up to an amount; Maximum of an automatic refund: 0.00 ¥ → 50.00 ¥; "
        "Fee of a refunded deposit: Keep the fee → Return the fee in proportion"
    )


def test_wrong_values_change_nothing(console, page):
    shown = page("merchant/demo")
    _, fields = main_form(shown.html)
    form = fields | {name: shown.fields[name] for name in ("refund_mode", "refund_fees")}
    for wrong in ({"refund_mode": "always"}, {"refund_fees": "half"}, {"refund_auto_max": "-1"}):
        assert console.post("/console/merchant/demo", data=form | wrong).status_code == 422, wrong
    assert Merchant.get(Merchant.key == "demo").refund_mode == "off"
