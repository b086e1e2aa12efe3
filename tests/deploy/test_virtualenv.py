"""The first `make run`: each obstacle on a new machine gets an error with the remedy, and leaves nothing broken."""

import hashlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

import pytest
from werkzeug import Response

from tests.support import ROOT, finished, free_port

SYSTEM_PYTHON = "/usr/bin/python3"  # one that other users may run too
OLD = """#!/bin/sh
exec {python} -c 'import runpy, sys
sys.version_info, sys.version, sys.argv = (3, 9, 2), "3.9.2 (default)", sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$@"
"""
# As Debian's Python without the package python3-venv.
WITHOUT_VENV = """#!/bin/sh
if [ "$1" = -m ]; then
    {python} -m venv --without-pip "$3"
    echo "The virtual environment was not created successfully because ensurepip is not available." >&2
    exit 1
fi
exec {python} -c 'import runpy, sys
sys.executable, sys.argv = sys.argv[1], sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$0" "$@"
"""

pytestmark = [
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
    pytest.mark.usefixtures("slow"),
]


class Checkout:
    """A new checkout with one small package to install, from an index of its own."""

    def __init__(self, folder, index):
        self.folder, self.venv, self.index = folder, folder / ".venv", index
        settings = [str(each.relative_to(ROOT)) for each in (ROOT / "runtime").glob("*.py")]
        for name in ("Makefile", *settings, "deploy/virtualenv.py"):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        (folder / "instance").mkdir()
        (folder / "requirements").mkdir()
        (folder / "blueprints" / "translations").mkdir(parents=True)
        self.lock(f"segno==1.0 --hash=sha256:{hashlib.sha256(index.wheel).hexdigest()}\n")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PIP_", "ORDERS_", "MAKE"))}
        self.environ = kept | {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_INDEX_URL": index.url,
            "ORDERS_PORT": str(free_port()),
        }

    def lock(self, text):
        (self.folder / "requirements/base.txt").write_text(text, "utf-8")

    def python(self, script):
        """A Python that behaves as this shell script."""
        path = self.folder / "another-python"
        path.write_text(script.format(python=sys.executable), "utf-8")
        path.chmod(0o755)
        return path

    def make_run(self, python=sys.executable, **environ):
        """The output of `make run`, which must fail."""
        command = ["make", "run", f"PYTHON={python}"]
        done = finished(command, cwd=self.folder, env=self.environ | environ, stdin=subprocess.DEVNULL)
        assert done.returncode == 2, done.stdout
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def install(self, *options):
        command = [sys.executable, "deploy/virtualenv.py", *options, "requirements/base.txt"]
        return finished(command, cwd=self.folder, env=self.environ)

    def works(self):
        """Whether the package is installed in the `.venv`."""
        return finished([self.venv / "bin" / "python", "-c", "import segno, pip"]).returncode == 0


