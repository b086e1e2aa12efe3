"""Read an HTML page as a user does: its visible text, and the resources that its tags would load or run."""

from html.parser import HTMLParser

CASHIER, STATUS, CLAIM, OPEN, GO, CHOOSE, SIGNED_IN, BACK, QR_IMAGE, LANGUAGE, LOGO = (
    f"/addons/paychannel/pay/{name}"
    for name in (
        *("index", "status", "paid", "open", "go", "choose", "signed-in", "return"),
        *("qr-image", "language", "logo"),
    )
)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Seen(HTMLParser):
    """The content of a page: its state, visible texts, and all addresses and tags."""

    VOID = {"meta", "link", "input", "img"}

    def __init__(self, html):
        super().__init__()
        self.state, self.texts, self.addresses, self.tags, self.inline = None, [], [], [], []
        self._open = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        self.tags.append(tag)
        self.state = facts.get("data-state", self.state)
        self.addresses += [facts[name] for name in ("src", "href", "action") if name in facts]
        self.inline += [name for name in facts if name.startswith("on") or name == "style"]
        if tag not in self.VOID:
            self._open.append((tag, "hidden" in facts or tag in ("script", "style", "title")))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag, "the page is not well formed"

    def handle_data(self, data):
        if data.strip() and not any(hidden for _, hidden in self._open):
            self.texts.append(" ".join(data.split()))

    @property
    def text(self):
        return " ".join(self.texts)
