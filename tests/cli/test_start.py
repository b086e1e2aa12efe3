"""A command does not import the served part of the service: imports take most of a command's time."""

import re
import subprocess
import sys

import pytest

from tests.support import ROOT, Service

pytestmark = pytest.mark.usefixtures("slow")

SERVED = {"blueprints", "serving", "granian", "uvloop", "wtforms", "apscheduler"}
IMPORTED = re.compile(r"^import time: .*\| +([\w.]+)$", re.MULTILINE)


@pytest.mark.parametrize("command", [("merchant", "list"), ("ledger", "balances"), ("operator", "list")], ids=" ".join)
def test_a_command_does_not_import_the_served_part(instance, command):
    environ = Service(instance).environ
    timed = [sys.executable, "-X", "importtime", "-m", "flask", *command]
    done = subprocess.run(timed, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in IMPORTED.findall(done.stderr)}
    assert {"app", "cli", "models", "services"} <= imported
    assert not imported & SERVED
