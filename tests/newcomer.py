"""`make test-newcomer`: follow the README as a new user on bare Debian systems, from the first package to uninstalling.

Each system is a chroot that debootstrap makes. The commands are the README's own. This uses the standard library only,
and `unshare` starts it: the kernel ends all processes and mounts with it, whatever happens.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Any
from urllib.parse import urlencode, urljoin
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

ROOT = Path(__file__).parents[1]
SYSTEMS = {"bookworm": "Debian 12", "trixie": "Debian 13"}  # by the name that debootstrap knows
USER, REPOSITORY = "newcomer", "srv/tillbook.git"
MOUNTS = {"proc": "proc", "tmpfs": "dev/shm"}
# For machines that reach the internet through a proxy or a mirror.
PASSED_ON = re.compile(r"PIP_\w+|\w+_proxy", re.IGNORECASE)
AUTHORITIES = Path("/usr/local/share/ca-certificates")
STATUS_OF_CTRL_C = (0, 130, -signal.SIGINT)  # a shell reports a command that SIGINT ended as 130
SHOWN = 40  # lines of a failed step's output


class Failed(Exception):
    """A step did not do what the README says."""


class Readme:
    """The commands and the results that the README promises."""

    def __init__(self, text: str, port: int = 8000):
        self._text = re.split(r"^## ", text.partition("\n## Quick start\n")[2], flags=re.MULTILINE)[0]
        self._text = self._text.replace("8000", str(port))
        self.install_first = self._block("apt-get install")
        self.get_code = self._block("git clone")
        self.run = self._block("make run")
        self.last_line = self._block("serving on").splitlines()[-1]
        self.test = self._block("make test")
        self.uninstall = self._block("rm -rf")
        self.inbox = self._only(r"<(http://\S+/sandbox/inbox)>")
        self.console, self.name, self.password = self._only(r"<(http://\S+/console)> as `(\S+)` with `(\S+)`")

    def _block(self, words: str) -> str:
        return str(self._only(rf"(?ms)^```\w+\n((?:(?!```).)*?{words}.*?)^```"))

    def _only(self, pattern: str) -> Any:
        found = re.findall(pattern, self._text)
        if len(found) != 1:
            raise Failed(f"'Quick start' of README.md has {pattern} {len(found)} times instead of once")
        return found[0]


class System:
    """A bare system in a folder, with the code and one unprivileged user."""

    def __init__(self, suite: str, folder: Path):
        self.folder = folder
        _run(["debootstrap", "--variant=minbase", suite, str(folder)])
        (folder / "etc/hosts").write_text("127.0.0.1 localhost\n", "utf-8")
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
        trusted = folder / AUTHORITIES.relative_to("/")
        trusted.mkdir()
        for authority in AUTHORITIES.glob("*.crt"):
            shutil.copy(authority, trusted)
        for kind, target in MOUNTS.items():
            _run(["mount", "-t", kind, kind, str(folder / target)])
        clone = str(folder / REPOSITORY)
        _run(["git", "clone", "--quiet", "--bare", "--no-hardlinks", str(ROOT), clone])
        # Of the clone, because commits may be made during the run.
        self.revision = _run(["git", "-C", clone, "rev-parse", "--short=8", "HEAD"]).strip()
        self.readme = _run(["git", "-C", clone, "show", "HEAD:README.md"])
        self.run("root", f"useradd --create-home --shell /bin/bash {USER}\nchown -R {USER}: /{REPOSITORY}")

    def command(self, user: str, script: str, **environ: str) -> list[str]:
        """Return the command that runs a script as a user, in the home folder."""
        home = "/root" if user == "root" else f"/home/{user}"
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        variables = {"HOME": home, "USER": user, "PATH": path, "LANG": "C.UTF-8"} | environ
        variables |= {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
        settings = [f"{name}={value}" for name, value in variables.items()]
        inside = ["chroot", f"--userspec={user}", str(self.folder), "env", "-i", *settings]
        return [*inside, "bash", "-ec", f"cd\n{script}"]

    def run(self, user: str, script: str, **environ: str) -> str:
        """Run a script as a user; return what it prints."""
        return _run(self.command(user, script, **environ))

    def files(self) -> set[Path]:
        """Return the files in the users' folders and in /tmp."""
        folders = (self.folder / "home", self.folder / "tmp")
        return {path for folder in folders for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


class Demo:
    """`make run` in a terminal of its own."""

    def __init__(self, command: list[str]):
        pipes = {"stdin": DEVNULL, "stdout": PIPE, "stderr": STDOUT, "text": True}
        self.process = subprocess.Popen(command, start_new_session=True, **pipes)
        self.printed = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.printed += line

    def wait_for(self, line: str) -> None:
        """Wait until the demo has printed this line."""
        while line not in self.printed.splitlines():
            if not self._reader.is_alive():
                raise Failed(f"make run ended before it printed '{line}':\n{_tail(self.printed)}")
            time.sleep(0.1)

    def press_ctrl_c(self) -> None:
        """Send SIGINT to all its processes, as a terminal does, and wait for the end."""
        os.killpg(self.process.pid, signal.SIGINT)
        status = self.process.wait()
        self._reader.join()
        if status not in STATUS_OF_CTRL_C or re.search(r"Traceback|\bERROR\b|Error \d", self.printed):
            raise Failed(f"Ctrl-C ended make run with status {status}:\n{_tail(self.printed)}")

    def end(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self._reader.join()


class Forms(HTMLParser):
    """The forms of a page: the address, the fields, and the buttons by their text."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[dict[str, Any]] = []
        self._button: dict[str, str] | None = None
        self._text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        field = {given["name"]: given.get("value", "")} if "name" in given else {}
        if tag == "form":
            self.found.append({"action": given.get("action", ""), "fields": {}, "buttons": {}})
        elif tag == "input" and self.found:
            self.found[-1]["fields"] |= field
        elif tag == "button" and self.found:
            self._button, self._text = field, ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        # The text of a button on the payment page is bold, and an explanation follows.
        if tag in ("b", "button") and self._button is not None:
            self.found[-1]["buttons"][self._text.strip()] = self._button
            self._button = None


class Browser:
    """Opens pages and sends their forms, with cookies."""

    def __init__(self) -> None:
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()), ProxyHandler({}))
        self.url = ""

    def open(self, url: str, form: dict[str, str] | None = None) -> str:
        """Return the page at an address, after redirects."""
        with self._opener.open(url, urlencode(form).encode() if form else None, timeout=30) as response:
            self.url = response.url
            return str(response.read().decode())

    def press(self, url: str, button: str, **filled_in: str) -> None:
        """Open a page, fill in the form that has this button, and press it."""
        for form in Forms(self.open(url)).found:
            if button in form["buttons"] and filled_in.keys() <= form["fields"].keys():
                self.open(urljoin(self.url, form["action"]), form["fields"] | form["buttons"][button] | filled_in)
                return
        raise Failed(f"{url} has no form with the button '{button}' and the fields {sorted(filled_in)}")


class Record:
    """The steps on each system, with their seconds or their results."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str]] = defaultdict(dict)
        self.system = ""

    def note(self, row: str, result: str) -> None:
        """Keep a result and print it."""
        self.rows[row][self.system] = result
        print(f"{self.system}  {result:>8}  {row}", flush=True)

    @contextmanager
    def step(self, row: str) -> Iterator[None]:
        """Note the seconds of a step."""
        began = time.monotonic()
        try:
            yield
        except Exception:
            self.note(row, "FAILED")
            raise
        self.note(row, f"{time.monotonic() - began:.0f} s")

    def table(self, systems: list[str]) -> str:
        """Return the summary as a table for the notes of a release."""
        lines = [[time.strftime("%Y-%m-%d"), *systems], ["---"] * (len(systems) + 1)]
        lines += [[row, *(results.get(system, "-") for system in systems)] for row, results in self.rows.items()]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-SHOWN:])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, text=True)
    if done.returncode:
        raise Failed(f"{shlex.join(command)} ended with status {done.returncode}:\n{_tail(done.stdout)}")
    return done.stdout


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def follow_the_readme(system: System, record: Record, with_tests: bool) -> None:
    """Do on a bare system what the README says. Raises Failed."""
    step, port = record.step, _free_port()
    readme = Readme(system.readme, port)
    record.note("commit", system.revision)
    with step("install what the README names"):
        # The commands run as root, and a bare system has no sudo.
        system.run("root", 'sudo() { "$@"; }\n' + readme.install_first, DEBIAN_FRONTEND="noninteractive")
    record.note("Python", system.run(USER, "python3 -c 'import platform; print(platform.python_version())'").strip())
    before = system.files()
    with step("get the code"):
        system.run(USER, readme.get_code.replace("REPOSITORY", f"/{REPOSITORY}"))
    in_project = "cd tillbook\n"
    demo = Demo(system.command(USER, in_project + readme.run, ORDERS_PORT=str(port)))
    try:
        with step("make run, until the demo serves"):
            demo.wait_for(readme.last_line)
        with step("create an order with the printed curl"):
            curl = next((line for line in demo.printed.splitlines() if line.startswith("curl ")), "false")
            response, _, pay_url = system.run(USER, curl).strip().rpartition("\n")
            order_no = json.loads(response)["data"]["order_no"]
        browser = Browser()
        with step("pay it on the payment page"):
            browser.press(pay_url, "Pay")
        with step("see the callback in the inbox"):
            while order_no not in browser.open(readme.inbox):
                time.sleep(0.2)
        with step("sign in to the console"):
            browser.press(readme.console, "Sign in", name=readme.name, password=readme.password)
            if order_no not in browser.open(f"{readme.console}/orders"):
                raise Failed(f"the console does not show the order; it shows {browser.url}")
        with step("stop the demo with Ctrl-C"):
            demo.press_ctrl_c()
    finally:
        demo.end()
    if with_tests:
        with step("make test"):
            tested = system.run(USER, in_project + readme.test)
        print("\n".join(line for line in tested.splitlines() if line.startswith("SKIPPED")), flush=True)
        record.note("result of make test", re.findall(r"\d+ passed[\w ,]*(?= in )", tested)[0])
    with step("uninstall"):
        system.run(USER, in_project + readme.uninstall)
        if left := system.files() - before:
            raise Failed(f"uninstalling leaves {', '.join(map(str, sorted(left)))}")


