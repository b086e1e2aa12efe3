"""The manual driver: the payer follows written instructions, and an operator confirms manually."""

from __future__ import annotations

from collections.abc import Mapping

from marshmallow import Schema, fields, validate

from gateways.base import METHODS, Driver, Opened, Payment, Payout, RefundRequest, Report, State
from gateways.config import texts
from runtime.texts import N_

# The payment page shows them in this order.
LABELS = {"payee": N_("Payee"), "bank": N_("Bank"), "account": N_("Account number")}
NUMBER = "{order_no}"  # in the note: the order's number, which the payer can copy
# By method: the config fields of which one must say where the payer sends the money, and what is missing without it.
NEEDED = {
    "wxpay": (("qr_wxpay",), N_("No QR code. Upload its image.")),
    "alipay": (("qr_alipay", "account"), N_("No QR code and no account number. Upload the image or enter the number.")),
    "bank": (("account",), N_("No account number. Enter it or upload the image of a QR code.")),
}


def _shown(most: int, label: str, hint: str = "", more: bool = False) -> fields.String:
    return fields.String(load_default="", validate=validate.Length(max=most), metadata=texts(label, hint, more=more))


class ManualConfig(Schema):
    """The details for the payer. The QR texts are those of the static codes of the payee's wallet."""

    payee = _shown(100, N_("Payee"), N_("The account holder. Shown to payers on the payment page."))
    bank = _shown(100, N_("Bank"))
    account = _shown(100, N_("Account number"))
    note = _shown(
        300,
        N_("Note"),
        N_("What the payer must enter as the note of the transfer. {order_no} stands for the order number."),
    )
    qr_wxpay = _shown(
        500,
        N_("WeChat QR code text"),
        N_("The text encoded in your own static WeChat QR code. An uploaded image has priority."),
        more=True,
    )
    qr_alipay = _shown(
        500,
        N_("Alipay QR code text"),
        N_("The text encoded in your own static Alipay QR code. An uploaded image has priority."),
        more=True,
    )


class ManualDriver(Driver):
    """No upstream: only an operator's confirmation proves a payment."""

    name = "manual"
    title = N_("Manual")
    about = N_("Payers transfer to your own account. You confirm each payment and send payouts yourself.")
    config_schema = ManualConfig
    payout_methods = METHODS
    refunds = True
    by_hand = True
    opens_locally = True

    def unusable_methods(self) -> Mapping[str, str]:
        return {
            method: why for method, (fields, why) in NEEDED.items() if not any(self.config[name] for name in fields)
        }

    def open_payment(self, payment: Payment) -> Opened:
        lines = tuple((label, self.config[key]) for key, label in LABELS.items() if self.config[key])
        note = self.config["note"].replace(NUMBER, payment.order_no)
        return Opened(qr=self.config.get(f"qr_{payment.method}", ""), lines=lines, instructions=note)

    def query(self, payment: Payment) -> Report:
        return Report(State.OPEN)

    def pay_out(self, payout: Payout) -> Report:
        return Report(State.OPEN)

    def query_payout(self, payout: Payout) -> Report:
        return Report(State.OPEN)

    def refund(self, request: RefundRequest) -> Report:
        return Report(State.OPEN)

    def query_refund(self, request: RefundRequest) -> Report:
        return Report(State.OPEN)
