"""Parts of the overview, and the orders behind its links."""

import re
from datetime import datetime
from html import unescape
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

from models.db.base import database
from tests.support import words


def _text(html):
    return words(unescape(re.sub(r"<[^>]+>", " ", html)))


def _element(shown, element, end):
    """The text of the element with this id, None without it."""
    found = re.search(rf'id="{element}"[^>]*>(.*?)</{end}>', shown.html, re.DOTALL)
    return found and _text(found[1])


def queue(shown, name):
    """The text of a queue's card, None without one."""
    return _element(shown, f"queue-{name}", "li")


def figure(shown, name):
    """The text of a key figure."""
    return _element(shown, f"figure-{name}", "li")


def figures(shown):
    """The text of each key figure, by name."""
    return {name: figure(shown, name) for name in ("deposits", "withdrawals", "income", "rate", "orders")}


def alerts(shown):
    """The severity and the text of the alerts above the queues, None without any."""
    found = re.search(r'<section class="verdict (\w+)".*?</section>', shown.html, re.DOTALL)
    return found and (found[1], _text(found[0]))


def quiet(shown):
    """The line about queues without anything to do."""
    (line,) = re.findall(r"<p[^>]*>(?:(?!</p>).)*Nothing to do.*?</p>", shown.html, re.DOTALL)
    return _text(line)


def card(shown, title):
    """The text of another card."""
    found = re.search(rf"<h2[^>]*>(?:<a[^>]*>)?{re.escape(title)}.*?</section>", shown.html, re.DOTALL)
    assert found, title
    return _text(found[0])


def by_slot(shown):
    """The rows of the table that are not empty: day or hour, in, out, orders."""
    rows = [row for row in shown.rows if "In" in row and row["Orders created"] != "0"]
    return [
        tuple(value.removesuffix(" (today so far)").removesuffix(" (this hour so far)") for value in row.values())
        for row in rows
    ]


def behind(link):
    """The filters of a linked list, with the type as in orders."""
    address = urlsplit(link.replace("&amp;", "&"))
    assert address.path == "/console/orders/"
    filters = {name.removeprefix("flt_"): value for name, value in parse_qsl(address.query)}
    return filters | ({"type": {"buy": "1", "sell": "2"}[filters["type"]]} if "type" in filters else {})


def counted(filters, zone="UTC"):
    """The number of orders in a list with these filters, and their amount, from all rows."""

    def moment(text, last):
        at = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()
        return at + 59 if last else at

    columns = {"type": "order_type", "status": "status", "channel": "channel_id", "method": "payment_method"}
    names = [*columns.values(), "createtime", "amount"]
    found = database.execute_sql(f'SELECT {", ".join(names)} FROM "order"').fetchall()
    rows = [dict(zip(names, row, strict=True)) for row in found]
    if "since" in filters:
        since, until = moment(filters["since"], False), moment(filters["until"], True)
        rows = [row for row in rows if since <= row["createtime"] <= until]
    for name, column in columns.items():
        if name in filters:
            rows = [row for row in rows if str(row[column]) == filters[name]]
    return len(rows), sum(row["amount"] for row in rows)


def assert_links_agree(shown, zone="UTC", least=25):
    """Check that each number with a link to orders is their number or their amount."""
    found = re.findall(r'<a (?:class="\w+" )?href="(/console/orders/\?[^"]+)"[^>]*>([\d,.]+)</a>', shown.html)
    for link, number in found:
        count, amount = counted(behind(link), zone)
        text = number.replace(",", "")
        assert text == (f"{amount / 100:.2f}" if "." in text else str(count)), link
    assert len(found) >= least
