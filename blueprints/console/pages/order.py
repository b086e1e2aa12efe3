"""The page of one order: its whole story, what can be done now, and the values that only an operator may see."""

from __future__ import annotations

from typing import Any

from flask import abort, flash, redirect, request, url_for
from flask_admin import expose

from blueprints.console import access, action_labels, labels, order_labels
from blueprints.console.forms import told
from blueprints.console.layout import Page
from models.tables.order import Order
from runtime import current
from schemas.views import hundredths
from services.channels.calls import driver_of
from services.console import available_actions, perform, timeline
from services.console import timeline as revealing
from services.errors import OperatorError
from services.security import sandbox_guard, second_operator

# What templates say things with.
WORDS = {"words": labels, "own": order_labels, "text": order_labels.text, "said": action_labels.said}


def found(order_no: str) -> Order:
    """The order. Raises NotFound."""
    try:
        return timeline.find(order_no)
    except OperatorError:
        abort(404)


def _given() -> perform.Given:
    return perform.Given(**{name: request.form.get(name, "") for name in ("reason", "amount", "reference", "shared")})


def is_large_payout(order_no: str) -> bool:
    """Return whether the form pays out more than `confirm_above`. Raises NotFound."""
    limit = current().settings.confirm_above
    return bool(limit) and perform.payout(found(order_no), request.form.get("action", ""), _given()) > limit


def act_on(order: Order) -> None:
    """Do what the form says, and flash what came of it, or why nothing did."""
    key, seal = request.form.get("action", ""), request.form.get("seal", "")
    try:
        action, result = perform.perform(order, key, seal, _given(), access.actor())
    except OperatorError as refusal:
        flash(told(refusal), "bad")
    else:
        flash(action_labels.done(action, result, timeline.find(order.order_no)), "good")


class OrderPage(Page):
    """One order."""

    @expose("/")
    def index(self) -> Any:
        """There is no page about no order."""
        return redirect(url_for("orders.index_view"))

    @expose("/<order_no>")
    def show(self, order_no: str) -> str:
        """The whole story, sensitive values masked."""
        order = found(order_no)
        return self._page(order, revealing.masked(order))

    @expose("/<order_no>/reveal")
    def hidden_again(self, order_no: str) -> Any:
        """Revealed values are shown once."""
        return redirect(url_for(".show", order_no=order_no))

    @expose("/<order_no>/reveal", methods=["POST"])
    def reveal(self, order_no: str) -> str:
        """The same page with the sensitive values in full, this once."""
        order = found(order_no)
        return self._page(order, revealing.reveal(order, access.actor()), revealed=True)

    @expose("/<order_no>/act", methods=["POST"])
    def act(self, order_no: str) -> Any:
        """Do one of the possible actions."""
        act_on(found(order_no))
        return redirect(url_for(".show", order_no=order_no), 303)

    def _page(self, order: Order, sensitive: dict[str, str], revealed: bool = False) -> str:
        its_story = timeline.order_timeline(order)
        possible = available_actions.possible(order)
        return self.render(
            "console/order.html",
            **WORDS,
            **{"order": order, "story": its_story},
            **{"sensitive": sensitive, "revealed": revealed, "account": revealing.account_ending(order)},
            **{"actions": possible, "decisions": [action for action in possible if action.exception]},
            **{"payout_request": second_operator.waiting(order), "withheld": sandbox_guard.withholds(order)},
            **{"by_hand": driver_of(order.channel).by_hand, "plain_amount": hundredths(order.amount)},
        )


def views() -> list[Any]:
    """The page, which stands in no menu."""
    return [OrderPage(endpoint="order", url="/order")]
