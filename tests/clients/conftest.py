"""One running service for all clients, and each client in a fresh folder, built once."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests import databases
from tests.clients.languages import LANGUAGES, VECTORS, Language
from tests.clients.receivers import send
from tests.support import ROOT, DemoService, Service, free_port, until

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("MERCHANT_", "ORDERS_"))}


@dataclass(frozen=True)
class Client:
    """A published client in a folder of its own."""

    language: Language
    folder: Path

    def environ(self, **settings: str) -> dict[str, str]:
        return CLEAN | {"GOCACHE": str(self.folder / "gocache"), "NO_PROXY": "*"} | settings

    def run(self, command: str, *arguments: str, given: bytes = b"", **settings: str) -> subprocess.CompletedProcess:
        """Run one command to its end."""
        words = [*shlex.split(command), *arguments]
        environ = self.environ(**settings)
        return subprocess.run(words, cwd=self.folder, env=environ, input=given, capture_output=True, timeout=120)

    def starts(self, command: str, output: Path, **settings: str) -> subprocess.Popen:
        """Start a long-running command, with its output in this file."""
        with output.open("wb") as file:
            environ = self.environ(**settings)
            return subprocess.Popen(shlex.split(command), cwd=self.folder, env=environ, stdout=file, stderr=file)

    @property
    def vectors(self) -> list[dict]:
        """The published vectors that the client can express."""
        return [vector for name, vector in VECTORS.items() if name not in self.language.cannot_express]


def _made(language: Language, folder: Path) -> Client:
    for source in (*(ROOT / "docs" / "clients").glob("*.*"), *(Path(__file__).parent / "harness").glob("*.*")):
        shutil.copy(source, folder)
    client = Client(language, folder)
    if language.written:
        harness, statements = folder / language.harness, language.written(client.vectors)
        harness.write_text(re.sub("(#|//) VECTORS", lambda _: statements, harness.read_text("utf-8")), "utf-8")
    for command in language.build:
        built = client.run(command)
        assert built.returncode == 0, built.stderr.decode()
    return client


@pytest.fixture(scope="session")
def clients_by_name(slow: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Client]:
    """`clients_by_name("Go")`: that client, built at its first use."""
    ready: dict[str, Client] = {}

    def client(name: str) -> Client:
        if not shutil.which(LANGUAGES[name].tool):
            pytest.skip(f"{LANGUAGES[name].tool} is not installed, so the client for {name} is not checked")
        if name not in ready:
            ready[name] = _made(LANGUAGES[name], tmp_path_factory.mktemp(name))
        return ready[name]

    return client


@pytest.fixture
def client(request: pytest.FixtureRequest, clients_by_name: Callable[[str], Client]) -> Client:
    """The client of the test's language."""
    return clients_by_name(request.getfixturevalue("language"))


@pytest.fixture
def listening(client: Client, tmp_path: Path) -> Iterator[Callable[..., tuple[str, Callable[[], str]]]]:
    """`listening(**settings)` starts the receiver; returns its address and a function that reads its output."""
    started: list[subprocess.Popen] = []

    def start(**settings: str) -> tuple[str, Callable[[], str]]:
        port, output = free_port(), tmp_path / f"receiver-{len(started)}.log"
        started.append(client.starts(client.language.receive.format(port=port), output, **settings))
        url = f"http://127.0.0.1:{port}/hook"
        until(lambda: answering(url, output, started[-1]))
        return url, output.read_text

    def answering(url: str, output: Path, process: subprocess.Popen) -> bool:
        assert process.poll() is None, output.read_text()
        try:
            return send("POST", url, {}) == 401
        except requests.ConnectionError:
            return False

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


@pytest.fixture
def believes(client: Client, request: pytest.FixtureRequest) -> Callable[..., bool]:
    """`believes(by_http, by_function, secret)`: whether the client accepts a report of the service.

    `by_http(url)` sends it to the client's receiver; `by_function(client, **settings)` passes it to the function of a
    client that has none.
    """
    listening = request.getfixturevalue("listening")
    urls: dict[str, str] = {}

    def asks(by_http: Callable[[str], int], by_function: Callable[..., bool], secret: str) -> bool:
        settings = {"MERCHANT_CALLBACK_SECRET": secret} if secret else {}
        if not client.language.receive:
            return by_function(client, **settings)
        urls[secret] = urls.get(secret) or listening(**settings)[0]
        return {200: True, 204: True, 401: False}[by_http(urls[secret])]

    return asks


@pytest.fixture(scope="session")
def live(slow: None, seeded_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service in a process of its own, for all tests of the clients."""
    folder = tmp_path_factory.mktemp("clients") / "instance"
    running = DemoService(databases.copied(seeded_demo, folder)).start()
    yield running
    running.stop()
    databases.remove(folder)
