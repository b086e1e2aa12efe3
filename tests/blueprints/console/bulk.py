"""Bulk actions of the list of payouts, through their confirmation pages."""

import re

from tests.blueprints.console.reading import Shown


class Bulk(Shown):
    """A page of a bulk action: its hidden rows, and whether it has a form."""

    @property
    def rows_sent(self):
        """The values of the rows in the form, with their seals."""
        return re.findall(r'name="row" value="([^"]+)"', self.html)

    @property
    def sealed(self):
        """The order numbers in the form."""
        return [each.partition(".")[0] for each in self.rows_sent]


def confirmation(client, kind, numbers):
    """The confirmation page of a bulk action on these orders."""
    answer = client.get(f"/console/payouts/{kind}", query_string={"order_no": numbers})
    assert answer.status_code == 200, answer.text
    return Bulk(answer.text)


def confirm(client, kind, page, **fields):
    """Send the form of a confirmation page; return the response."""
    form = {"csrf_token": page.fields["csrf_token"], "row": page.rows_sent, **fields}
    return client.post(f"/console/payouts/{kind}", data=form)
