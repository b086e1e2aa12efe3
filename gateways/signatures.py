"""RSA signatures as the upstreams use them: PKCS #1 v1.5 over SHA-256, in base64."""

from __future__ import annotations

from base64 import b64decode, b64encode

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256


def sign(key: RSAPrivateKey, text: bytes) -> str:
    """Return the signature of a text."""
    return b64encode(key.sign(text, PKCS1v15(), SHA256())).decode()


def is_signature(key: RSAPublicKey, text: bytes, signature: object) -> bool:
    """Return whether the owner of the key made this signature of the text."""
    try:
        key.verify(b64decode(str(signature), validate=True), text, PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):  # invalid base64 raises ValueError
        return False
    return True
