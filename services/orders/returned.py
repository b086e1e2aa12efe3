"""The transfer by which money was returned, as an operator enters it: the bank's number and the day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from models.tables.order import Order
from runtime import clock
from runtime.clock import in_china
from services.channels import payment_numbers
from services.errors import N_, OperatorError


@dataclass(frozen=True)
class Returned:
    """A transfer of returned money.

    `reference` is the bank's number, "" without one; `on` the day in China, such as 2026-05-01, None if it is unknown.
    With `shared`, the transfer also returned other money.
    """

    reference: str = ""
    on: str | None = None
    shared: bool = False

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns of an exception that store it."""
        return {"return_reference": self.reference or None, "returned_on": self.on}

    def refuse_second(self, order: Order) -> None:
        """Refuse a number that is recorded already, in the caller's transaction with the locked order.

        Raises:
            OperatorError: it is the number of the order's own payment or payout, even if it is shared; or it is
                recorded for another transfer, and not shared.
        """
        if self.reference and payment_numbers.is_on_record(order, self.reference):
            text = N_(
                "Transaction ID %(reference)s is the payment itself, not its return. Enter the one of the transfer "
                "that returned the money."
            )
            raise OperatorError(text, "reference", reference=self.reference)
        if self.reference and not self.shared:
            payment_numbers.refuse_second(order, self.reference)


UNKNOWN = Returned()


def returned(order: Order, reference: str, day: str, *, shared: bool, is_needed: bool) -> Returned:
    """Return the transfer that an operator entered for money of this order.

    Args:
        day: in China, such as 2026-05-01; empty for today.
        is_needed: the number is the only proof, so it must be given.

    Raises:
        OperatorError: no number or a placeholder, or a day that is not possible.
    """
    reference, today = reference.strip(), in_china(clock.now()).date()
    if is_needed and not reference:
        raise OperatorError(N_("Enter the bank's transaction ID of the transfer."), "reference")
    if reference and not payment_numbers.transaction_id(reference):
        text = N_("%(reference)s is not a transaction ID. Enter the number that the bank's statement has.")
        raise OperatorError(text, "reference", reference=reference)
    try:
        on = date.fromisoformat(day.strip()) if day.strip() else today
    except ValueError:
        raise OperatorError(N_("Enter the day of the transfer, such as 2026-05-01."), "date") from None
    if on > today:
        raise OperatorError(N_("The day of the transfer is in the future."), "date")
    if on < in_china(order.createtime).date():
        raise OperatorError(N_("The day of the transfer is before the day of the order."), "date")
    return Returned(reference, on.isoformat(), shared)
