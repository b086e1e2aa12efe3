"""RSA keys that are made and checked once in each process, because either takes longer than most tests."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_der_private_key

MADE = 8  # more than one test ever asks for

load = cache(load_der_private_key)
_numbers = count()


@cache
def _made(number: int, **parameters: Any) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(**parameters)


def generate_private_key(**parameters: Any) -> rsa.RSAPrivateKey:
    """Return another key than the last MADE - 1 times."""
    return _made(next(_numbers) % MADE, **parameters)
