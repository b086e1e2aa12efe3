"""The possible paths of an order, through public interfaces; each returns the order's number.

`w` is the fixture `world`: api, http, flask, flask_json, later.
"""

SANDBOX, MANUAL = 2, 3
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def claim(w, order_no):
    """The payer claims the payment on the payment page."""
    return w.http("POST", "/addons/paychannel/pay/paid", f"order_no={order_no}".encode(), FORM)


def buy_pending(w):
    return w.api.buy().data["order_no"]


def buy_claimed(w):
    order_no = w.api.buy(channel=MANUAL).data["order_no"]
    assert claim(w, order_no).status == 303
    return order_no


def buy_claimed_and_proven(w):
    order_no = buy_claimed(w)
    w.flask("order", "paid", order_no)
    return order_no


def buy_claimed_and_dismissed(w):
    order_no = buy_claimed(w)
    w.flask("order", "not-received", order_no)
    return order_no


def buy_paid(w):
    order_no = buy_pending(w)
    w.api.play(order_no, "success")
    return order_no


def buy_confirmed(w):
    w.flask("channel", "set", SANDBOX, "--settlement-days", 1)
    return buy_paid(w)


def buy_found_by_asking(w):
    order_no = buy_pending(w)
    w.api.play(order_no, "silent")
    w.later(60)
    return order_no


def buy_expired(w):
    order_no = buy_pending(w)
    w.later(900)
    return order_no


def buy_refused(w):
    w.flask("channel", "set", SANDBOX, "--config", "open=refuse")
    assert w.api.buy().code == 50201
    return w.flask_json("order", "list")[0]["order_no"]


def buy_failed(w):
    order_no = buy_pending(w)
    w.api.play(order_no, "fail")
    return order_no


def sell_pending(w, channel=SANDBOX):
    return w.api.sell("50.00", channel).data["order_no"]


def sell_accepted(w, channel=SANDBOX):
    order_no = sell_pending(w, channel)
    w.flask("order", "accept", order_no)
    return order_no


def sell_accepted_by_rule(w):
    w.flask("channel", "set", SANDBOX, "--auto-accept-max", "50.00")
    order_no = sell_pending(w)
    w.later(0)
    return order_no


def sell_paid_out(w):
    order_no = sell_accepted(w)
    w.later(5, times=2)
    return order_no


def sell_paid_by_hand(w):
    order_no = sell_accepted(w, MANUAL)
    w.flask("order", "paid", order_no)
    return order_no


def sell_failed(w):
    order_no = sell_accepted(w)
    w.api.play(order_no, "fail")
    w.later(5, times=2)
    return order_no


def sell_rejected(w):
    order_no = sell_pending(w)
    w.flask("order", "reject", order_no, "--reason", "no")
    return order_no


def sell_given_up_by_hand(w):
    order_no = sell_accepted(w, MANUAL)
    w.flask("order", "reject", order_no, "--reason", "no such card")
    return order_no


def played(outcome):
    """A deposit of 100 yuan with this outcome in the sandbox."""

    def walk(w):
        order_no = w.api.buy().data["order_no"]
        w.api.play(order_no, outcome)
        return order_no

    walk.__name__ = f"deposit {outcome}"
    return walk


def deposit_too_small(w):
    order_no = w.api.buy().data["order_no"]
    assert w.api.notice(order_no, 9_999).status == 200
    return order_no


def deposit_late_and_of_half(w):
    order_no = w.api.buy().data["order_no"]
    w.later(900)
    assert w.api.notice(order_no, 5_000).status == 200
    return order_no


def deposit_late_by_hand(w):
    order_no = w.api.buy(channel=MANUAL).data["order_no"]
    w.later(900)
    assert "late_payment" in w.flask("order", "paid", order_no).output
    return order_no


def deposit_paid_twice(w):
    order_no = played("success")(w)
    assert w.api.notice(order_no, 10_000, reference="R-2").status == 200
    return order_no


def deposit_wrong_by_hand(w):
    order_no = w.api.buy(channel=MANUAL).data["order_no"]
    assert "wrong_amount" in w.flask("order", "paid", order_no, "--amount", "99.00").output
    return order_no


def payout_of_wrong_amount(w):
    order_no = w.api.sell("50.00").data["order_no"]
    w.api.play(order_no, "wrong_amount")
    w.flask("order", "accept", order_no)
    w.later(5, times=2)
    return order_no


def payout_wrong_by_hand(w):
    order_no = w.api.sell("50.00", MANUAL).data["order_no"]
    w.flask("order", "accept", order_no)
    assert "payout_conflict" in w.flask("order", "paid", order_no, "--amount", "40.00").output
    return order_no


def payout_although_rejected(w):
    order_no = w.api.sell("50.00", MANUAL).data["order_no"]
    w.flask("order", "reject", order_no, "--reason", "no")
    assert "payout_conflict" in w.flask("order", "paid", order_no).output
    return order_no


def payout_made_twice(w):
    order_no = sell_paid_out(w)
    assert w.api.notice(order_no, 5_000, reference="R-2").status == 200
    return order_no


def payout_failed_after_all(w):
    order_no = sell_paid_out(w)
    assert w.api.notice(order_no, 5_000, state="failed", reference="R-2").status == 200
    return order_no


def deposit_reversed_before_its_credit(w):
    order_no = buy_confirmed(w)
    reference = w.flask_json("order", "show", order_no)["channel_reference"]
    assert w.api.notice(order_no, 10_000, state="failed", reference=reference).status == 200
    return order_no


def deposit_reversed_after_its_credit(w):
    order_no = buy_paid(w)
    reference = w.flask_json("order", "show", order_no)["channel_reference"]
    assert w.api.notice(order_no, 10_000, state="failed", reference=reference).status == 200
    return order_no


def deposit_of_no_amount(w):
    order_no = buy_pending(w)
    assert w.api.notice(order_no, 0).status == 200
    return order_no


def payout_before_it_was_accepted(w):
    order_no = sell_pending(w)
    assert w.api.notice(order_no, 5_000).status == 200
    return order_no


def payout_of_wrong_amount_although_rejected(w):
    order_no = sell_rejected(w)
    assert w.api.notice(order_no, 4_000).status == 200
    return order_no


def sell_handed_over(w):
    order_no = sell_accepted(w)
    w.later(0)
    return order_no


def deposit_claimed_and_wrong(w):
    order_no = buy_claimed(w)
    w.flask("order", "paid", order_no, "--amount", "99.00", "--reference", f"BANK-{order_no}")
    return order_no


def deposit_claimed_wrong_and_credited(w):
    order_no = deposit_claimed_and_wrong(w)
    w.flask("order", "settle", order_no, "--credit")
    return order_no


def deposit_claimed_and_paid_more(w):
    order_no = buy_claimed(w)
    w.flask("order", "paid", order_no, "--amount", "101.00", "--reference", f"BANK-{order_no}")
    return order_no
