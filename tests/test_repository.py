"""What GitHub reads: workflows, Dependabot, issue forms; and the notes of a release."""

import re
import shutil
import sys
import tomllib

import pytest
import yaml

from runtime.settings import VERSION
from tests.covered_lines import by_package
from tests.support import ROOT, finished
from tests.test_make import COMMANDS

GITHUB = ROOT / ".github"
WORKFLOWS = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in GITHUB.glob("workflows/*.yml")}
JOBS = [(f"{name}:{key}", job) for name, workflow in WORKFLOWS.items() for key, job in workflow["jobs"].items()]
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_pull_requests_and_main_run_what_must_pass_on_the_oldest_and_the_newest_python():
    ci = WORKFLOWS["ci"]
    assert ci[True] == {"pull_request": None, "push": {"branches": ["main"]}}  # YAML reads the key `on` as true
    test = ci["jobs"]["test"]
    assert "bash .ci/run" in [step.get("run") for step in test["steps"]]
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    named = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if " :: Python :: 3." in line]
    assert test["strategy"]["matrix"]["python"] == [oldest, named[-1]]
    assert named[0] == oldest


@pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS)
def test_a_workflow_may_only_read_unless_a_job_says_otherwise(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow[True]  # it would give a stranger's code the rights of the repository


def test_only_the_job_that_publishes_may_write_and_it_runs_no_code_of_the_repository():
    assert [name for name, job in JOBS if "permissions" in job] == ["release:publish"]
    steps = WORKFLOWS["release"]["jobs"]["publish"]["steps"]
    assert not any(step.get("uses", "").startswith("actions/checkout") for step in steps)


@pytest.mark.parametrize("job", [job for _, job in JOBS], ids=[name for name, _ in JOBS])
def test_a_job_ends_in_time_keeps_no_credentials_and_runs_existing_commands_and_actions_of_a_version(job):
    assert job["timeout-minutes"] <= 90
    for step in job["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})", step["uses"])
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"] == {"persist-credentials": False}
        command = step.get("run", "")
        # Expressions may have text of strangers. Values are passed as environment variables, which no shell executes.
        assert "${{" not in command
        assert set(re.findall(r"\bmake ([a-z-]+)", command)) <= set(COMMANDS)
        for file in re.findall(r"(?:bash|python3?) (\.ci/\S+)", command):
            assert (ROOT / file).is_file()


def test_dependencies_are_audited_each_week():
    audit = WORKFLOWS["audit"]
    assert [len(each["cron"].split()) for each in audit[True]["schedule"]] == [5]
    assert "make audit" in [step.get("run") for step in audit["jobs"]["audit"]["steps"]]


def test_dependabot_watches_every_kind_of_dependency_each_week_in_groups():
    manifests = {"uv": "requirements/base.txt", "github-actions": ".github/workflows/ci.yml"}
    manifests |= {"docker": "Dockerfile", "npm": "package-lock.json"}
    config = yaml.safe_load((GITHUB / "dependabot.yml").read_text("utf-8"))
    assert config["version"] == 2
    assert {each["package-ecosystem"] for each in config["updates"]} == set(manifests)
    for each in config["updates"]:
        assert (ROOT / each["directory"].strip("/") / manifests[each["package-ecosystem"]]).is_file()
        assert each["schedule"] == {"interval": "weekly"}
        assert [group["patterns"] for group in each["groups"].values()] == [["*"]]


@pytest.mark.parametrize("file", FORMS, ids=[file.stem for file in FORMS])
def test_an_issue_form_is_complete(file):
    form = yaml.safe_load(file.read_text("utf-8"))
    if file.stem == "config":
        assert form == {"blank_issues_enabled": False}
        return
    assert set(form) == {"name", "description", "labels", "body"}
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert fields[0]["validations"]["required"]


def test_editors_use_the_line_length_that_is_checked():
    config = (ROOT / ".editorconfig").read_text("utf-8")
    assert f"[*.py]\nmax_line_length = {PROJECT['tool']['ruff']['line-length']}\n" in config


@pytest.fixture
def release(slow, tmp_path):
    """`release(tag)`: what `.ci/release.py` prints for a tag, in a copy of the files that it reads."""
    names = [".ci/release.py", "pyproject.toml", "clients/python/pyproject.toml", "runtime/settings.py", "CHANGELOG.md"]
    for name in [*names, f"tests/data/{VERSION}.sql"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def run(tag):
        return finished([sys.executable, tmp_path / ".ci/release.py", tag, "https://example.com/owner/name"])

    return run


def test_a_release_has_the_notes_of_its_version_and_the_address_of_its_repository(release, tmp_path):
    done = release(f"v{VERSION}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "\n## " not in done.stdout
    assert len(done.stdout) > 100
    for name in ("pyproject.toml", "clients/python/pyproject.toml"):
        urls = tomllib.loads((tmp_path / name).read_text("utf-8"))["project"]["urls"]
        assert urls["Source"] == "https://example.com/owner/name"
        assert urls["Changelog"] == f"https://example.com/owner/name/blob/v{VERSION}/CHANGELOG.md"


@pytest.mark.parametrize(
    ("file", "before", "words"),
    [
        ("pyproject.toml", f'version = "{VERSION}"', "pyproject.toml has version 9.9"),
        ("clients/python/pyproject.toml", f'version = "{VERSION}"', "python/pyproject.toml has"),
        ("runtime/settings.py", f'VERSION = "{VERSION}"', "settings.py has another VERSION"),
        ("CHANGELOG.md", f"## [{VERSION}]", f"CHANGELOG.md has no changes of version {VERSION}"),
    ],
)
def test_a_release_whose_versions_differ_is_refused(release, tmp_path, file, before, words):
    text = (tmp_path / file).read_text("utf-8")
    assert before in text
    (tmp_path / file).write_text(text.replace(before, before.replace(VERSION, "9.9")), "utf-8")
    done = release(f"v{VERSION}")
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert "\n[project.urls]\n" not in (tmp_path / "pyproject.toml").read_text("utf-8")


def test_a_release_without_its_database_for_later_tests_is_refused(release, tmp_path):
    (tmp_path / f"tests/data/{VERSION}.sql").unlink()
    assert "tests.released_database" in release(f"v{VERSION}").stderr


def test_coverage_is_summed_by_package():
    def file(statements, covered):
        return {"summary": {"num_statements": statements, "covered_lines": covered}}

    files = {"services/orders/a.py": file(10, 5), "services/orders/b/c.py": file(10, 9), "app.py": file(4, 4)}
    assert by_package({"files": files}) == {"app.py": (4, 4), "services/orders": (20, 14), "total": (24, 18)}
