"""The codes of reasons: each has a text, and an exception names the line of history that opened it."""

from models.tables.order import History, PaymentException
from services.orders.reasons import Why
from tests.services import walks


def test_every_code_has_its_own_name_and_a_text():
    assert [why.value for why in Why] == [why.name.lower() for why in Why]
    assert all(why.template for why in Why)


def test_an_exception_names_the_line_that_opened_it(world, order_details):
    order_no = walks.deposit_too_small(world)
    (opened,) = PaymentException.select(PaymentException, History).join(History)
    assert (opened.history.code, opened.history.args) == (opened.code, opened.args) == ("paid_other_amount", None)
    assert order_details(order_no)["history"][-1]["why"] == "Exception wrong_amount: Paid a different amount"
