"""The wheel and the one file, installed and run in an empty folder without any other file of the project."""

import importlib.util
import os
import re
import subprocess
import sys
import zipfile

import pytest
import requests

from tests.support import ROOT, DemoService, completed, finished, free_port, until

pytestmark = pytest.mark.usefixtures("slow")


class Installed(DemoService):
    """The demo, started by `tillbook demo` in an empty folder, with all data in the user's home."""

    def __init__(self, command, folder):
        super().__init__(folder / "home" / ".local" / "share" / "tillbook", port=free_port())
        self.command, self.folder, self.home = command, folder / "empty", folder / "home"
        self.folder.mkdir()
        self.home.mkdir()
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("ORDERS_", "PYTHON", "XDG_"))}
        self.environ = kept | {"HOME": str(self.home), "ORDERS_PORT": str(self.port)}
        self.log = folder / "demo.log"

    def launch(self):
        command = [*self.command, "demo"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, env=self.environ, stdout=log, stderr=log)

    def run(self, *arguments):
        return finished([*self.command, *arguments], cwd=self.folder, env=self.environ, check=True).stdout


@pytest.fixture
def wheel(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path / "dist"]
    finished(build, check=True)
    return next((tmp_path / "dist").glob("tillbook-*-py3-none-any.whl"))


def _by_pip(wheel, folder):
    """The command of the wheel, installed with its dependencies in an environment of its own."""
    finished([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    finished([*pip, "--require-hashes", "-r", "requirements/base.txt"], check=True)
    finished([*pip, "--no-index", wheel], check=True)
    return [folder / "venv" / "bin" / "tillbook"]


def _in_one_file(wheel, folder):
    """The command of the one file, which is built from the wheel."""
    finished([sys.executable, "deploy/wheel/one_file.py", wheel], check=True)
    return [sys.executable, next(wheel.parent.glob("tillbook-*.pyz"))]


@pytest.mark.sqlite
@pytest.mark.parametrize("command_of", [_by_pip, _in_one_file], ids=["wheel", "one file"])
def test_the_demo_runs_in_an_empty_folder_with_everything_it_serves(tmp_path, wheel, command_of):
    service = Installed(command_of(wheel, tmp_path), tmp_path)
    assert "Common tasks" in service.run("--help"), "the one file has unpacked itself now"
    service.start()

    def page(path, **headers):
        return requests.get(service.url + path, headers=headers, timeout=5)

    try:
        order = completed(service.api)
        until(lambda: "order.completed" in page("/sandbox/inbox").text)
        assert order in service.run("order", "list")
        assert "收付台" in page("/docs/zh/integrating").text
        assert re.search(r"[\u4e00-\u9fff]", page("/nowhere", **{"Accept-Language": "zh"}).json()["msg"])
        assert "北京" in page("/addons/paychannel/channel.gatewaya/provinceList").text
        files = re.findall(r'(?:href|src)="(/[^"]+\.(?:css|js|svg)[^"]*)"', page("/console/login").text)
        for path in ("/docs/images/console-en.webp", *files):
            assert page(path).status_code == 200, path
        again = re.search(r"`(.+) demo-curl` prints a new one", service.log.read_text("utf-8"))[1]
        environ = service.environ | {"PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}"}
        printed = finished(f"{again} demo-curl", shell=True, env=environ).stdout
        assert f"{service.url}/merchant/createOrder" in printed
    finally:
        assert service.stop() == 0
    assert list(service.folder.iterdir()) == []
    assert {path.name for path in service.instance.iterdir()} >= {"orders.sqlite", "vault.key"}


def test_a_build_replaces_the_translations_in_one_step_for_services_that_start_meanwhile(tmp_path):
    compiled = ROOT / "blueprints" / "translations" / "zh" / "LC_MESSAGES" / "messages.mo"
    with compiled.open("rb") as before:
        finished([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path], check=True)
        assert not os.path.samestat(os.fstat(before.fileno()), compiled.stat()), "it was written over"


def test_a_build_shows_no_unfinished_translations_to_builds_and_copies_at_the_same_time(monkeypatch):
    spec = importlib.util.spec_from_file_location("build_hook", ROOT / "deploy" / "wheel" / "build_hook.py")
    hook, seen = importlib.util.module_from_spec(spec), []
    spec.loader.exec_module(hook)
    write = hook.write_mo

    def written(file, catalog):
        seen.extend(path.name for path in (ROOT / "blueprints" / "translations").rglob("*") if path.is_file())
        write(file, catalog)

    monkeypatch.setattr(hook, "write_mo", written)
    hook.Translations(str(ROOT), {}, None, None, "", "wheel").initialize("standard", {"artifacts": []})
    assert set(seen) == {"messages.po", "messages.mo"}


def test_the_wheel_installs_one_top_level_name_and_every_file_that_is_served(wheel):
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"tillbook"}
    tracked = finished(["git", "ls-files", "-z"], check=True).stdout
    folders = ("blueprints", "cli", "docs", "gateways", "models", "regions_data", "schemas", "services")
    served = ("app.py", *(f"{folder}/" for folder in folders))
    missing = {name for name in tracked.split("\0") if name.startswith(served) and f"tillbook/{name}" not in names}
    assert missing == set()
    assert "tillbook/blueprints/translations/zh/LC_MESSAGES/messages.mo" in names
