"""The quickstart's commands work as they are, from the first merchant to the first paid order."""

import re
import textwrap

import pytest

from tests.support import ROOT, Service, finished

PAGE = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
SUDO = 'sudo() { shift; .venv/bin/tillbook "$@"; }\n'  # sudo tillbook COMMAND


@pytest.mark.sqlite
@pytest.mark.usefixtures("slow", "any_database")
def test_the_commands_lead_to_a_paid_order(tmp_path):
    commands = PAGE.partition("## Set up the first merchant and channel")[2]
    service = Service(tmp_path / "instance").start()
    filled = {"https://pay.example.com": service.url, "/opt/tillbook": str(ROOT)}
    printed = ""
    for block in re.findall(r"```sh\n(.*?)```", commands, re.DOTALL):
        script = textwrap.dedent(block)
        for placeholder, value in filled.items():
            script = script.replace(placeholder, value)
        done = finished(["bash", "-euc", SUDO + script], env=service.environ)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        printed += done.stdout
        if secret := re.search(r"^api_secret +(\S+)$", done.stdout, re.MULTILINE):
            filled["THE_API_SECRET"] = secret[1]
        if order_no := re.search(r"'order_no': '(\d+)'", done.stdout):
            filled["ORDER_NO"] = order_no[1]
    service.stop()
    assert re.search(rf"^{filled['ORDER_NO']} .* completed +1\.00 ", printed, re.MULTILINE)
    assert re.search(r"^shop +0\.99 ", printed, re.MULTILINE)
