"""Every setting: its type, default and unit, read from the environment and from `instance/config.toml`.

No library does this: pydantic-settings would add a second library of fields next to marshmallow, and its errors take
several lines that do not say what to do.
"""

from __future__ import annotations

import difflib
import os
import pwd
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from runtime.money import fen
from runtime.texts import N_

PREFIX = "ORDERS_"
VERSION = "0.4.0"
NAME = N_("Tillbook")  # of the product, as people see it
ROOT = Path(__file__).resolve().parent.parent


class WrongSetting(Exception):
    """An invalid setting; the text is one line that names it."""


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run as a number without a name
        return str(number)


def denied(path: Path) -> str:
    """Return whose a file is that this process may not use, and what to do: after `sudo`, it is often root's."""
    # The file itself, or the folder above it that hides it.
    found = next(each for each in (path, *path.parents) if os.path.exists(each))
    owner, user = map(_user, (found.stat().st_uid, os.geteuid()))
    folder = found if found.is_dir() else found.parent
    is_ours = found == path or (found == path.parent and not os.access(found, os.X_OK))  # not a folder above it
    if owner == user and is_ours:
        return f"{path}: permission denied. Run: chmod -R u+rwX {folder}"
    why = f"{path}: permission denied. {found if found != path else 'It'} belongs to the user {owner}"
    if is_ours:
        return f"{why}, and this is the user {user}. Run the command as {owner}, or take the folder over: " + (
            f"sudo chown -R {user} {folder}"
        )
    return f"{why}, and this is the user {user}. Choose a folder of {user} for the data: ORDERS_INSTANCE=FOLDER"


def _flag(text: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in known:
        raise ValueError("must be 1 or 0")
    return known[text.lower()]


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text[:12]) <= high):
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def _yuan(text: str) -> int:
    try:
        return fen(text)
    except ValueError:
        raise ValueError("must be an amount in yuan, such as 50000 or 50000.00") from None


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return read


def _host(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._:%-]+", text):
        raise ValueError("must be an IP address or name of this machine, such as 127.0.0.1")
    return text


