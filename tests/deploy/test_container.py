"""The image and the two compose files: the copied files suffice to serve, as an ordinary user, with a clean end."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from settings import Settings
from tests.support import ROOT, DemoService, completed, free_port, until

DOCKER = ROOT / "deploy" / "docker"
# The file's instructions, with continued lines joined.
LINES = [
    line.split(None, 1)
    for line in (DOCKER / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
COPIED = [arguments.split() for word, arguments in LINES if word == "COPY" and not arguments.startswith("--from")]
SOURCES = [source for *sources, _ in COPIED for source in sources]
FORMS = {name: yaml.safe_load((DOCKER / name).read_text("utf-8")) for name in ("compose.yaml", "compose.postgres.yaml")}
OURS = [
    pytest.param(service, id=f"{form}:{name}")
    for form, read in FORMS.items()
    for name, service in read["services"].items()
    if "build" in service
]


def last(word):
    """The image's last instruction of this kind."""
    return [arguments for each, arguments in LINES if each == word][-1]


class Copied(DemoService):
    """A service that runs from the folder of an image."""

    def __init__(self, folder, instance):
        super().__init__(instance)
        self.entry = (str(folder / "app.py"),)


@pytest.fixture
def copied(tmp_path):
    """The files that the image copies, in a folder of its own, with compiled translations."""
    folder = tmp_path / "service"
    for *sources, target in COPIED:
        for source in sources:
            here, there = ROOT / source, folder / target
            if here.is_dir():
                shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
            else:
                there.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)
    compile_ = ["-m", "babel.messages.frontend", "--quiet", "compile", "-d", "blueprints/translations"]
    subprocess.run([sys.executable, *compile_], cwd=folder, check=True)
    return folder


@pytest.mark.usefixtures("slow", "demo")
def test_the_copied_files_suffice_to_serve_and_nothing_is_written_outside_the_instance(copied, instance):
    def files():
        return {path for path in copied.rglob("*") if "__pycache__" not in path.parts}

    before = files()
    service = Copied(copied, instance).start()
    completed(service.api)
    refused = service.api.call("orderQueryDetail", {}, headers={"Accept-Language": "zh"})
    until(lambda: "order.completed" in service.api.send("GET", "/sandbox/inbox").text)
    assert service.stop() == 0
    assert re.search(r"[\u4e00-\u9fff]", refused.json["msg"])
    assert files() == before


def test_every_source_exists_and_is_visible_to_the_build():
    first, *rest = [
        line
        for line in (DOCKER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
        if line[:1] not in ("#", "")
    ]
    assert first == "*"
    assert {line[1:] for line in rest if line.startswith("!")} == set(SOURCES)
    assert [source for source in SOURCES if not (ROOT / source).exists()] == []


def test_it_runs_as_an_ordinary_user_and_receives_sigterm_itself():
    assert last("USER") == "orders"
    # Its shell is replaced by Python, so that signals reach Python.
    assert json.loads(last("CMD")) == ["orders", "serve"]
    assert last("STOPSIGNAL") == "SIGTERM"
    assert "--require-hashes" in " ".join(arguments for word, arguments in LINES if word == "RUN")
    assert re.fullmatch(r"PYTHON=3\.\d+\.\d+-slim-\w+", LINES[0][1])


def test_the_health_check_reports_the_health_of_the_service(service):
    def checked(port):
        command = [sys.executable, DOCKER / "healthy.py"]
        return subprocess.run(command, env={"ORDERS_PORT": str(port)}, capture_output=True).returncode

    assert checked(service.port) == 0
    assert checked(free_port()) == 1
    assert '"healthy.py"' in last("HEALTHCHECK")


@pytest.mark.parametrize("service", OURS)
def test_a_container_has_few_rights_and_enough_room_and_time(service):
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"] == ["instance:/instance"]
    assert int(service["stop_grace_period"].removesuffix("s")) > 35
    threads = Settings.threads + Settings.callback_workers + Settings.channel_workers + 32  # and its own
    assert service["pids_limit"] >= threads * 3 // 2


@pytest.mark.parametrize("form", FORMS)
def test_ports_are_published_on_loopback_only(form):
    published = [port for service in FORMS[form]["services"].values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("service", OURS)
def test_every_variable_is_a_setting(service):
    names = {name.removeprefix("ORDERS_").lower() for name in service["environment"] if name != "PGPASSWORD"}
    assert {name for name in names if name not in Settings.__dataclass_fields__} == set()


def test_the_demo_is_the_same_address_inside_and_outside():
    service = FORMS["compose.yaml"]["services"]["orders"]
    port = "${ORDERS_PORT:-8000}"
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert service["environment"] == {
        "ORDERS_DEMO": "1",
        "ORDERS_PORT": port,
        "ORDERS_SITE_URL": f"http://127.0.0.1:{port}",
    }


def test_on_postgres_the_database_is_upgraded_once_before_any_service_starts():
    services = FORMS["compose.postgres.yaml"]["services"]
    assert services["migrate"]["command"] == ["orders", "db", "migrate"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for serving in (services["orders-1"], services["orders-2"]):
        assert serving["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert "command" not in serving
