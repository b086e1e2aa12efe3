"""Statements: a month with a page of its lines, and all lines as CSV."""

from decimal import Decimal

from stand_in import answer

from tillbook_client import StatementDay, StatementLine

MOVEMENTS = {
    **{"deposits_count": 1, "deposits_amount": 10000, "withdrawals_count": 0, "withdrawals_amount": 0},
    **{"refunds_count": 0, "refunds_amount": 0, "exceptions_count": 0, "exceptions_amount": 0},
    **{"adjustments_count": 0, "adjustments_amount": 0, "fees_amount": -60, "change_amount": 9940},
}
LINE = {
    **{"line_no": "a2", "createtime": 1795232400, "kind": "credit", "memo": "", "cny_amount": "100.00"},
    **{"order_no": "202611218899480685472049", "merchant_order_no": "A-1001"},
    **{"fees_amount": -60, "change_amount": 9940, "balance_amount": 1009940},
}
STATEMENT = MOVEMENTS | {
    **{"month": "2026-11", "is_over": False, "total": 1, "limit": 100, "next": ""},
    **{"opening_cny_amount": "10000.00", "opening_amount": 1000000},
    **{"closing_cny_amount": "10099.40", "closing_amount": 1009940, "held_cny_amount": "0.00", "held_amount": 0},
    "days": [MOVEMENTS | {"day": "2026-11-21", "balance_amount": 1009940}],
}


def test_a_statement_is_read_in_its_units(stand_in):
    stand_in.says(lambda: answer(1, STATEMENT | {"list": [LINE], "in_a_later_version": "new"}))
    found = stand_in.client().statement("2026-11")
    assert (found.opening_cny_amount, found.closing_amount) == (Decimal("10000.00"), 1009940)
    assert found.days == (StatementDay(**MOVEMENTS, day="2026-11-21", balance_amount=1009940),)
    assert found.list == (StatementLine(**LINE | {"cny_amount": Decimal("100.00")}),)
    (body,) = stand_in.bodies
    assert (body["month"], body["limit"], body["after"]) == ("2026-11", 100, None)


def test_all_pages_of_lines_are_one_csv(stand_in):
    pages = [STATEMENT | {"csv": "head\r\none\r\n", "next": "a2"}, STATEMENT | {"csv": "two\r\n", "next": ""}]
    stand_in.says(*((lambda page=page: answer(1, page)) for page in pages))
    assert stand_in.client().statement_csv("2026-11") == "head\r\none\r\ntwo\r\n"
    assert [body["after"] for body in stand_in.bodies] == [None, "a2"]
