"""The possible paths of an order, through public interfaces; each returns the order's number.

`w` is the fixture `world`: api, http, flask, flask_json, later.
"""

from tests.services import steps

SANDBOX, MANUAL = 2, 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def claim(w, order_no):
    """The payer claims the payment on the payment page."""
    return w.http("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), FORM)


# Deposits of 100 yuan


def buy_pending(w):
    return w.api.buy().data["order_no"]


def buy_claimed(w):
    order_no = w.api.buy(channel=MANUAL).data["order_no"]
    assert claim(w, order_no).status == 303
    return order_no


def buy_claimed_and_proven(w):
    return steps.operate(w, "paid", buy_claimed(w))


def buy_claimed_and_dismissed(w):
    return steps.operate(w, "not-received", buy_claimed(w))


def played(outcome):
    """A deposit with this outcome in the sandbox."""

    def walk(w):
        order_no = buy_pending(w)
        w.api.play(order_no, outcome)
        return order_no

    walk.__name__ = f"deposit {outcome}"
    return walk


def buy_paid(w):
    return played("success")(w)


def buy_confirmed(w):
    w.flask("channel", "set", SANDBOX, "--settlement-days", 1)
    return buy_paid(w)


def buy_found_by_asking(w):
    order_no = played("silent")(w)
    w.later(60)
    return order_no


def buy_expired(w, channel=SANDBOX):
    order_no = w.api.buy(channel=channel).data["order_no"]
    w.later(900)
    return order_no


def buy_refused(w):
    w.flask("channel", "set", SANDBOX, "--config", "open=refuse")
    assert w.api.buy().code == 50201
    return w.flask_json("order", "list")[0]["order_no"]


def buy_failed(w):
    return played("fail")(w)


def deposit_too_small(w):
    return steps.report(w, buy_pending(w), 9_999)


def deposit_of_no_amount(w):
    return steps.report(w, buy_pending(w), 0)


def deposit_late_and_of_half(w):
    return steps.report(w, buy_expired(w), 5_000)


def deposit_late_by_hand(w):
    return steps.paid_by_hand(w, buy_expired(w, MANUAL), "100.00", "late_payment")


def deposit_paid_twice(w):
    return steps.report(w, buy_paid(w), 10_000, reference="R-2")


def deposit_wrong_by_hand(w):
    return steps.paid_by_hand(w, w.api.buy(channel=MANUAL).data["order_no"], "99.00", "wrong_amount")


def deposit_reversed_before_its_credit(w):
    return steps.report_failed(w, buy_confirmed(w))


def deposit_reversed_after_its_credit(w):
    return steps.report_failed(w, buy_paid(w))


def deposit_claimed_and_wrong(w):
    order_no = buy_claimed(w)
    return steps.operate(w, "paid", order_no, "--amount", "99.00", "--reference", f"BANK-{order_no}")


def deposit_claimed_wrong_and_credited(w):
    return steps.operate(w, "settle", deposit_claimed_and_wrong(w), "--credit")


def deposit_claimed_and_paid_more(w):
    order_no = buy_claimed(w)
    return steps.operate(w, "paid", order_no, "--amount", "101.00", "--reference", f"BANK-{order_no}")


# Withdrawals of 50 yuan


def sell_pending(w, channel=SANDBOX):
    return w.api.sell("50.00", channel).data["order_no"]


def sell_accepted(w, channel=SANDBOX):
    return steps.operate(w, "accept", sell_pending(w, channel))


def sell_accepted_by_rule(w):
    w.flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = sell_pending(w)
    w.later(0)
    return order_no


def sell_handed_over(w):
    order_no = sell_accepted(w)
    w.later(0)
    return order_no


def sell_paid_out(w, outcome=""):
    order_no = sell_pending(w)
    if outcome:
        w.api.play(order_no, outcome)
    steps.operate(w, "accept", order_no)
    w.later(5, times=2)
    return order_no


def sell_failed(w):
    return sell_paid_out(w, "fail")


def sell_paid_by_hand(w):
    return steps.operate(w, "paid", sell_accepted(w, MANUAL))


def sell_rejected(w, channel=SANDBOX):
    return steps.operate(w, "reject", sell_pending(w, channel), "--reason", "no")


def sell_given_up_by_hand(w):
    return steps.operate(w, "reject", sell_accepted(w, MANUAL), "--reason", "no such card")


def payout_before_it_was_accepted(w):
    return steps.report(w, sell_pending(w), 5_000)


def payout_of_wrong_amount(w):
    return sell_paid_out(w, "wrong_amount")


def payout_wrong_by_hand(w):
    return steps.paid_by_hand(w, sell_accepted(w, MANUAL), "40.00", "payout_conflict")


def payout_although_rejected(w):
    return steps.paid_by_hand(w, sell_rejected(w, MANUAL), "50.00", "payout_conflict")


def payout_of_wrong_amount_although_rejected(w):
    return steps.report(w, sell_rejected(w), 4_000)


def payout_made_twice(w):
    return steps.report(w, sell_paid_out(w), 5_000, reference="R-2")


def payout_failed_after_all(w):
    return steps.report(w, sell_paid_out(w), 5_000, state="failed", reference="R-2")