def main() -> int:
    """Return the exit status: 0 if the README works on every system."""
    parser = argparse.ArgumentParser(prog="make test-newcomer", description=__doc__.partition("\n")[0])
    parser.add_argument("suite", nargs="*", help=f"systems, as debootstrap calls them ({' '.join(SYSTEMS)})")
    parser.add_argument("--with-tests", action="store_true", help="also run `make test`, which takes minutes")
    given = parser.parse_args()
    if os.geteuid() or not shutil.which("debootstrap"):
        parser.error("it needs root and the Debian package debootstrap")
    record, works = Record(), True
    names = {suite: SYSTEMS.get(suite, suite) for suite in given.suite or SYSTEMS}
    for suite, record.system in names.items():
        with tempfile.TemporaryDirectory(prefix=f"newcomer-{suite}-") as parent:
            folder = Path(parent) / suite
            try:
                with record.step("make a bare system"):
                    system = System(suite, folder)
                follow_the_readme(system, record, given.with_tests)
            except Failed as error:
                works = False
                print(f"{record.system}: {error}", file=sys.stderr, flush=True)
            except KeyboardInterrupt:
                return 130
            finally:
                for target in MOUNTS.values():
                    subprocess.run(["umount", "--quiet", "--lazy", str(folder / target)], stderr=DEVNULL)
    print(f"\n{record.table(list(names.values()))}")
    return 0 if works else 1


if __name__ == "__main__":
    sys.exit(main())
