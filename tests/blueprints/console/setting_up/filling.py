"""Fill in a form of the console as a browser does: unchanged values are sent back."""

from html.parser import HTMLParser
from io import BytesIO

from werkzeug.datastructures import MultiDict


class Form:
    """One form of a page: its address, and the values that a browser would send."""

    def __init__(self, action):
        self.action, self.sent, self.boxes = action, MultiDict(), {}

    def fill(self, typed):
        """Type, choose, tick and untick: True and False tick one box, a list those of several, bytes are a file."""
        for name, value in typed.items():
            assert name in self.sent or name in self.boxes, f"{name} is not on the page"
            self.sent.poplist(name)
            if isinstance(value, bool):
                value = self.boxes[name] if value else []
            for each in value if isinstance(value, list) else [value]:
                self.sent.add(name, (BytesIO(each), f"{name}.pem") if isinstance(each, bytes) else str(each))
        return self.sent


class Page(HTMLParser):
    """All forms of a page, and its messages about invalid fields."""

    def __init__(self, html):
        super().__init__()
        self.forms, self.problems = [], {}
        self._select, self._area, self._problem = None, None, None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if tag == "form":
            self.forms.append(Form(facts.get("action", "")))
        name, form = facts.get("name"), self.forms[-1] if self.forms else None
        if tag == "input" and name:
            self._input(form, name, facts)
        if tag == "select":
            self._select = name
        if tag == "option" and self._select and ("selected" in facts or self._select not in form.sent):
            form.sent.setlist(self._select, [facts["value"]])
        if tag == "textarea":
            self._area = name
            form.sent[name] = ""
        if tag == "p" and facts.get("class") == "problem":
            self._problem = facts.get("id", "").removesuffix("-hint")

    @staticmethod
    def _input(form, name, facts):
        if facts.get("type") in ("checkbox", "radio"):
            form.boxes.setdefault(name, []).append(facts["value"])
            if "checked" in facts:
                form.sent.add(name, facts["value"])
        elif facts.get("type") == "file":
            form.boxes[name] = []
        else:
            form.sent.add(name, facts.get("value", ""))

    def handle_data(self, data):
        if self._area:
            form = self.forms[-1]
            form.sent[self._area] = (form.sent[self._area] + data).removeprefix("\r\n").removeprefix("\n")
        if self._problem is not None:
            self.problems[self._problem] = data.strip()

    def handle_endtag(self, tag):
        if tag == "textarea":
            self._area = None
        if tag == "select":
            self._select = None
        if tag == "p":
            self._problem = None

    def form(self, ending=""):
        """The form with this end of its address; without it, the page's own."""
        fits = [form for form in self.forms if form.action.endswith(ending) and bool(form.action) == bool(ending)]
        assert len(fits) == 1, [form.action for form in self.forms]
        return fits[0]
