"""No secret is committed: every file that git tracks is searched for keys, tokens and passwords."""

import base64
import math
import random
import re
from collections import Counter

import pytest

from tests.support import ROOT, finished

SHAPES = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a key without its frame": r"\bMII[A-Za-z0-9+/]{200,}",
    "a Fernet key": r"(?<![\w+/-])[A-Za-z0-9_-]{43}=(?![\w+/=-])",
    "a callback secret": r"\bwhsec_[A-Za-z0-9+/]{43}=",
    "a cloud key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{35}\b|\bLTAI[A-Za-z0-9]{16,26}\b",
    "a service's token": r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{50,}|\bglpat-[\w-]{20}|\bxox[abpr]-[\w-]{20,}"
    r"|\b[sr]k_live_[A-Za-z0-9]{16,}|\bpypi-[\w-]{50,}|\bnpm_[A-Za-z0-9]{36}\b",
    "a JSON web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    "a password in an address": r"[a-z]://[^\s/:@\"'<>{}$]+:(?!password@)[^\s/:@\"'<>{}$]{8,}@(?!localhost|127\.)",
}
# A name that suggests a secret, with an unlikely value.
NAMED = re.compile(
    r"(?i)[\w-]*(?:secret|passw(?:or)?d|token|api_?key|private_?key)[\w-]*[\"']?\s*[:=]\s*[\"']?([\w+/=.-]{20,})"
)
SECRET_FILES = re.compile(r"(^|/)(\.env|id_[a-z0-9]+|vault\.key)$|\.(pem|key|p12|pfx|jks|sqlite|sqlite-wal)$")
RANDOM = 3.0  # bits a character

# Values that look like secrets but are not, and the reason.
ALLOWED = {
    "whsec_ZGVtby1jYWxsYmFjay1zZWNyZXQtMDAwMDAwMDAwMDA=": "the demo merchant's, published in docs/sandbox.md",
    "whsec_b3RoZXItY2FsbGJhY2stc2VjcmV0LTAwMDAwMDAwMDA=": "the other demo merchant's",
    "channel-config-secret-4711": "a stand-in of tests/test_secrets.py",
    "Ya1bYAVFRaXixnbaNgwY2wTzFhcVdrgYFh9iLywgXsU=": "a signature in docs/returning.md under the demo merchant's secret",
    "0f1e2d3c4b5a69788796a5b4c3d2e1f0": "the AppSecret of the stand-in for WeChat in tests/upstreams",
}
# The keys of past releases' seeded content, which the upgrade tests use.
PAST_RELEASES = re.compile(r"tests/data/[0-9.]+\.key")


def is_random(text):
    """Whether it has digits and letters, and a high Shannon entropy."""
    bits = -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
    return bits > RANDOM and bool(re.search(r"[0-9]", text)) and bool(re.search(r"[A-Za-z]", text))


def found_in(name, text):
    """Possible secrets in a file: the kind, and the text."""
    if PAST_RELEASES.fullmatch(name):
        return []
    found = [("a file that holds secrets", name)] if SECRET_FILES.search(name) else []
    for kind, shape in SHAPES.items():
        found += [(kind, match.group()) for match in re.finditer(shape, text)]
    found += [("a named secret", match[1]) for match in NAMED.finditer(text) if is_random(match[1])]
    return [(kind, text) for kind, text in found if text not in ALLOWED]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="these files are no git checkout")
@pytest.mark.usefixtures("slow")
def test_no_committed_file_contains_a_secret():
    listed = finished(["git", "ls-files", "-z"], check=True).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    assert "app.py" in names
    leaks = {name: found_in(name, (ROOT / name).read_bytes().decode(errors="replace")) for name in names}
    assert {name: found for name, found in leaks.items() if found} == {}


DICE = random.Random(4711)  # the same on every run


def random_text(alphabet, length):
    return "".join(DICE.choice(alphabet) for _ in range(length))


HEX = "0123456789abcdef"
UPPER, ALL = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789", "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
KEY = base64.urlsafe_b64encode(DICE.randbytes(32)).decode()
PLANTED = {
    "a key file's frame": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE",
    "a key's inside": 'ALIPAY = "MII' + random_text(ALL, 400) + '"',
    "a Fernet key": f"ORDERS_VAULT_KEY={KEY}",
    "a Fernet key alone": f"{KEY}\n",
    "a callback secret": "whsec_" + base64.b64encode(DICE.randbytes(32)).decode(),
    "a cloud key": "AKIA" + random_text(UPPER, 16),
    "a forge's token": "ghp_" + random_text(ALL, 36),
    "a web token": ".".join("eyJ" + random_text(ALL, 30) for _ in range(3)),
    "a database's password": "postgresql://orders:" + random_text(ALL, 12) + "@db.example.com/orders",
    "an API secret in Python": f'API_SECRET = "{random_text(HEX, 48)}"',
    "an API secret in JSON": '{"secret": "' + random_text(ALL, 43) + '"}',
    "an API secret in a shell": f"export CHANNEL_TOKEN={random_text(HEX, 48)}",
}


@pytest.mark.parametrize("text", PLANTED.values(), ids=PLANTED)
def test_a_planted_secret_is_found(text):
    assert found_in("docs/page.md", f"before\n{text}\nafter")


@pytest.mark.parametrize("name", ["instance/vault.key", "deploy/.env", "orders.sqlite", "server.pem", ".ssh/id_rsa"])
def test_a_file_of_secrets_is_found_by_its_name(name):
    assert found_in(name, "")


@pytest.mark.parametrize(
    "text",
    [
        'secret = "demo-secret"',
        "secret: str = field(repr=False)",
        "token = secrets.token_hex(16)",
        "--hash=sha256:" + "0123456789abcdef" * 4,
        "postgresql://orders@localhost/orders",
        "postgresql://user:password@host/database",
        '"signature": "43168fa615bf51853022d6c422a6d3e668eaa810f5939e2041e73843bb8a6f32"',
    ],
)
def test_harmless_values_are_not_reported(text):
    assert found_in("docs/page.md", text) == []
