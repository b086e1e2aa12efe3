"""The image and the compose files: the build sees every file of the wheel, and an ordinary user runs it."""

import json
import os
import re
import shlex
import shutil
import sys
import zipfile
from itertools import pairwise

import pytest
import requests
import yaml

from runtime.settings import Settings
from services.sandbox import demo
from tests.support import ROOT, finished, free_port, until

DOCKER = ROOT / "deploy" / "docker"
# The file's instructions, with continued lines joined.
LINES = [
    line.split(None, 1)
    for line in (DOCKER / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
# What the build sees.
FIRST, *VISIBLE = [
    line for line in (DOCKER / "Dockerfile.dockerignore").read_text("utf-8").splitlines() if line[:1] not in ("#", "")
]
SEEN = [line[1:] for line in VISIBLE if line.startswith("!")]
FORMS = {name: yaml.safe_load((DOCKER / name).read_text("utf-8")) for name in ("compose.yaml", "compose.postgres.yaml")}
OURS = [
    pytest.param(service, id=f"{form}:{name}")
    for form, read in FORMS.items()
    for name, service in read["services"].items()
    if service["image"].startswith("tillbook")
]
BASE_IMAGE = LINES[0][1].split()[0]
GUIDE = (ROOT / "docs" / "guides" / "containers.md").read_text("utf-8").replace("\\\n", " ")


def last(word):
    """The image's last instruction of this kind."""
    return [arguments for each, arguments in LINES if each == word][-1]


def _wheel_of(folder, target):
    """The wheel built from a folder: its files by name."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", target]
    finished(build, cwd=folder, check=True)
    with zipfile.ZipFile(next(target.glob("*.whl"))) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("RECORD")}


@pytest.mark.usefixtures("slow")
def test_the_build_sees_all_files_of_the_wheel(tmp_path):
    assert FIRST == "*"
    folder = tmp_path / "build"
    for name in SEEN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
        else:
            shutil.copy(ROOT / name, folder / name)  # fails if it does not exist
    assert _wheel_of(folder, tmp_path / "image") == _wheel_of(ROOT, tmp_path / "here")


def test_it_runs_as_an_ordinary_user_and_receives_sigterm_itself():
    assert last("USER") == "tillbook"
    # Its shell is replaced by Python, so that signals reach Python.
    assert json.loads(last("CMD")) == ["tillbook", "serve"]
    assert last("STOPSIGNAL") == "SIGTERM"
    installs = re.findall(r"pip [^&]*install [^&]*", " ".join(arguments for word, arguments in LINES if word == "RUN"))
    assert len(installs) == 3
    assert all("--require-hashes" in install or "--no-index" in install for install in installs)
    first, *others = [arguments for word, arguments in LINES if word == "FROM"]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+ AS base", first), "Dependabot finds no version in an ARG"
    assert {image.split()[0] for image in others} == {"base"}


def test_the_health_check_reports_the_health_of_the_service(service):
    def checked(port):
        return finished([sys.executable, DOCKER / "healthy.py"], env={"ORDERS_PORT": str(port)}).returncode

    assert (checked(service.port), checked(free_port())) == (0, 1)
    assert '"/opt/tillbook/healthy.py"' in last("HEALTHCHECK")


@pytest.mark.parametrize("service", OURS)
def test_a_container_has_few_rights_enough_room_and_time_and_no_unknown_setting(service):
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"] == ["instance:/instance"]
    assert int(service["stop_grace_period"].removesuffix("s")) > 35
    threads = Settings.threads + Settings.callback_workers + Settings.channel_workers + 32  # and its own
    assert service["pids_limit"] >= threads * 3 // 2
    names = {name.removeprefix("ORDERS_").lower() for name in service["environment"]} - {"pgpassword"}
    assert names <= Settings.__dataclass_fields__.keys()


def test_the_documented_docker_run_has_the_same_limits_as_the_demo():
    (command,) = re.findall(r"docker run (--detach .*)", GUIDE)
    words, service = shlex.split(command), FORMS["compose.yaml"]["services"]["tillbook"]
    options = dict(pairwise(words))
    assert {"--init", "--read-only"} <= set(words)
    assert options["--tmpfs"] == service["tmpfs"][0]
    assert options["--cap-drop"] == service["cap_drop"][0]
    assert options["--security-opt"] == service["security_opt"][0].removesuffix(":true")
    assert options["--pids-limit"] == str(service["pids_limit"])
    assert options["--stop-timeout"] == service["stop_grace_period"].removesuffix("s")
    assert options["--publish"].startswith("127.0.0.1:")


@pytest.mark.parametrize("form", FORMS)
def test_a_form_publishes_on_loopback_only_and_builds_the_image_once_by_the_environments_package_index(form):
    """Docker fails if it builds one image for several services at once. Only a build keeps it from pulling the name."""
    services = FORMS[form]["services"].values()
    published = [port for service in services for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    ours = [service for service in services if service["image"].startswith("tillbook")]
    assert sorted(service["pull_policy"] for service in ours) == ["build"] + ["never"] * (len(ours) - 1)
    (built,) = [service for service in services if "build" in service]
    assert built["pull_policy"] == "build"
    assert built["build"]["args"]["PIP_INDEX_URL"] is None  # compose then takes it from the environment
    words = [word if word != "ARG" else f"ARG {arguments}" for word, arguments in LINES]
    assert words.index("ARG PIP_INDEX_URL") < words.index("RUN")


def test_the_demo_is_the_same_address_inside_and_outside():
    service = FORMS["compose.yaml"]["services"]["tillbook"]
    port = "${ORDERS_PORT:-8000}"
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert service["environment"] == {
        "ORDERS_DEMO": "1",
        "ORDERS_PORT": port,
        "ORDERS_SITE_URL": f"http://127.0.0.1:{port}",
    }


def test_the_demo_names_its_command_as_it_is_run_in_the_project_folder_in_docker_and_installed(tmp_path):
    (tmp_path / "project" / ".venv").mkdir(parents=True)
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "healthy.py").touch()
    assert demo.command(tmp_path / "project", tmp_path / "image") == ".venv/bin/tillbook"
    assert re.fullmatch(r"docker exec \S+ tillbook", demo.command(tmp_path, tmp_path / "image"))
    assert demo.command(tmp_path, tmp_path) == "tillbook"


def _docker(*arguments, **more):
    return finished(["docker", *arguments], check=True, **more).stdout


@pytest.fixture
def compose(slow, tmp_path):
    """Run `docker compose` on the demo's file, with an image, a project and a port that are the test's own."""
    if shutil.which("docker") is None or any(
        finished(["docker", *tried]).returncode for tried in (["compose", "version"], ["image", "inspect", BASE_IMAGE])
    ):
        pytest.skip(f"needs Docker with its compose plugin, and the image: docker pull {BASE_IMAGE}")
    named = tmp_path / "named.yaml"
    named.write_text("services: {tillbook: {image: tillbook-tested}}", "utf-8")
    environ = os.environ | {"ORDERS_PORT": str(free_port()), "COMPOSE_PROJECT_NAME": "tillbook-tested"}

    def run(*arguments):
        files = ["--file", DOCKER / "compose.yaml", "--file", named]
        return _docker("compose", *files, *arguments, env=environ)

    yield run
    run("down", "--volumes", "--rmi", "all")


@pytest.mark.sqlite
def test_in_docker_the_demo_becomes_healthy_takes_a_payment_and_stops_cleanly(compose):
    compose("up", "--detach", "--wait")
    container = compose("ps", "--quiet").strip()
    banner = compose("logs", "--no-log-prefix")
    (command,) = re.findall(r"`(docker exec \S+ tillbook demo-curl)`", banner)
    request = json.loads(re.search(r"-d '(.*?)'", _docker(*shlex.split(command)[1:]))[1])
    url = re.search(r"Tour +(\S+?)/ ", banner)[1]
    order = requests.post(f"{url}/merchant/createOrder", json=request, timeout=5).json()["data"]["order_no"]
    requests.post(f"{url}/sandbox/pay", data={"order_no": order, "outcome": "success"}, timeout=5)
    until(lambda: "order.completed" in requests.get(f"{url}/sandbox/inbox", timeout=5).text)
    written = {line.split()[1] for line in _docker("diff", container).splitlines()}
    assert written <= {"/usr", "/usr/sbin", "/usr/sbin/docker-init"}  # by Docker
    compose("stop")
    assert _docker("inspect", "--format", "{{.State.ExitCode}}", container).strip() == "0"
    assert compose("logs", "--no-log-prefix").rstrip().endswith("stopped")


def test_on_postgres_the_database_is_upgraded_once_before_any_service_starts():
    services = FORMS["compose.postgres.yaml"]["services"]
    assert services["migrate"]["command"] == ["tillbook", "db", "migrate"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for serving in (services["orders-1"], services["orders-2"]):
        assert serving["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert "command" not in serving
