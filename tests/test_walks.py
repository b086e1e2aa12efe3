"""The main use from end to end: deposits and withdrawals."""


def test_a_deposit_is_paid_credited_and_shown(api, due, balances):
    placed = api.buy("100.00").data
    assert placed["status"] == "pending"
    api.play(placed["order_no"], "success")
    assert api.status(placed["order_no"]) == "completed"
    assert balances() == (1_000_000 + 9_940, 0)


def test_a_withdrawal_is_reserved_approved_paid_out_and_spent(api, flask, due, balances, ahead):
    placed = api.sell("50.00").data
    assert balances() == (1_000_000 - 5_010, 5_010)
    flask("order", "accept", placed["order_no"])
    due.orders()
    ahead(10)
    due.orders()
    assert api.status(placed["order_no"]) == "completed"
    assert balances() == (1_000_000 - 5_010, 0)


def test_a_rejected_withdrawal_returns_its_reserve(api, flask, balances):
    placed = api.sell("50.00").data
    flask("order", "reject", placed["order_no"], "--reason", "wrong card")
    assert api.status(placed["order_no"]) == "cancelled"
    assert balances() == (1_000_000, 0)


def test_the_running_service_finishes_on_sigterm(service):
    assert service.api.buy().code == 1
    assert service.stop() == 0
