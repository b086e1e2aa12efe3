"""The published clients by language: how each is built and run, and which published vectors it can express."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tests.support import ROOT

PUBLISHED = json.loads((ROOT / "docs" / "signature-vectors.json").read_text("utf-8"))
VECTORS = {vector["name"]: vector for vector in PUBLISHED["vectors"]}
# The text of a number is lost if JSON is read into a binary number; such a client can't send it either.
EXPONENT = "a number with an exponent, as sent"
NUMBERS = ("numbers as sent", EXPONENT)
ZERO = "a number with a zero decimal, as sent"
LARGE = "an integer above 2^53, as sent"
NESTED = ("nested objects", "arrays and booleans", "order of the paths is that of their bytes")


class Literal(str):
    """A number as written in the file."""


def _fields(vector: dict[str, Any], **reading: Any) -> dict[str, Any]:
    return dict(parse_qsl(vector["query"])) | json.loads(vector["body"] or "{}", **reading)


def as_json(vectors: Iterable[dict[str, Any]]) -> str:
    """`[[endpoint, fields], ...]`, each body as it was published."""
    requests = ((each["endpoint"], json.dumps(_fields(each)) if each["query"] else each["body"]) for each in vectors)
    return "[" + ",".join(f'["{endpoint}",{body}]' for endpoint, body in requests) + "]"


def big_decimal(text: str) -> str:
    """A number in Java, exactly as written."""
    return f'new BigDecimal("{text}")'


def primitive(text: str) -> str:
    """A number in Java as a literal: a `long` or a `double`, as Jackson reads it too unless it is set otherwise."""
    return f"{text}L" if text.isdigit() else text


def _java(value: Any, number: Callable[[str], str]) -> str:
    if isinstance(value, dict):
        pairs = (f"{_java(name, number)}, {_java(item, number)}" for name, item in value.items())
        return f"map({', '.join(pairs)})"
    if isinstance(value, list):
        return f"list({', '.join(_java(item, number) for item in value)})"
    if isinstance(value, Literal):
        return number(value)
    return json.dumps(value)  # texts, true, false and null have the same form


def as_java(vectors: Iterable[dict[str, Any]], number: Callable[[str], str] = big_decimal) -> str:
    """A statement for each vector; `number` writes a number."""
    readings = [(vector["endpoint"], _fields(vector, parse_int=Literal, parse_float=Literal)) for vector in vectors]
    return "\n".join(f'vector("{endpoint}", {_java(fields, number)});' for endpoint, fields in readings)


def as_bash(vectors: Iterable[dict[str, Any]]) -> str:
    """A command for each vector."""
    readings = [(vector["endpoint"], _fields(vector, parse_int=str, parse_float=str)) for vector in vectors]
    return "\n".join(
        shlex.join(["vector", endpoint, *(f"{name}={value or ''}" for name, value in fields.items())])
        for endpoint, fields in readings
    )


@dataclass(frozen=True)
class Language:
    """Commands in a folder with the client, its receiver and its harness; `{port}` is the receiver's port.

    `vectors` reads the vectors as JSON; in a language without a JSON reader, they are `written` into `harness`.
    """

    tool: str
    order: str
    vectors: str
    receive: str = ""
    build: tuple[str, ...] = ()
    cannot_express: tuple[str, ...] = ()
    harness: str = ""
    written: Callable[[Iterable[dict[str, Any]]], str] | None = None


LANGUAGES = {
    "Python": Language(
        sys.executable,
        order=f"{sys.executable} merchant.py",
        receive=f"{sys.executable} receiver.py {{port}}",
        vectors=f"{sys.executable} vectors.py",
        cannot_express=NUMBERS,
    ),
    "PHP": Language(
        "php",
        order="php merchant.php",
        receive="php -S 127.0.0.1:{port} receiver.php",
        vectors="php vectors.php",
        cannot_express=(*NUMBERS, ZERO),
    ),
    "Node": Language(
        "node",
        order="node merchant.mjs",
        receive="node receiver.mjs {port}",
        vectors="node vectors.mjs",
        cannot_express=(*NUMBERS, ZERO, LARGE),
    ),
    "Java": Language(
        "javac",
        build=("javac -Xlint:all -Werror Merchant.java Receiver.java Vectors.java Value.java",),
        order="java Merchant",
        receive="java Receiver {port}",
        vectors="java Vectors",
        cannot_express=(EXPONENT,),
        harness="Vectors.java",
        written=as_java,
    ),
    "Go": Language(
        "go",
        build=(
            "go build -o order merchant.go",
            "go build -o receiver merchant.go receiver.go",
            "go build -o vectors merchant.go vectors.go",
        ),
        order="./order",
        receive="./receiver {port}",
        vectors="./vectors",
    ),
    "bash": Language(
        "openssl",
        order="bash merchant.sh",
        vectors="bash vectors.sh",
        cannot_express=NESTED,
        harness="vectors.sh",
        written=as_bash,
    ),
}