def _site(text: str) -> str:
    if not re.fullmatch(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?", text):
        raise ValueError("must look like https://pay.example.com, without a path")
    return text.rstrip("/")


def _postgres(text: str) -> str:
    if not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("must look like postgresql://user:password@host/database")
    return text


def _path_prefix(text: str) -> str:
    if text and (not text.startswith("/") or set(text) & set("?#<> ")):
        raise ValueError("must be empty or start with a slash, such as /api")
    return text.rstrip("/")


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return () if text == "none" else tuple(ip_network(each.strip()) for each in text.split(","))
    except ValueError:
        raise ValueError(
            "must be IP addresses or networks separated by commas, such as 127.0.0.1,10.0.0.0/8, or none"
        ) from None


def _setting(default: Any, read: Callable[[str], Any], meaning: str) -> Any:
    return field(default=default, metadata={"read": read, "meaning": meaning})


@dataclass(frozen=True)
class Settings:
    """All settings of one process. The environment has priority over `config.toml`, which has priority over the
    default."""

    instance: Path = _setting(
        ROOT / "instance",
        lambda text: Path(text).expanduser().resolve(),
        "folder of the database, the key and config.toml",
    )
    database_url: str = _setting(
        "", _postgres, "Postgres address, postgresql://...; empty: an SQLite file in the instance folder"
    )
    database_connections: int = _setting(16, _whole(2, 500), "maximum number of connections to Postgres")
    host: str = _setting("127.0.0.1", _host, "address to listen on")
    port: int = _setting(8000, _whole(1, 65535), "port to listen on")
    site_url: str = _setting("", _site, "public address of the service; empty: http://HOST:PORT")
    api_prefix: str = _setting("", _path_prefix, "path before /merchant/..., such as /api")
    demo: bool = _setting(False, _flag, "demo mode: seeded merchants, callbacks to loopback, signing help")
    language: str = _setting("en", _one_of("en", "zh"), "language of messages if the client does not choose one")
    vault_key: str = _setting("", str, "Fernet keys, newest first, separated by commas; empty: instance/vault.key")
    threads: int = _setting(64, _whole(1, 256), "threads that process requests")
    waiting: int = _setting(512, _whole(1, 100_000), "requests that can wait for a thread; further ones are refused")
    one_core: bool = _setting(True, _flag, "use one processor core, on which Python's threads are fastest")
    trusted_proxies: int = _setting(
        0, _whole(0, 9), "number of reverse proxies in front whose X-Forwarded-* headers are trusted"
    )
    buy_expiry: int = _setting(900, _whole(1, 30 * 86400), "seconds until an unpaid deposit expires")
    claim_expiry: int = _setting(
        0,
        _whole(0, 366 * 86400),
        "seconds until an unconfirmed claimed deposit is cancelled; 0: never",
    )
    second_factor_required: bool = _setting(
        False, _flag, "require console accounts to set up a second factor before anything else"
    )
    confirm_above: int = _setting(
        0,
        _yuan,
        "yuan above which a payout or refund needs the second factor or password again (kept in fen); 0: never",
    )
    second_operator_above: int = _setting(
        0, _yuan, "yuan above which a payout or refund needs a second operator (kept in fen); 0: never"
    )
    erase_after_days: int = _setting(
        0, _whole(0, 36_500), "days after its end until an order's personal data is erased; 0: never"
    )
    requests_per_second: int = _setting(100, _whole(1, 1_000_000), "requests per second and merchant")
    requests_per_address: int = _setting(200, _whole(1, 1_000_000), "requests per second and IP address")
    pages_per_address: int = _setting(
        20, _whole(1, 1_000_000), "payment pages per second and IP address, and as many calls of submit.php"
    )
    short_searches: int = _setting(
        5, _whole(1, 1_000_000), "searches with fewer than three characters, per second and merchant"
    )
    refused_per_minute: int = _setting(200, _whole(1, 1_000_000), "failed authentications per minute and IP address")
    private_callbacks: bool = _setting(
        False, _flag, "allow callbacks to private and loopback addresses; always on in demo mode"
    )
    private_channels: bool = _setting(
        False, _flag, "allow channels at private and loopback addresses; always on in demo mode"
    )
    callback_workers: int = _setting(128, _whole(1, 256), "maximum number of callbacks in progress")
    channel_workers: int = _setting(32, _whole(1, 256), "maximum number of requests to channels in progress")
    backup_every: int = _setting(0, _whole(0, 8784), "hours between scheduled backups; 0: none")
    backup_folder: Path = _setting(
        Path("backups"), lambda text: Path(text).expanduser(), "folder of scheduled backups, in the instance folder"
    )
    backup_keep: int = _setting(14, _whole(1, 100_000), "number of scheduled backups to keep; older ones are deleted")
    verify_every: int = _setting(24, _whole(0, 8784), "hours between ledger integrity checks; 0: none")
    issuer_name: str = _setting("", str, "your company's name on the letterhead of merchants' statements")
    issuer_details: str = _setting(
        "", str, "further lines of the letterhead, separated by |, such as the address, phone and tax number"
    )
    log_level: str = _setting("INFO", _one_of("DEBUG", "INFO", "WARNING", "ERROR"), "minimum level of log lines")
    log_format: str = _setting("text", _one_of("text", "json"), "format of log lines")
    access_log: bool = _setting(False, _flag, "log each request")
    metrics_from: tuple[IPv4Network | IPv6Network, ...] = _setting(
        _networks("127.0.0.1,::1"), _networks, "IP addresses and networks that can read /metrics"
    )

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.instance / "orders.sqlite"

    @property
    def backups(self) -> Path:
        """The folder of scheduled backups."""
        return self.instance / self.backup_folder

    @property
    def public_url(self) -> str:
        """`{site_url}` of the contract: scheme and host, no trailing slash."""
        return self.site_url or self.local_url

    @property
    def local_url(self) -> str:
        """The address on which the service listens, for a proxy or a browser on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def private_channels_allowed(self) -> bool:
        """True if channels and their proxies may have loopback and private addresses."""
        return self.demo or self.private_channels

    @property
    def private_callbacks_allowed(self) -> bool:
        """True if callbacks may go to loopback and private addresses."""
        return self.demo or self.private_callbacks


def _read(name: str, source: str, text: str) -> Any:
    reader = next(f.metadata["read"] for f in fields(Settings) if f.name == name)
    try:
        return reader(text)
    except (ValueError, RuntimeError) as error:
        # Without the value: it may be another setting's password, and this message is logged.
        raise WrongSetting(f"{source}: {error}") from None


def _config_file(path: Path) -> dict[str, str]:
    """Return the texts in config.toml by setting name; unknown names are refused."""
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))  # Windows' Notepad writes a byte order mark
    except FileNotFoundError:
        if path.is_symlink():
            raise WrongSetting(f"{path}: the link leads to {path.readlink()}, which does not exist") from None
        return {}
    except PermissionError:
        raise WrongSetting(denied(path)) from None
    except OSError as error:
        raise WrongSetting(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongSetting(f"{path}: save this file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise WrongSetting(f"{path}: {error}") from None
    names = [f.name for f in fields(Settings) if f.name != "instance"]
    for name in table:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            raise WrongSetting(f"{path}: unknown setting {name!r}" + (f", did you mean {near[0]!r}?" if near else ""))
        if not isinstance(table[name], (str, int)):
            raise WrongSetting(f"{path}: {name} must be a string, a whole number, true or false")
    return {name: str(value) for name, value in table.items() if value != ""}


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read all settings.

    Raises:
        WrongSetting: an invalid value, in the environment or in config.toml.
    """
    names = [f.name for f in fields(Settings)]
    given = {name: environ[PREFIX + name.upper()] for name in names if environ.get(PREFIX + name.upper(), "") != ""}
    values = {name: _read(name, PREFIX + name.upper(), text) for name, text in given.items()}
    folder = values.get("instance", Settings.instance)
    for name, text in _config_file(folder / "config.toml").items():
        values.setdefault(name, _read(name, f"{folder / 'config.toml'}: {name}", text))
    chosen = Settings(**values)
    if chosen.database_url and chosen.backup_every:
        raise WrongSetting("backup_every works with SQLite only: for Postgres, use pg_dump (docs/scaling.md)")
    for variable in environ:
        # Only a warning, because an orchestrator may set its own variables with this prefix.
        if variable.startswith(PREFIX) and variable[len(PREFIX) :].lower() not in names:
            near = difflib.get_close_matches(variable[len(PREFIX) :].lower(), names, 1)
            hint = f", did you mean {PREFIX}{near[0].upper()}?" if near else ""
            print(f"warning: unknown setting {variable}{hint}", file=sys.stderr)
    return chosen
