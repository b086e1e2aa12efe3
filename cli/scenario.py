"""`orders scenario`: run a scenario on a demo, also in a merchant's CI, or save a recorded one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from cli.output import AnySchema
from runtime import settings
from runtime.state import current
from schemas.sandbox.scenario import WrongScenario, load
from services.errors import OperatorError
from services.sandbox.scenarios import Demo, Failed, Run, summary_of

START_SECONDS = 60
STOP_SECONDS = 40


scenario = AnySchema("scenario", help="Scenarios: run steps on a demo and check the results.")


@scenario.command("run")
@click.argument(
    "files", metavar="FILES", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--url", help="Address of a running demo. Default: start a new demo in a temporary folder.")
@click.option("--callback-url", help="Address for the demo merchant's callbacks during the run. Default: the inbox.")
def run(files: tuple[Path, ...], url: str | None, callback_url: str | None) -> None:
    """Run each of FILES on a demo. Stops with status 1 at the first step whose result differs."""
    scenarios = [(file, _read(file)) for file in files]
    for file, found in scenarios:
        with nullcontext(url) if url else _own_demo() as address, _calling_back(Demo(address), callback_url) as demo:
            click.echo(f"{file}: {found['name']}")
            _carry_out(demo, found["steps"])


def _read(file: Path) -> dict[str, Any]:
    try:
        return load(file.read_text("utf-8"))
    except (WrongScenario, UnicodeDecodeError) as error:
        raise OperatorError("\n".join(f"{file}: {line}" for line in str(error).splitlines())) from None


def _carry_out(demo: Demo, steps: list[dict[str, Any]]) -> None:
    run = Run(demo)
    try:
        run.begin()
    except Failed as failure:
        raise OperatorError(str(failure)) from None
    for number, step in enumerate(steps, 1):
        try:
            run.carry_out(step)
        except Failed as failure:
            click.echo(f"{number:>4}  FAILED  {summary_of(step)}")
            click.echo(f"      expected  {failure.expected}")
            click.echo(f"      actual    {failure.seen}")
            raise click.exceptions.Exit(1) from None
        click.echo(f"{number:>4}  ok      {summary_of(step)}")


@contextmanager
def _calling_back(demo: Demo, callback_url: str | None) -> Iterator[Demo]:
    """Yield the demo while the merchant's callbacks go to this address."""
    if not callback_url:
        yield demo
        return
    try:
        before = demo.data_of("POST", "/sandbox/merchant", data={"callback_url": callback_url})["before"]
    except Failed as failure:
        raise OperatorError(str(failure)) from None
    try:
        yield demo
    finally:
        demo.data_of("POST", "/sandbox/merchant", data={"callback_url": before})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def _own_demo() -> Iterator[str]:
    """Start a demo in a temporary folder, and yield its address."""
    with tempfile.TemporaryDirectory(prefix="scenario-") as folder:
        port, log = _free_port(), Path(folder) / "service.log"
        environ = {name: value for name, value in os.environ.items() if not name.startswith(settings.PREFIX)}
        own = {"DEMO": "1", "INSTANCE": f"{folder}/instance", "PORT": str(port)}
        environ |= {f"{settings.PREFIX}{name}": value for name, value in own.items()}
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a CI that stops this process also stops the demo
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "app.py"], cwd=settings.ROOT, env=environ, stdout=out, stderr=out
            )
        try:
            demo = Demo(f"http://127.0.0.1:{port}")
            _wait_for(demo, process, log)
            yield demo.url
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(demo: Demo, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the demo responds. Raises OperatorError."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            demo.data_of("GET", "/sandbox/clock")
            return
        except Failed:
            if process.poll() is not None or time.monotonic() > deadline:
                lines = log.read_text("utf-8", "replace").strip().splitlines()
                raise OperatorError(f"the demo did not start: {lines[-1] if lines else 'its log is empty'}") from None
        time.sleep(0.1)


@scenario.command("record")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--url", help="Address of the demo. Default: the address in the settings.")
def record(file: Path, url: str | None) -> None:
    """Save the recording of a demo as a scenario in the new file FILE."""
    if file.exists():
        raise OperatorError(f"{file} already exists: specify a new file")
    demo = Demo(url or current().settings.public_url)
    try:
        recorded = demo.request("GET", "/sandbox/scenario")
    except Failed as failure:
        raise OperatorError(str(failure)) from None
    if not recorded.get("steps"):
        raise OperatorError(
            "nothing has been recorded yet: create an order through the API first"
            if "steps" in recorded
            else str(recorded.get("msg"))
        )
    file.write_text(json.dumps(recorded, ensure_ascii=False, indent=2) + "\n", "utf-8")
    click.echo(f"{len(recorded['steps'])} steps saved in {file}")