class Index:
    """A package index with the package `segno`; a request for any other package is not answered until the test ends."""

    def __init__(self, folder, web_server):
        self.url, self.asked, self.ended = web_server.url_for("/simple"), threading.Event(), threading.Event()
        path = folder / "segno-1.0-py3-none-any.whl"
        files = {
            "segno.py": "",
            "segno-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: segno\nVersion: 1.0\n",
            "segno-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "segno-1.0.dist-info/RECORD"
        files[record] = "".join(f"{name},,\n" for name in (*files, record))
        with zipfile.ZipFile(path, "w") as wheel:
            for name, data in files.items():
                wheel.writestr(zipfile.ZipInfo(name), data)  # with the same time, so with the same hash each time
        self.wheel = path.read_bytes()
        link = f'<a href="/{path.name}">{path.name}</a>'
        web_server.expect_request("/simple/segno/").respond_with_data(link, content_type="text/html")
        web_server.expect_request(f"/{path.name}").respond_with_data(self.wheel)
        web_server.expect_request("/simple/hangs/").respond_with_handler(self._hang)

    def _hang(self, request):
        self.asked.set()
        self.ended.wait(30)
        return Response(status=503)


@pytest.fixture
def index(tmp_path, web_server):
    index = Index(tmp_path, web_server)
    yield index
    index.ended.set()


@pytest.fixture
def checkout(tmp_path, index):
    folder = tmp_path / "checkout"
    folder.mkdir()
    return Checkout(folder, index)


@pytest.fixture(scope="session")
def venv(tmp_path_factory):
    """The folder for an installed `.venv`, which the first test makes."""
    return tmp_path_factory.mktemp("installed") / ".venv"


@pytest.fixture
def installed(checkout, venv):
    """A checkout whose packages are installed."""
    if not venv.exists():
        assert checkout.install().returncode == 0
        shutil.copytree(checkout.venv, venv, symlinks=True)
    elif not checkout.venv.exists():
        shutil.copytree(venv, checkout.venv, symlinks=True)
    return checkout


def test_the_packages_are_installed_once_until_the_lock_file_changes_and_only_with_its_hashes(checkout):
    first, second = checkout.install(), checkout.install()
    assert first.returncode == second.returncode == 0, first.stderr
    assert checkout.works()
    assert first.stdout.splitlines() == [
        "Creating .venv (10 s)",
        "Connecting to the package index (up to 30 s)",
        "Installing the service's packages into .venv (40 s)",
    ]
    assert (second.stdout, second.stderr) == ("", "")
    for name in ("tillbook", "orders"):
        command = checkout.venv / "bin" / name
        present = command.readlink()
        command.unlink()
        command.symlink_to("../../cli/orders.sh")  # the file's place in earlier versions
        assert checkout.install().returncode == 0
        assert command.readlink() == present
    shutil.rmtree(next(checkout.venv.glob("lib/python*/site-packages/segno-1.0.dist-info")))
    checkout.lock(f"segno==1.0 --hash=sha256:{'0' * 64}\n")
    refused = checkout.install()
    assert refused.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr
    checkout.lock("# nothing is needed any more\n")
    assert "Installing the service's packages" in checkout.install().stdout


def test_a_missing_an_old_and_an_incomplete_python_are_named_and_leave_no_broken_environment(checkout):
    assert "error: python3.99 is not installed" in checkout.make_run("python3.99")
    old = checkout.make_run(checkout.python(OLD))
    assert "Python 3.11 or newer is needed" in old
    assert "3.9.2" in old
    assert "make run PYTHON=python3.12" in old
    incomplete = checkout.make_run(checkout.python(WITHOUT_VENV))
    assert "sudo apt-get install python3-venv" in incomplete
    assert "ensurepip is not available" in incomplete
    assert not checkout.venv.exists()


def _without_python(venv):
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/nowhere/python3")


def _of_another_python(venv):
    folder = next(venv.glob("lib/python*"))
    folder.rename(folder.with_name("python3.5"))


def _replaced_by(make):
    def replace(venv):
        shutil.rmtree(venv)
        make(venv)

    return replace


DAMAGE = {
    "no Python": _without_python,
    "another Python's packages": _of_another_python,
    "interrupted": lambda venv: (venv / ".installing").touch(),
    "a file": _replaced_by(Path.touch),
    "a dangling link": _replaced_by(lambda venv: venv.symlink_to("/nowhere")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_broken_environment_is_made_again(installed, damage):
    damage(installed.venv)
    done = installed.install("--keep")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Removing .venv, which is incomplete or of another Python\n")
    assert installed.works()


@pytest.mark.parametrize(("options", "is_kept"), [(("--keep",), True), ((), False)], ids=["default", "PYTHON is given"])
def test_an_environment_of_another_python_is_kept_unless_a_python_is_given(installed, options, is_kept):
    python = installed.venv / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\necho 'pip 1 from here (python 3.99)'\n", "utf-8")
    python.chmod(0o755)
    assert ("Creating .venv" not in installed.install(*options).stdout) is is_kept


def test_without_internet_the_setting_of_a_mirror_is_named(installed):
    installed.lock("# another one, to be installed\n")
    nowhere = f"http://127.0.0.1:{free_port()}/simple"
    config = installed.folder / "pip.conf"
    config.write_text(f"[global]\nindex-url = {nowhere}\n", "utf-8")
    told = installed.make_run(PIP_CONFIG_FILE=str(config), PIP_INDEX_URL="")
    assert "the package index cannot be reached" in told
    assert "To use a mirror: PIP_INDEX_URL=https://MIRROR/simple make run" in told
    told = installed.make_run(PIP_INDEX_URL=nowhere)
    assert f"PIP_INDEX_URL is {nowhere}. The address of a mirror usually ends in /simple." in told
    told = installed.make_run(PIP_INDEX_URL=nowhere.replace("//", "//user:my-secret@"))
    assert "//****@127.0.0.1" in told
    assert "my-secret" not in told
    done = installed.install()
    assert done.returncode == 0, "it continues with a connection"
    assert "Removing" not in done.stdout


def test_a_port_an_address_and_a_setting_that_cannot_work_are_reported_before_anything_is_installed(checkout):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = checkout.make_run(ORDERS_PORT=str(other.getsockname()[1]))
    assert "Address already in use" in taken
    assert "ORDERS_PORT=8001 make run" in taken
    elsewhere = checkout.make_run(ORDERS_HOST="192.0.2.1")
    assert "cannot listen on 192.0.2.1" in elsewhere
    assert "already running" not in elsewhere
    (checkout.folder / "instance" / "config.toml").write_text("port = 0\n", "utf-8")
    checkout.environ.pop("ORDERS_PORT")
    assert "config.toml: port: must be a whole number" in checkout.make_run()
    assert not checkout.venv.exists()


def as_nobody(command, **more):
    """Run a command as another user without rights."""
    nobody = pwd.getpwnam("nobody")
    return finished(command, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], **more)


NEEDS_ANOTHER_USER = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access(SYSTEM_PYTHON, os.X_OK),
    reason=f"needs {SYSTEM_PYTHON}, and root, who can run a command as another user",
)


@NEEDS_ANOTHER_USER
@pytest.mark.parametrize("foreign", ["instance/config.toml", "instance", ".venv"])
def test_files_of_another_user_are_named_with_their_owner_and_the_remedy(index, foreign):
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are for root only
        folder = Path(name)
        folder.chmod(0o755)
        checkout = Checkout(folder, index)
        (folder / ".venv" / "bin").mkdir(parents=True)
        shutil.copy("/bin/true", folder / ".venv" / "bin" / "python")
        (folder / "instance" / "config.toml").touch()
        if foreign != ".venv":
            (folder / foreign).chmod(0o600)
        command = [SYSTEM_PYTHON, "deploy/virtualenv.py", "--to-serve", "requirements/base.txt"]
        environ = checkout.environ | {"HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
        done = as_nobody(command, cwd=folder, env=environ)
    assert done.returncode == 1
    assert "permission denied" in done.stderr, done.stderr
    assert f"belongs to the user {pwd.getpwuid(0).pw_name}, and this is the user nobody" in done.stderr
    remedy = f"sudo chown -R nobody {folder / foreign.removesuffix('/config.toml')}"
    assert done.stderr.rstrip().endswith(remedy)


@NEEDS_ANOTHER_USER
def test_no_command_takes_over_a_folder_above_the_data():
    with tempfile.TemporaryDirectory() as above:  # for root only
        # The checkout may be in a folder that only root can read, so the module comes from standard input.
        code = (
            "import pathlib, sys, types; settings = sys.modules['settings'] = types.ModuleType('settings'); "
            "settings.__file__ = '/runtime/settings.py'; exec(sys.stdin.read(), settings.__dict__); "
            f"print(settings.denied(pathlib.Path('{above}/data/config.toml')))"
        )
        module = (ROOT / "runtime/settings.py").read_text("utf-8")
        done = as_nobody([SYSTEM_PYTHON, "-B", "-c", code], input=module)
    assert f"{above} belongs to the user root" in done.stdout, done.stderr
    assert "ORDERS_INSTANCE=FOLDER" in done.stdout
    assert "chown" not in done.stdout


@pytest.mark.parametrize("phase", ["Creating", "Connecting", "Installing"])
def test_ctrl_c_in_each_phase_ends_in_one_line_and_the_next_run_continues(request, index, phase):
    checkout = request.getfixturevalue("checkout" if phase == "Creating" else "installed")
    good = (checkout.folder / "requirements/base.txt").read_text("utf-8")
    if phase == "Connecting":
        checkout.lock("# another one, to be installed\n")
        script = checkout.folder / "deploy" / "virtualenv.py"
        script.write_text(script.read_text("utf-8").replace('folder, "segno"', 'folder, "hangs"'), "utf-8")
    elif phase == "Installing":
        checkout.lock(f"hangs==1.0 --hash=sha256:{'0' * 64}\n")
    command = [sys.executable, "deploy/virtualenv.py", "requirements/base.txt"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=checkout.folder, env=checkout.environ, start_new_session=True, **pipes)
    while not process.stdout.readline().startswith(phase):
        assert process.poll() is None
    if phase != "Creating":
        assert index.asked.wait(60)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    errors = process.communicate(timeout=60)[1]
    assert (process.returncode, errors) == (130, "\nStopped. Repeat the command to continue.\n")
    shutil.copy(ROOT / "deploy" / "virtualenv.py", checkout.folder / "deploy")
    checkout.lock(good)
    assert checkout.install().returncode == 0
    assert checkout.works()
