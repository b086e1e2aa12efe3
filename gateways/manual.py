"""The manual driver: the payer follows written instructions, and an operator confirms by hand."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from gateways.base import METHODS, Driver, Opened, Payment, Payout, Report, State

N_ = str  # marks a text for translation where it is shown

# What the cashier shows, in this order.
LABELS = {"payee": N_("Payee"), "bank": N_("Bank"), "account": N_("Account number"), "note": N_("Note")}


class ManualConfig(Schema):
    """What the payer needs to know. The QR texts are those in the static codes of the payee's own wallet."""

    payee = fields.String(load_default="", validate=validate.Length(max=100))
    bank = fields.String(load_default="", validate=validate.Length(max=100))
    account = fields.String(load_default="", validate=validate.Length(max=100))
    note = fields.String(load_default="", validate=validate.Length(max=300))
    qr_wxpay = fields.String(load_default="", validate=validate.Length(max=500))
    qr_alipay = fields.String(load_default="", validate=validate.Length(max=500))


class ManualDriver(Driver):
    """No upstream: nothing is proven until an operator says so."""

    name = "manual"
    config_schema = ManualConfig
    payout_methods = METHODS
    by_hand = True
    opens_locally = True

    def open_payment(self, payment: Payment) -> Opened:
        lines = tuple((label, self.config[key]) for key, label in LABELS.items() if self.config[key])
        return Opened(qr=self.config.get(f"qr_{payment.method}", ""), lines=lines)

    def query(self, payment: Payment) -> Report:
        return Report(State.OPEN)

    def pay_out(self, payout: Payout) -> Report:
        return Report(State.OPEN)

    def query_payout(self, payout: Payout) -> Report:
        return Report(State.OPEN)
