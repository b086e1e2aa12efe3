"""A plug-in's mistakes in signing epay requests, made independently of how the service finds them."""

import base64
import hashlib
import hmac
import html
import json
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key

from tests.epay_shop import text_to_sign

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


def _each(change):
    """Sign values that are changed."""
    return lambda fields: joined({name: change(value) for name, value in filled(fields).items()})


def _with(**changed):
    return lambda fields: joined({**filled(fields), **changed})


def _without(*names):
    return lambda fields: joined({name: value for name, value in filled(fields).items() if name not in names})


# The mistake, and the text that it signs for the fields.
TEXTS = (
    ("sign_type_signed", _with(sign_type="MD5")),
    ("sign_signed", _with(sign="")),
    ("blank_signed", joined),
    ("zero_left_out", _without("vip", "tier")),  # PHP's empty()
    ("unsorted", lambda fields: joined(filled(fields), order=list)),
    ("unsorted", lambda fields: joined(filled(fields), order=lambda names: sorted(names, reverse=True))),
    ("sorted_otherwise", lambda fields: joined(filled(fields), order=lambda names: sorted(names, key=str.lower))),
    ("money", _with(money="12.5")),
    ("money", _with(money="1250")),
    ("percent", _each(lambda value: quote(value, safe=""))),
    ("percent", lambda fields: urlencode(sorted(filled(fields).items()))),
    ("percent", lambda fields: _with(notify_url=quote(fields["notify_url"], safe=""))(fields)),
    ("plus", _each(lambda value: value.replace(" ", "+"))),
    ("html", _each(html.escape)),
    ("escaped", _each(lambda value: json.dumps(value)[1:-1].replace("/", "\\/"))),
    ("trimmed", _each(str.strip)),
    ("changed", lambda fields: text_to_sign(fields).replace("http://", "https://")),
    ("documented_only", lambda fields: joined({name: fields[name] for name in DOCUMENTED if fields[name]})),
    ("left_out", _without("sitename")),
    ("left_out", _without("cid", "device")),
    ("not_sent", _with(clientip="127.0.0.1")),
    ("joined_otherwise", lambda fields: joined(filled(fields), by="\n")),
    ("joined_otherwise", lambda fields: "".join(fields[name] for name in sorted(filled(fields)))),
)


def digest(data, name="md5"):
    """The hash in hex."""
    return hashlib.new(name, data.encode() if isinstance(data, str) else data).hexdigest()


def _hmac(name):
    return lambda text, key: hmac.new(key.encode(), text.encode(), name).hexdigest()


# The mistake, and its signature of the right text by version 1.
MD5_SIGNERS = (
    ("key_joined", lambda text, key: digest(f"{text}&key={key}")),
    ("key_joined", lambda text, key: digest(f"{text}&{key}")),
    ("key_first", lambda text, key: digest(key + text)),
    ("other_secret", lambda text, key: digest(f"{text}demo-secret")),
    ("key_misread", lambda text, key: digest(f"{text}{key}\n")),
    ("key_misread", lambda text, key: digest(text + key.upper())),
    ("no_key", lambda text, key: digest(text)),
    ("case", lambda text, key: digest((text + key).upper())),
    ("case", lambda text, key: digest(text.lower() + key)),
    ("hmac", _hmac("md5")),
    ("hmac", _hmac("sha256")),
    ("hash", lambda text, key: digest(text + key, "sha1")),
    ("hash", lambda text, key: digest(digest(text + key))),
    ("hash", lambda text, key: digest(text + key)[8:24]),
    ("charset", lambda text, key: digest((text + key).encode("gbk"))),
)


def rsa(text, private_key, algorithm=None, charset="utf-8"):
    """The signature of a text, in bytes."""
    key = load_der_private_key(base64.b64decode(private_key), None)
    return key.sign(text.encode(charset), PKCS1v15(), algorithm or SHA256())


def in_base64(data):
    """Bytes as standard base64."""
    return base64.b64encode(data).decode()


# The mistake, and its signature of the right text by version 2.
RSA_SIGNERS = (
    ("text_end", lambda text, key: in_base64(rsa(f"{text}&", key))),
    ("damaged", lambda text, key: in_base64(rsa(text, key)).replace("+", " ")),
    ("damaged", lambda text, key: base64.encodebytes(rsa(text, key)).decode()),
    ("damaged", lambda text, key: quote(in_base64(rsa(text, key)), safe="")),
    ("base64", lambda text, key: base64.urlsafe_b64encode(rsa(text, key)).decode()),
    ("base64", lambda text, key: rsa(text, key).hex()),
    ("hash", lambda text, key: in_base64(rsa(text, key, SHA1()))),
    ("hash", lambda text, key: in_base64(rsa(hashlib.sha256(text.encode()).hexdigest(), key))),
    ("charset", lambda text, key: in_base64(rsa(text, key, charset="gbk"))),
)
