"""The image and the compose files: the build sees every file of the wheel, and an ordinary user runs it."""

import json
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
import yaml

from settings import Settings
from tests.support import ROOT, free_port

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
    if "build" in service
]


def last(word):
    """The image's last instruction of this kind."""
    return [arguments for each, arguments in LINES if each == word][-1]


def _wheel_of(folder, target):
    """The wheel built from a folder: its files by name."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", target]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    with zipfile.ZipFile(next(target.glob("*.whl"))) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("RECORD")}


@pytest.mark.usefixtures("slow")
def test_the_build_sees_all_files_of_the_wheel(tmp_path):
    folder = tmp_path / "build"
    for name in SEEN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
        else:
            shutil.copy(ROOT / name, folder / name)
    assert _wheel_of(folder, tmp_path / "image") == _wheel_of(ROOT, tmp_path / "here")


def test_the_build_sees_only_files_that_exist():
    assert FIRST == "*"
    assert [name for name in SEEN if not (ROOT / name).exists()] == []


def test_it_runs_as_an_ordinary_user_and_receives_sigterm_itself():
    assert last("USER") == "tillbook"
    # Its shell is replaced by Python, so that signals reach Python.
    assert json.loads(last("CMD")) == ["orders", "serve"]
    assert last("STOPSIGNAL") == "SIGTERM"
    installs = re.findall(r"pip [^&]*install [^&]*", " ".join(arguments for word, arguments in LINES if word == "RUN"))
    assert len(installs) == 3
    assert all("--require-hashes" in install or "--no-index" in install for install in installs)
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+ AS base", LINES[0][1])


def test_the_health_check_reports_the_health_of_the_service(service):
    def checked(port):
        command = [sys.executable, DOCKER / "healthy.py"]
        return subprocess.run(command, env={"ORDERS_PORT": str(port)}, capture_output=True).returncode

    assert checked(service.port) == 0
    assert checked(free_port()) == 1
    assert '"/opt/tillbook/healthy.py"' in last("HEALTHCHECK")


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
    service = FORMS["compose.yaml"]["services"]["tillbook"]
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
