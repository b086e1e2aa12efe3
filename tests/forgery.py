"""Signed requests and the many ways to change them, for fuzz tests of the signature check."""

import itertools
import json
import unicodedata
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from hypothesis import strategies as st

from tests.support import ENDPOINTS

AUTH = ("api_key", "timestamp", "nonce", "signature")


class Number(str):
    """A number, as its text in the JSON."""


class Twice(dict):
    """An object that contains a name twice in its text."""


def written(value):
    """JSON text."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        pairs = [f"{json.dumps(name)}:{written(item)}" for name, item in value.items()]
        return "{" + ",".join([*pairs, *pairs[:1]] if isinstance(value, Twice) else pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


@dataclass(frozen=True)
class Sent:
    """A request: its address, and its values in the body and query string."""

    endpoint: str
    body: dict
    query: dict

    def meaning(self):
        """The meaning of a request by the contract: names, values, structure, without the signature.

        A number is its text; null and "" are absent. The values that sign getPayChannels count in either place.
        """
        own = [
            {name: item for name, item in meant(part).items() if name not in AUTH} for part in (self.body, self.query)
        ]
        source = meant(self.query) | meant(self.body) if self.endpoint == "getPayChannels" else meant(self.body)
        return self.endpoint, own, [source.get(name) for name in AUTH[:3]]

    def go(self, http):
        """Send the request."""
        query = "?" + urlencode(self.query) if self.query else ""
        headers = {"Content-Type": "application/json"}
        return http("POST", f"/merchant/{self.endpoint}{query}", written(self.body).encode(), headers)


def meant(value):
    """The meaning of a value."""
    if isinstance(value, dict):
        return {name: meant(item) for name, item in value.items() if item is not None and item != ""}
    if isinstance(value, list):
        return [meant(item) for item in value]
    return written(value) if isinstance(value, bool) else value and str(value)


# Changes. Each takes `draw` and a Sent and returns a Sent.


def places(value, before=()):
    """The path and the item of each name in nested objects."""
    for name, item in value.items():
        yield (*before, name), item
        if isinstance(item, dict):
            yield from places(item, (*before, name))


def put(value, path, item):
    """A copy of nested objects with the item at the path."""
    name, *rest = path
    return value | {name: put(value[name], rest, item) if rest else item}


def without(value, path):
    name, *rest = path
    if rest:
        return value | {name: without(value[name], rest)}
    return {other: item for other, item in value.items() if other != name}


def of_body(change):
    """Change the body, if there is one; otherwise the query string."""

    def changed(draw, sent):
        if sent.body:
            return replace(sent, body=change(draw, sent.body))
        return replace(sent, query={name: as_text(item) for name, item in change(draw, sent.query).items()})

    return changed


def as_text(value):
    return value if isinstance(value, str) else written(value)


def a_place(draw, value):
    return draw(st.sampled_from([*places(value)]))


def swap(draw, value):
    """Swap two values."""
    (first, one), (second, other) = a_place(draw, value), a_place(draw, value)
    if first[: len(second)] == second or second[: len(first)] == first:
        return value
    return put(put(value, first, other), second, one)


SPELLINGS = (
    lambda text: Number(text) if text.isdigit() else text + "0",
    lambda text: text + ".0",
    lambda text: Number(f"{text}e0") if text.isdigit() else text + "e0",
    lambda text: Number(f"{text}.0") if text.isdigit() else "+" + text,
    lambda text: "0" + text,
    lambda text: text + " ",
    lambda text: "\u200b" + text,
    lambda text: text + "\n",
    lambda text: text + "\x00",
    lambda text: text.upper() if text.upper() != text else text.lower(),
    lambda text: text.translate({ord(digit): chr(0xFF10 + int(digit)) for digit in "0123456789"}),
    *(lambda text, form=form: unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")),
)
SHAPES = (
    lambda item: [item],
    lambda item: {"0": item},
    lambda item: {"": item},
    lambda item: [*item.values()] if isinstance(item, dict) else [None, item],
    lambda item: {str(place): each for place, each in enumerate(item)} if isinstance(item, list) else str(item),
    lambda item: Twice(item) if isinstance(item, dict) else item,
    lambda item: True,
    lambda item: "true",
)
NOTHINGS = (None, "", {}, [], {"x": None}, [None], [""], {"x": {}}, False, Number("0"))
JOINTS = ("\n", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\x1e", "\\n", "&", "%0A")
KNOWN_NAMES = ("customer_name", "merchant_order_no", "order_no", "page", "status", "category", "start_time")
ODD_NAMES = ("x", "0", "", "a.b", "a=b", "gatewaya_card_info.card_no", "Signature", "api-key", "cny_amount ", "api_kéy")


def respell(draw, value):
    """Write the same value in other characters, or a similar value."""
    path, item = a_place(draw, value)
    return put(value, path, draw(st.sampled_from(SPELLINGS))(item)) if isinstance(item, str) else value


def reshape(draw, value):
    """Put the same leaf into another structure or type."""
    path, item = a_place(draw, value)
    return put(value, path, draw(st.sampled_from(SHAPES))(item))


def empty(draw, value):
    """Replace a value by one of the many kinds of nothing."""
    path, _ = a_place(draw, value)
    return put(value, path, draw(st.sampled_from(NOTHINGS)))


def drop(draw, value):
    path, _ = a_place(draw, value)
    return without(value, path)


def add(draw, value):
    """Add a name, at the top or nested, with an existing value, with nothing, or with any value."""
    path, existing = a_place(draw, value)
    name = draw(st.sampled_from([*ODD_NAMES, *KNOWN_NAMES]))
    if dict(places(value)).get((*path[:-1], name)) is not None:
        return value
    item = draw(st.sampled_from([existing, *NOTHINGS]) | st.text(max_size=5))
    return put(value, (*path[:-1], name), item)


def leaves_of(value):
    """The paths of texts and numbers, in the order of their lines."""
    return sorted(path for path, item in places(value) if isinstance(item, str))


def joined(value, first, second, joint, in_name):
    """Join two lines of the signed text in one value, or in one name."""
    items = dict(places(value))
    line = f"{items[first]}{joint}{'.'.join(second)}"
    if not in_name:
        return put(without(value, second), first, f"{line}={items[second]}")
    rest = without(without(value, first), second)
    return rest | {f"{'.'.join(first)}={line}": items[second]}


def join(draw, value):
    """Join a line with the previous one."""
    pairs = [*itertools.pairwise(leaves_of(value))]
    return joined(value, *draw(st.sampled_from(pairs)), draw(st.sampled_from(JOINTS)), draw(st.booleans()))


def shift(draw, value):
    """Move a part of a value into its name, or the reverse."""
    path, item = a_place(draw, value)
    if not isinstance(item, str):
        return value
    return put(without(value, path), (*path[:-1], f"{path[-1]}={item[:1]}"), item[1:])


def flatten(draw, value):
    """Write nested names as one dotted name."""
    path, item = a_place(draw, value)
    return without(value, path) | {".".join(path): item}


def move(draw, sent):
    """Move a field from the body to the query string, or back, or put it into both with another value."""
    away, here = (sent.body, sent.query) if draw(st.booleans()) else (sent.query, sent.body)
    names = [name for name, item in away.items() if isinstance(item, str)]
    if not names:
        return sent
    name = draw(st.sampled_from(names))
    kept = away if draw(st.booleans()) else without(away, [name])
    moved = here | {name: draw(st.sampled_from([away[name], away[name] + "0", "", "x"]))}
    body, query = (kept, moved) if away is sent.body else (moved, kept)
    return replace(sent, body=body, query={name: as_text(item) for name, item in query.items()})


def exchange(draw, sent):
    """Exchange the values of one name in both places."""
    names = [name for name in sent.query if name in sent.body]
    if not names:
        return sent
    name = draw(st.sampled_from(names))
    body = sent.body | {name: sent.query[name]}
    return replace(sent, body=body, query=sent.query | {name: as_text(sent.body[name])})


def elsewhere(draw, sent):
    """Use another endpoint, or a similar address."""
    near = [f"{sent.endpoint}/", f"/{sent.endpoint}", sent.endpoint.upper(), f"{sent.endpoint};x", f"x/{sent.endpoint}"]
    return replace(sent, endpoint=draw(st.sampled_from([*ENDPOINTS, *near])))


def forge(draw, value):
    """Use another signature, or none."""
    own = value.get("signature")
    if not isinstance(own, str):
        return value
    others = [own.upper(), own[:-1], own + "0", "0" * 64, f" {own}", "", None, True, [own], {"0": own}, Number("1")]
    return value | {"signature": draw(st.sampled_from(others))}


def keep(draw, value):
    """Change only the order of the names."""
    return dict(draw(st.permutations([*value.items()])))


CHANGES = [
    *map(of_body, (swap, respell, reshape, empty, drop, add, join, shift, flatten, forge, keep)),
    *(move, exchange, elsewhere),
]
