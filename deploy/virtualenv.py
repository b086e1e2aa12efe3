"""Makes `.venv`, installs locked packages into it, and compiles the translations.

The Makefile calls this: `python3 deploy/virtualenv.py requirements/base.txt`. It needs the standard library only.
Python 3.6 can read it, to tell which Python is needed.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports ends the process without a traceback

import argparse
import errno
import hashlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
TRANSLATIONS = ROOT / "blueprints" / "translations"
INSTALLING = VENV / ".installing"  # exists while packages are installed, and afterwards if that was interrupted
OLDEST = (3, 11)
NEEDED = 300  # MB, for .venv with the packages of the service
# By lock file: what it has, and the seconds that its installation takes on a small server.
PACKAGES = {
    "base.txt": ("the service's packages", 40),
    "dev.txt": ("the packages for tests and checks", 90),
    "build.txt": ("the build tools", 10),
    "postgres.txt": ("the Postgres driver", 10),
}


def end(*lines: str) -> None:
    """End the process with an error message."""
    sys.exit("\n".join(("error: " + lines[0], *lines[1:])))


def run(doing: str, *command: object, making: Path = Path(os.devnull)) -> str:
    """Run a command and show only what it does; return its output if it failed, otherwise nothing.

    If it fails or is interrupted, nothing is left of the file or folder that it was making.
    """
    print(doing, flush=True)
    status = 1
    try:
        with tempfile.TemporaryFile("w+", errors="replace") as written:
            status = subprocess.call([str(each) for each in command], cwd=str(ROOT), stdout=written, stderr=written)
            written.seek(0)
            return (written.read().strip() or f"exit status {status}") if status else ""
    finally:
        if status and making.is_dir():
            shutil.rmtree(str(making), ignore_errors=True)
        elif status and making.is_file():
            making.unlink()


def service_settings():
    """Return the module `settings`, which needs no packages, but a Python that is new enough."""
    sys.path.insert(0, str(ROOT))
    from runtime import settings

    return settings


def check_owner(folder: Path) -> None:
    """End the process if this user cannot write to a folder, because another user installed before."""
    if sys.version_info >= OLDEST and not os.access(str(folder), os.W_OK):
        end(service_settings().denied(folder))


def check_port() -> None:
    """End the process if the service could not listen. Otherwise that would be reported after the installation."""
    settings = service_settings()
    try:
        with redirect_stderr(io.StringIO()):  # its warnings appear when the service starts
            chosen = settings.load()
        family, kind, _, _, address = socket.getaddrinfo(chosen.host, chosen.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except settings.WrongSetting as error:
        end(str(error))
    except OSError as error:
        running = f"If the demo is already running, open {chosen.local_url}. "
        end(
            f"cannot listen on {chosen.host}:{chosen.port}: {error.strerror}.",
            (running if error.errno == errno.EADDRINUSE else "") + "For another port: ORDERS_PORT=8001 make run",
        )


def version_of_venv():
    """Return the version of the Python in `.venv`, such as (3, 11); None if `.venv` is missing or broken."""
    if os.path.exists(str(INSTALLING)) or not os.access(str(PYTHON), os.X_OK):
        return None
    # After an upgrade of the system, .venv may lead to another Python, which does not find the packages.
    pip = [str(PYTHON), "-m", "pip", "--version"]
    done = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    version = re.search(r"\(python ([0-9]+)\.([0-9]+)\)", done.stdout.decode())
    return (int(version.group(1)), int(version.group(2))) if version else None


def make_venv() -> None:
    """Make `.venv`, in place of a broken one."""
    if sys.version_info < OLDEST:
        end(
            f"Python 3.11 or newer is needed, and {sys.executable} is {sys.version.split()[0]}.",
            "Install a newer one, and give its name: make run PYTHON=python3.12",
        )
    check_owner(VENV if VENV.exists() else ROOT)
    if os.path.lexists(str(VENV)):
        print("Removing .venv, which is incomplete or of another Python", flush=True)
        if VENV.is_symlink() or VENV.is_file():
            VENV.unlink()
        else:
            shutil.rmtree(str(VENV))
    free = shutil.disk_usage(str(ROOT)).free // 1_000_000
    if free < NEEDED:
        end(f"not enough disk space in {ROOT}: {NEEDED} MB are needed, and {free} MB are free.")
    failed = run("Creating .venv (10 s)", sys.executable, "-m", "venv", VENV, making=VENV)
    if failed:
        end(
            "the virtual environment could not be created.",
            "On Debian and Ubuntu, run `sudo apt-get install python3-venv`. Then repeat the command.",
            f"The message of {sys.executable}:",
            failed,
        )


def install(lock: Path) -> None:
    """Install the packages of a lock file, unless they are installed."""
    mark = VENV / f".installed-{lock.stem}"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == wanted:
        return
    check_owner(VENV)
    pip = (PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet")
    # Without a connection, pip would try for minutes. One small package tells.
    with tempfile.TemporaryDirectory() as folder:
        once = ("--retries", "1", "--timeout", "15", "download", "--no-deps", "--dest", folder, "segno")
        failed = run("Connecting to the package index (up to 30 s)", *pip, *once)
    if failed:
        index = re.sub("//[^/@]*@", "//****@", os.environ.get("PIP_INDEX_URL", ""))  # it may have a password
        lines = [line for line in failed.splitlines() if line.startswith(("WARNING:", "ERROR:"))]
        end(
            "the package index cannot be reached. Check the internet connection and the proxy.",
            f"PIP_INDEX_URL is {index}. The address of a mirror usually ends in /simple."
            if index
            else "To use a mirror: PIP_INDEX_URL=https://MIRROR/simple make run",
            "The message of pip:",
            *(lines or failed.splitlines()[-1:]),
        )
    packages, seconds = PACKAGES[lock.name]
    INSTALLING.touch()
    doing = f"Installing {packages} into .venv ({seconds} s)"
    failed = run(doing, *pip, "install", "--require-hashes", "--requirement", lock)
    if failed:
        end("the packages could not be installed. The message of pip:", failed)
    INSTALLING.unlink()
    mark.write_text(wanted)


def finish() -> None:
    """Add the commands to `.venv/bin`, and compile the translations that changed."""
    for name in ("tillbook", "orders"):  # `orders` is its old name
        link = VENV / "bin" / name
        if not link.exists():
            if link.is_symlink():  # to the file's old place
                link.unlink()
            link.symlink_to("../../cli/tillbook.sh")
    for source in TRANSLATIONS.rglob("*.po"):
        made = source.with_suffix(".mo")
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            compiling = ("babel.messages.frontend", "--quiet", "compile", "-d", TRANSLATIONS)
            failed = run("Compiling the translations", PYTHON, "-m", *compiling, making=made)
            if failed:
                end("the translations could not be compiled. The message of pybabel:", failed)


def main() -> None:
    """Read the command line, and do what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("locks", nargs="*", metavar="LOCK", help="a lock file in the project folder")
    parser.add_argument("--keep", action="store_true", help="keep a .venv of another Python than this one")
    parser.add_argument("--to-serve", action="store_true", help="first check that the service's port is free")
    chosen = parser.parse_args()
    version = version_of_venv()
    if chosen.to_serve and sys.version_info >= OLDEST:
        check_port()
    if version is None or not (chosen.keep or version == sys.version_info[:2]):
        make_venv()
    for name in chosen.locks:
        install(ROOT / name)
    if chosen.locks:
        finish()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        print("\nStopped. Repeat the command to continue.", file=sys.stderr)
        sys.exit(130)
