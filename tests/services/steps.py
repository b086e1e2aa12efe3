"""Steps of an order's walk, by an operator or its channel; each returns the order's number."""


def operate(w, action, order_no, *more):
    """An operator acts by a command."""
    w.flask("order", action, order_no, *more)
    return order_no


def paid_by_hand(w, order_no, amount, exception):
    """An operator records a payment that opens an exception."""
    assert exception in w.flask("order", "paid", order_no, "--amount", amount).output
    return order_no


def report(w, order_no, fen, **facts):
    """The channel reports an amount by notice."""
    assert w.api.notice(order_no, fen, **facts).status == 200
    return order_no


def report_failed(w, order_no):
    """The channel reports by notice that the recorded payment is gone."""
    recorded = w.flask_json("order", "show", order_no)["channel_reference"]
    return report(w, order_no, 10_000, state="failed", reference=recorded)
