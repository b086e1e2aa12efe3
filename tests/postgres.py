"""A Postgres for the tests: a cluster in a temporary folder, and a database for each test.

`TEST_DATABASE=postgres` runs the whole suite on it. It needs Debian's package `postgresql`, whose programs do not
run as root: for root they run as the user `postgres`.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg

IN_USE = os.environ.get("TEST_DATABASE", "sqlite") == "postgres"
PASSWORD = "p@ss:w/o%rd"  # what an address must escape
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
IS_INSTALLED = bool(BINARIES) or shutil.which("initdb") is not None
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "fsync": "off",  # a crash of the server loses nothing, only one of the machine
    "full_page_writes": "off",
    "autovacuum_naptime": "1d",
}


class Cluster:
    """One server, on a Unix socket in a folder of its own; it ends with the tests."""

    def __init__(self, **settings: str) -> None:
        """`settings` of the server override those of the tests."""
        self._as_whom = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        self.folder = Path(tempfile.mkdtemp(prefix="orders-postgres-"))
        if self._as_whom:
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        # A watchdog that outlives a killed pytest: it stops the server once this process has ended.
        self._numbers = count(1)
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        # By default a password is hashed 4,096 times at each connection; a test makes several.
        self._run("initdb", "-A", "md5", "-U", "orders", "--pwfile", str(password), "-E", "UTF8", "-N")
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in (SETTINGS | settings).items())
            file.write(f"unix_socket_directories = '{self.folder}'\n")
        atexit.register(self.remove)
        self._watch = subprocess.Popen(
            ["sh", "-c", f"trap '' INT; cat; {self._command('stop', '-m', 'immediate')} ; rm -rf '{self.folder}'"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.start()

    def _command(self, *arguments: str) -> str:
        return " ".join([*self._as_whom, str(self._program("pg_ctl")), "-D", f"'{self.folder}/data'", *arguments])

    @staticmethod
    def _program(name: str) -> str:
        return str(BINARIES[-1] / name) if BINARIES else name

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_whom, self._program(program), "-D", str(self.folder / "data"), *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def start(self) -> None:
        """Start the server, and wait until it responds."""
        self._run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"))
        self._own = psycopg.connect(self.url("postgres"), autocommit=True)  # creates and drops databases

    def stop(self) -> None:
        """Stop it immediately despite open connections, as a crash would."""
        self._own.close()
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")

    def remove(self) -> None:
        """Stop it, and delete its files."""
        if self._watch.poll() is None:
            self._watch.communicate()

    def url(self, name: str) -> str:
        """The address of a database."""
        return f"postgresql://orders:{quote(PASSWORD, safe='')}@/{name}?host={quote(str(self.folder), safe='')}"

    def create(self, template: str = "template0") -> str:
        """Create a database as a copy of one without connections; return its name."""
        name = f"orders_{next(self._numbers)}"
        # Since version 15 the default writes each page into the log, too, which takes eight times as long.
        by_files = "STRATEGY FILE_COPY" if self._own.info.server_version >= 150_000 else ""
        self._own.execute(f"CREATE DATABASE {name} TEMPLATE {template} {by_files}")
        return name

    def drop(self, name: str) -> None:
        """Drop a database despite open connections."""
        self._own.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@cache
def cluster() -> Cluster:
    """The cluster of these tests, started at its first use."""
    return Cluster()
