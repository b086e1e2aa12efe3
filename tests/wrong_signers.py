"""An integrator's mistakes in signing, made on one request, independent of how the service finds them."""

import base64
import hashlib
import hmac
import json
import time
from urllib.parse import quote, quote_plus

SECRET, CALLBACK = "demo-secret", "whsec_ZGVtby1jYWxsYmFjay1zZWNyZXQtMDAwMDAwMDAwMDA="
ENDPOINT, QUERY = "createOrder", "q=a%20b%2Fc"
BODY = (
    '{{"order_type":1,"cny_amount":12.50,"customer_name":" 张/三 ","merchant_order_no":"",'
    '"B":"2","a1":"1","a":"4","e_int":0,'
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
gatewaya_card_info.card_type=2
gatewaya_card_info.list.0=x
gatewaya_card_info.list.1=y
gatewaya_card_info.ok=true
nonce={nonce}
order_type=1
q=a b/c
timestamp={time}"""


def _exchange(*pairs):
    def change(text):
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        return text

    return change


def _sorted(key):
    """The lines after the first, sorted by `key`."""

    def change(text):
        first, *lines = text.split("\n")
        return "\n".join([first, *sorted(lines, key=key)])

    return change


def _name(line):
    return line.partition("=")[0]


def _without(*names):
    """The text without the lines of these names."""
    return lambda text: "\n".join(line for line in text.split("\n") if _name(line) not in names)


CARD = "gatewaya_card_info"
AS_SENT = ["order_type", "cny_amount", "customer_name", "B", "a1", "a", "e_int"]
AS_SENT += [f"{CARD}.{name}" for name in ("card_type", "ok", "list.0", "list.1")]
AS_SENT += ["api_key", "timestamp", "nonce", "q"]

EMPTY, BLANK = "\nnonce", "\nmerchant_order_no=\nnonce"

# The mistake, and the text that it signs. The text depends on its inputs, so one mistake has several lines.
TEXTS = (
    ("line_ends", lambda text: text + "\n"),
    ("line_ends", lambda text: text.replace("\n", "\r\n") + "\r\n"),
    ("line_ends", _exchange(("\n", "&"))),
    ("line_ends", _exchange(("\n", ""))),
    ("first_line", lambda text: f"/merchant/{text}"),
    ("first_line", lambda text: f"/{text}"),
    ("first_line", lambda text: f"POST /merchant/{text}"),
    ("first_line", _exchange(("createOrder\n", ""))),
    ("first_line", _exchange(("createOrder", "orderQueryList"))),
    ("blank_signed", _exchange((EMPTY, BLANK))),
    ("blank_signed", _exchange((EMPTY, BLANK), (".ok=true", f".ok=true\n{CARD}.prov_id="))),
    ("blank_signed", _exchange((EMPTY, BLANK), (".ok=true", f".ok=true\n{CARD}.prov_id=null"))),
    ("unsorted", _sorted(lambda line: AS_SENT.index(_name(line)))),
    ("unsorted", _sorted(str)),
    ("unsorted", _sorted(lambda line: _name(line).lower())),
    ("left_out", _without("api_key", "timestamp", "nonce")),
    ("left_out", _without("nonce")),
    ("left_out", _without("e_int")),
    ("left_out", _exchange(("q=a b/c\n", ""))),
    ("number", _exchange(("=12.50", "=12.5"))),
    ("number", _exchange(("=12.50", "=1250"))),
    ("percent", _exchange((" 张/三 ", quote(" 张/三 ", safe="")), ("a b/c", "a%20b%2Fc"))),
    ("percent", _exchange((" 张/三 ", quote_plus(" 张/三 ")), ("a b/c", "a+b%2Fc"))),
)


def hexed(text, key=SECRET, name=hashlib.sha256):
    """An HMAC in hex; the right one without further arguments."""
    key = key if isinstance(key, bytes) else key.encode()
    return hmac.new(key, text.encode(), name).hexdigest()


# The mistake, and its signature of the right text.
SIGNERS = (
    ("wrong_secret", lambda text: hexed(text, CALLBACK)),
    ("wrong_secret", lambda text: hexed(text, base64.b64decode(CALLBACK.removeprefix("whsec_")))),
    ("wrong_secret", lambda text: hexed(text, "demo")),
    ("secret_misread", lambda text: hexed(text, SECRET + "\n")),
    ("secret_misread", lambda text: hexed(text, f'"{SECRET}"')),
    ("digest", lambda text: hexed(text).upper()),
    ("digest", lambda text: base64.b64encode(bytes.fromhex(hexed(text))).decode()),
    ("digest", lambda text: "sha256=" + hexed(text)),
    ("digest", lambda text: hexed(text, name=hashlib.sha1)),
    ("digest", lambda text: hashlib.sha256((text + SECRET).encode()).hexdigest()),
    ("digest", lambda text: hashlib.md5(f"{text}&key={SECRET}".encode()).hexdigest()),
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
