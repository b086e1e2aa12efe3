"""A plug-in's mistakes in signing epay requests, made independently of how the service finds them."""

import base64
import hashlib
import hmac
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key

SENT = {
    "type": "alipay",
    "out_trade_no": "SHOP-1",
    "notify_url": "http://127.0.0.1/notify?a=1&b=x y",
    "return_url": "",
    "name": " 会员 1 Month ",
    "money": "12.50",
    "sitename": "<Shop>",
    "device": "pc",
    "Lang": "zh",
    "cid": "7",
    "vip": "0",
    "tier": "0",
    "param": "",
}
DOCUMENTED = ("pid", "type", "out_trade_no", "notify_url", "return_url", "name", "money")


def joined(fields, order=sorted, by="&"):
    """The text of these fields, all of them."""
    return by.join(f"{name}={fields[name]}" for name in order(fields))


def filled(fields):
    """The fields that are signed."""
    return {name: value for name, value in fields.items() if value and name not in ("sign", "sign_type")}


def _with(**changed):
    return lambda fields: joined({**filled(fields), **changed})


def _without(*names):
    return lambda fields: joined({name: value for name, value in filled(fields).items() if name not in names})


# The mistake, and the text that it signs for the fields.
TEXTS = (
    ("sign_signed", _with(sign_type="MD5")),
    ("sign_signed", _with(sign="")),
    ("blank_signed", joined),
    ("unsorted", lambda fields: joined(filled(fields), order=list)),
    ("unsorted", lambda fields: joined(filled(fields), order=lambda names: sorted(names, key=str.lower))),
    ("left_out", _without("sitename")),
    ("left_out", lambda fields: joined({name: fields[name] for name in DOCUMENTED if fields[name]})),
    ("money", _with(money="12.5")),
    ("money", _with(money="1250")),
    ("percent", lambda fields: joined({name: quote(value, safe="") for name, value in filled(fields).items()})),
    ("percent", lambda fields: urlencode(sorted(filled(fields).items()))),
    ("percent", lambda fields: _with(notify_url=quote(fields["notify_url"], safe=""))(fields)),
)


def digest(text):
    """The MD5 in hex."""
    return hashlib.md5(text.encode()).hexdigest()


# The mistake, and its signature of the right text by version 1.
SIGNERS = (
    ("key_joined", lambda text, key: digest(f"{text}&key={key}")),
    ("key_joined", lambda text, key: digest(f"{text}&{key}")),
    ("wrong_key", lambda text, key: digest(f"{text}demo-secret")),
    ("wrong_key", lambda text, key: digest(f"{text}{key}\n")),
    ("wrong_key", lambda text, key: digest(text)),
    ("hash", lambda text, key: hmac.new(key.encode(), text.encode(), "md5").hexdigest()),
    ("hash", lambda text, key: hmac.new(key.encode(), text.encode(), "sha256").hexdigest()),
    ("hash", lambda text, key: hmac.new(key.encode(), text.encode(), "sha256").hexdigest().upper()),
    ("hash", lambda text, key: digest(digest(text + key))),
    ("hash", lambda text, key: digest(key + text)),
)


def rsa(text, private_key, algorithm=None):
    """The signature of a text, in bytes."""
    key = load_der_private_key(base64.b64decode(private_key), None)
    return key.sign(text.encode(), PKCS1v15(), algorithm or SHA256())


def in_base64(data):
    """Bytes as standard base64."""
    return base64.b64encode(data).decode()
