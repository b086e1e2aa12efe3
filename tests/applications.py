"""Applications that several tests share in turn, because building one takes longer than most tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from flask import Flask
from jinja2.bccache import Bucket, BytecodeCache

import app
from runtime.settings import Settings
from tests.databases import disconnect

_built: dict[Any, Flask] = {}
_code: dict[tuple[str, str], Any] = {}


class _Compiled(BytecodeCache):
    """The templates that any of these applications has compiled."""

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = _code.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        _code[bucket.key, bucket.checksum] = bucket.code


def with_settings(chosen: Settings) -> Flask:
    """Return the application with these settings, built at its first use, on their instance and database."""
    disconnect()
    runtime = app.begin(chosen)
    built_for = replace(chosen, instance=Path("/"), database_url="")
    if built_for not in _built:
        _built[built_for] = app.build(runtime)
        _built[built_for].jinja_env.bytecode_cache = _Compiled()
    _built[built_for].extensions["runtime"] = runtime
    _built[built_for].instance_path = str(chosen.instance)
    return _built[built_for]
