"""Parse a page of the console: its texts, its rows by column, its forms, its links."""

import re

from tests.pages import Seen


class Form(dict):
    """The fields of one POST form; `url` is its address."""

    url = ""


class Shown(Seen):
    """A page's visible content. `rows` are dictionaries of texts by column; `fields` values by name.

    `links` are addresses by their texts, `sends` those of forms by the texts of their buttons. `forms` are its POST
    forms.
    """

    VOID = Seen.VOID | {"br", "hr", "img"}

    def __init__(self, html):
        assert "&lt;bdi" not in html, "HTML is shown as text"
        self.html, self.fields, self.rows, self.links, self.sends = html, {}, [], {}, {}
        self._cell, self._link, self._sends, self._in_button = None, None, None, False
        self.forms, self._form = [], None
        super().__init__(html)

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        super().handle_starttag(tag, attrs)
        if tag in ("input", "select", "textarea") and "name" in facts:
            self.fields[facts["name"]] = facts.get("value", "")
            self._select = facts["name"]
            is_sent = tag != "select" and (facts.get("type") != "checkbox" or "checked" in facts)
            if is_sent and self._form is not None:
                self._form[facts["name"]] = facts.get("value", "")
        if tag == "option" and "selected" in facts:
            self.fields[self._select] = facts["value"]
        if tag == "tr":
            self.rows.append({})
        if tag == "td" and "data-label" in facts:
            self._cell = facts["data-label"]
            self.rows[-1][self._cell] = ""
        if tag == "a":
            self._link = facts.get("href")
        if tag == "form":
            self._sends = facts.get("action")
            if facts.get("method") == "post":
                self._form = Form()
                self._form.url = facts.get("action", "")
                self.forms.append(self._form)
        if tag == "button":
            self._in_button = True

    def handle_endtag(self, tag):
        super().handle_endtag(tag)
        if tag == "td":
            self._cell = None
        if tag == "a":
            self._link = None
        if tag == "form":
            self._form = None
        if tag == "button":
            self._in_button = False
        if tag == "tr" and not self.rows[-1]:
            self.rows.pop()  # of headings

    def handle_data(self, data):
        super().handle_data(data)
        text = " ".join(data.split())
        if self._cell and text:
            self.rows[-1][self._cell] = f"{self.rows[-1][self._cell]} {text}".strip()
        if self._in_button and text:
            self.sends.setdefault(text, self._sends)
        if self._link and text:
            self.links.setdefault(text, self._link)

    @property
    def actions(self):
        """The forms of actions by their key."""
        return {form["action"]: form for form in self.forms if "action" in form}

    def column(self, label):
        """The texts of one column, from the top."""
        return [row[label] for row in self.rows]


def counted(page):
    """The table of the rows of a statement: each result with its number of rows, and the money in and out."""
    row = r'<tr><th scope="row">([^<]+)</th>' + 3 * r'<td class="money">([^<]+)</td>'
    return {name: tuple(sums) for name, *sums in re.findall(row, page)}
