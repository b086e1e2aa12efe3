"""An integrator's mistakes in signing, made on one request, independent of how the service finds them."""

import base64
import hashlib
import hmac
import json
import time
from urllib.parse import quote

SECRET, CALLBACK = "demo-secret", "whsec_ZGVtby1jYWxsYmFjay1zZWNyZXQtMDAwMDAwMDAwMDA="
ENDPOINT, QUERY = "createOrder", "q=a%20b%2Fc"
BODY = (
    '{{"order_type":1,"cny_amount":12.50,"customer_name":" 张/三 ","merchant_order_no":"",'
    '"B":"2","a1":"1","a":"4","e_int":0,"e_no":false,"e_text":"0",'
    '"gatewaya_card_info":{{"card_type":"2","prov_id":null,"ok":true,"list":["x","y"]}},'
    '"api_key":"demo","timestamp":{time},"nonce":"{nonce}"}}'
)
RIGHT = """createOrder
B=2
a=4
a1=1
api_key=demo
cny_amount=12.50
customer_name= 张/三 \n\
e_int=0
e_no=false
e_text=0
gatewaya_card_info.card_type=2
gatewaya_card_info.list.0=x
gatewaya_card_info.list.1=y
gatewaya_card_info.ok=true
nonce={nonce}
order_type=1
q=a b/c
timestamp={time}"""
NO_TEXTS = ("cny_amount=", "e_int=", "e_no=", "order_type=", "timestamp=", "gatewaya_card_info.ok=")


def _exchange(*pairs):
    def change(text):
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        return text

    return change


def _order(*paths):
    """The lines after the first, in this order."""

    def change(text):
        first, *lines = text.split("\n")
        return "\n".join([first, *sorted(lines, key=lambda line: paths.index(line.partition("=")[0]))])

    return change


def _quoted(text):
    first, *lines = text.split("\n")
    made = [line if line.startswith(NO_TEXTS) else '{}="{}"'.format(*line.split("=")) for line in lines]
    return "\n".join([first, *made])


def _sort_whole(text):
    first, *lines = text.split("\n")
    return "\n".join([first, *sorted(lines)])


def _sort_without_case(text):
    first, *lines = text.split("\n")
    return "\n".join([first, *sorted(lines, key=lambda line: line.partition("=")[0].lower())])


def _later(text):
    before, stamp = text.split("timestamp=")
    return f"{before}timestamp={int(stamp) + 1}"


def _without(*lines):
    """The text without these lines."""
    return lambda text: "\n".join(line for line in text.split("\n") if line not in lines)


CARD = "gatewaya_card_info"
AS_SENT = ["order_type", "cny_amount", "customer_name", "B", "a1", "a", "e_int", "e_no", "e_text"]
AS_SENT += [f"{CARD}.{name}" for name in ("card_type", "ok", "list.0", "list.1")]
AS_SENT += ["api_key", "timestamp", "nonce", "q"]
BRACKETS = ((".card_type", "[card_type]"), (".list.0", "[list][0]"), (".list.1", "[list][1]"), (".ok", "[ok]"))

EMPTY, BLANK = "\nnonce", "\nmerchant_order_no=\nnonce"

# The mistake, and the text that it signs. The text depends on its inputs, so one mistake has several lines.
TEXTS = (
    ("newline_at_end", lambda text: text + "\n"),
    ("newline_at_end", lambda text: text.replace("\n", "\r\n") + "\r\n"),
    ("path", lambda text: f"/merchant/{text}"),
    ("path", lambda text: f"/{text}"),
    ("no_endpoint", _exchange(("createOrder\n", ""))),
    ("other_endpoint", _exchange(("createOrder", "orderQueryList"))),
    ("blank_signed", _exchange((EMPTY, BLANK))),
    ("blank_signed", _exchange((EMPTY, BLANK), (".ok=true", f".ok=true\n{CARD}.prov_id="))),
    ("zero_left_out", _without("e_int=0", "e_no=false", "e_text=0")),  # PHP's empty()
    ("zero_left_out", _without("e_int=0", "e_no=false")),  # a truth test in Python or JavaScript
    ("zero_left_out", _without("e_int=0", "e_text=0")),  # == 0
    ("zero_left_out", _without("e_int=0")),
    ("query_left_out", _exchange(("q=a b/c\n", ""))),
    ("unsorted", _order(*AS_SENT)),
    ("sorted_otherwise", _sort_whole),
    ("sorted_otherwise", _sort_without_case),
    ("number", _exchange(("=12.50", "=12.5"))),
    ("percent", _exchange((" 张/三 ", quote(" 张/三 ", safe="")), ("a b/c", "a%20b%2Fc"))),
    ("percent", _exchange(("a b/c", "a%20b%2Fc"))),
    ("escaped", _exchange(("张/三", r"\u5f20/\u4e09"))),
    ("escaped", _exchange(("张/三", r"\u5f20\/\u4e09"), ("a b/c", r"a b\/c"))),
    ("quoted", _quoted),
    ("boolean", _exchange(("ok=true", "ok=True"), ("no=false", "no=False"))),
    ("boolean", _exchange(("ok=true", "ok=1"), ("no=false", "no=0"))),
    ("trimmed", _exchange((" 张/三 ", "张/三"))),
    ("time_taken_twice", _later),
    ("nesting", _exchange(*BRACKETS)),
    ("nesting", _exchange((".list.1", ".list.2"), (".list.0", ".list.1"))),
    ("left_out", lambda text: "\n".join(line for line in text.split("\n") if not line.startswith("nonce="))),
    ("left_out", lambda text: "\n".join(line for line in text.split("\n") if not line.startswith("api_key="))),
    ("signature_signed", _exchange(("\ntimestamp", "\nsignature=\ntimestamp"))),
    ("line_ends", _exchange(("\n", "&"))),
    ("line_ends", _exchange(("\n", "\r\n"))),
)


def hexed(text, key=SECRET, charset="utf-8", name=hashlib.sha256):
    """An HMAC in hex; the right one without further arguments."""
    key = key if isinstance(key, bytes) else key.encode()
    return hmac.new(key, text.encode(charset), name).hexdigest()


# The mistake, and its signature of the right text.
SIGNERS = (
    ("callback_secret", lambda text: hexed(text, CALLBACK)),
    ("callback_secret", lambda text: hexed(text, base64.b64decode(CALLBACK.removeprefix("whsec_")))),
    ("secret_misread", lambda text: hexed(text, SECRET + "\n")),
    ("no_secret", lambda text: hexed(text, "demo")),
    ("upper_case", lambda text: hexed(text).upper()),
    ("base64", lambda text: base64.b64encode(bytes.fromhex(hexed(text))).decode()),
    ("prefixed", lambda text: "sha256=" + hexed(text)),
    ("hash", lambda text: hexed(text, name=hashlib.sha1)),
    ("hash", lambda text: hashlib.sha256((text + SECRET).encode()).hexdigest()),
    ("hash", lambda text: hashlib.md5(f"{text}&key={SECRET}".encode()).hexdigest()),
    ("charset", lambda text: hexed(text, charset="gbk")),
)


class Mistaken:
    """One request, and the right text for it. `bare` is its body without a signature."""

    def __init__(self, nonce="a-nonce-1"):
        facts = {"time": int(time.time()), "nonce": nonce}
        self.bare = BODY.format(**facts)
        self.text = RIGHT.format(**facts)

    def body(self, signature):
        """The body with this signature."""
        return f'{self.bare[:-1]},"signature":{json.dumps(signature)}}}'.encode()
