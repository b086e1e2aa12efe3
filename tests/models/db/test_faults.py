"""A disk that is full or read-only, a database that is locked or damaged: clear, documented, and nothing is lost."""

import logging
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from itertools import count

import pytest

from models.db import writer
from models.db.base import database
from models.db.errors import DAMAGED, FULL, LOCKED, MISSING, READ_ONLY
from models.db.writer import transaction
from services.platform import storage_health
from tests.support import Service, completed, until

pytestmark = pytest.mark.sqlite


@contextmanager
def _writing_with(**pragmas):
    """Use these pragmas on the writing connection; the next connection has none of them."""

    @transaction
    def set_up():
        for name, value in pragmas.items():
            database.execute_sql(f"PRAGMA {name} = {value}")

    set_up()
    yield
    writer.stop()


def full(instance):
    """No page can be added to the file, so SQLite responds as on a full disk."""
    return _writing_with(max_page_count=1)


def read_only(instance):
    return _writing_with(query_only=1)


@contextmanager
def waiting(instance):
    """Another process writes meanwhile, and the service waits for it."""
    with closing(sqlite3.connect(instance / "orders.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def locked(instance):
    """Another process writes meanwhile, for longer than the service waits."""
    with _writing_with(busy_timeout=50), waiting(instance):
        yield


FAULTS = pytest.mark.parametrize(("broken", "fault"), [(full, FULL), (read_only, READ_ONLY), (locked, LOCKED)])


@pytest.fixture(autouse=True)
def _nothing_said_before(monkeypatch):
    storage_health._logged.forget()
    monkeypatch.setattr(storage_health, "FRESH", 0)


@pytest.fixture
def settings_of_app():
    return {"requests_per_second": 10_000}


def _refused(call, most=400):
    """Call until the first refusal, because some calls still find room in pages; return it and the successes."""
    for made in range(most):
        answer = call()
        if answer.code != 1:
            return answer, made
    raise AssertionError(f"none of {most} was refused")


def _health(http, status):
    """The response of `/healthz` once it has this status."""
    return until(lambda: (answer := http("GET", "/healthz")).status == status and answer)


@FAULTS
def test_what_can_not_be_stored_is_50300_and_does_not_exist_and_queries_continue(
    instance, api, balances, caplog, broken, fault
):
    numbers = count()

    def buy():
        number = next(numbers)
        return api.buy("1.00", nonce=f"nonce-{number:04}", headers={"Idempotency-Key": f"key-{number}"})

    with broken(instance):
        refused, bought = _refused(buy)
        not_sold, sold = _refused(lambda: api.sell("1.00"))
        assert api.listed().data["total"] == bought + sold
    for each in (refused, not_sold):
        assert (each.status, each.code, each.data) == (503, 50300, None)
        assert int(each.headers["Retry-After"]) == fault.retry_after
    said = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage().split(" (")[0] for record in said] == [fault.text], "one line, however often"
    assert not said[0].exc_info

    assert balances()[1] == sold * 100
    assert api.buy(nonce=f"nonce-{bought:04}").code == 40104, "the refused order's nonce stays used"
    orders = {api.buy("1.00", headers={"Idempotency-Key": f"key-{bought}"}).data["order_no"] for _ in range(2)}
    assert (len(orders), api.listed().data["total"]) == (1, bought + sold + 1)
    assert api.sell("1.00").code == 1  # works again without a restart


@FAULTS
@pytest.mark.usefixtures("slow")
def test_a_notice_that_can_not_be_stored_is_not_acknowledged_and_counts_when_it_is_repeated(
    instance, api, balances, broken, fault
):
    opened = [api.buy("100.00").data["order_no"] for _ in range(200)]
    before = balances()[0]
    with broken(instance):
        answers = [api.notice(order_no, 10_000, reference=order_no).status for order_no in opened]
    assert 503 in answers
    assert set(answers) <= {200, 503}
    assert balances()[0] == before + answers.count(200) * 9_940
    for order_no in opened:
        assert api.notice(order_no, 10_000, reference=order_no).status == 200
    assert balances()[0] == before + len(opened) * 9_940


@pytest.mark.parametrize(("broken", "fault"), [(read_only, READ_ONLY), (locked, LOCKED)])
def test_health_reports_the_fault_and_its_end(instance, http, broken, fault):
    assert http("GET", "/healthz").status == 200
    with broken(instance):
        sick = _health(http, 503)
        assert (sick.code, sick.data) == (50300, None)
        assert fault.word in sick.json["msg"]
    _health(http, 200)


@pytest.mark.parametrize("broken", [read_only, locked])
def test_a_job_stops_until_its_next_run_and_then_does_the_due_work(instance, api, due, caplog, broken):
    order_no = completed(api)
    sweep = storage_health.surviving(due.callbacks)
    with broken(instance):
        assert sweep() is None
    assert sweep() == 1
    assert api.status(order_no) == "completed"
    assert not [record for record in caplog.records if record.exc_info]


def test_a_jobs_own_errors_are_not_treated_as_disk_errors():
    with pytest.raises(ZeroDivisionError):
        storage_health.surviving(lambda: 1 // 0)()


@pytest.mark.parametrize("replaced", [False, True])
def test_orders_are_not_written_to_a_deleted_file(instance, api, http, replaced):
    made = completed(api)
    file, elsewhere = instance / "orders.sqlite", instance / "elsewhere.sqlite"
    file.rename(elsewhere)
    if replaced:
        shutil.copyfile(elsewhere, file)
    refused = api.buy()
    assert refused.code == 50300
    assert MISSING.word in _health(http, 503).json["msg"]
    assert file.exists() is replaced
    elsewhere.rename(file)
    assert api.buy().code == 1
    assert (api.listed().data["total"], api.status(made)) == (2, "completed")


@pytest.mark.usefixtures("slow")
def test_a_command_next_to_the_log_of_a_moved_file_changes_neither(instance, tmp_path):
    service = Service(instance).start()
    made = service.api.buy().data["order_no"]
    database_file, aside = instance / "orders.sqlite", tmp_path / "aside.sqlite"
    database_file.rename(aside)
    said = service.flask("merchant", "list", check=False)
    assert (said.returncode, len(said.stderr.splitlines())) == (2, 1)
    assert "put the file back" in said.stderr
    aside.rename(database_file)
    service.kill()
    assert service.start().api.status(made) == "pending"
    service.stop()


def test_health_reports_a_write_that_does_not_finish(instance, http, monkeypatch):
    monkeypatch.setattr(storage_health, "HANGS", 0.5)
    with waiting(instance):
        sick = _health(http, 503)
        assert "hanging" in sick.json["msg"]
    _health(http, 200)


def test_a_command_that_can_not_write_reports_it_in_one_line(instance, refuses):
    with locked(instance):
        assert LOCKED.text in refuses("merchant", "set", "demo", "--name", "New")


def _damage(file, since=0, until=None):
    """Overwrite a part of a file; its size stays the same."""
    size = file.stat().st_size
    with file.open("r+b") as raw:
        raw.seek(since)
        raw.write(b"\xa5" * ((until or size) - since))


@pytest.mark.parametrize(("since", "end"), [(0, 100), (100, 4096), (4096, None)], ids=["header", "schema", "tables"])
@pytest.mark.usefixtures("slow")
def test_a_damaged_database_is_refused_at_the_start_and_unchanged(instance, since, end):
    file = instance / "orders.sqlite"
    _damage(file, since, end)
    before = file.read_bytes()
    said = Service(instance).refused()
    assert "orders.sqlite" in said
    assert DAMAGED.text in said
    assert file.read_bytes() == before


@pytest.mark.breaks_the_ledger
def test_damage_found_later_is_50300_and_reported(instance, api, http):
    api.buy()
    writer.stop()
    database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    _damage(instance / "orders.sqlite", since=4096)
    refused = api.buy()
    assert (refused.status, refused.code) == (503, 50300)
    assert DAMAGED.word in _health(http, 503).json["msg"]


@pytest.fixture
def small_disk(seeded, tmp_path):
    """A real file system of a few MiB with the seeded content on it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        shutil.copytree(seeded, folder / "instance")
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _fill(folder):
    """Use all free space; return the file that occupies it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as taken:
        try:
            while taken.write(b"x" * 4096):
                pass
        except OSError:
            return filler


@pytest.fixture
def on_small_disk(small_disk, tmp_path):
    """The service in a process of its own, on that disk; its log is elsewhere."""
    running = Service(small_disk / "instance", ORDERS_REQUESTS_PER_SECOND="10000")
    running.log = tmp_path / "service.log"
    yield running
    if running.process and running.process.poll() is None:
        running.kill()


@pytest.mark.usefixtures("slow")
def test_on_a_full_disk_nothing_is_lost_and_it_recovers_automatically(on_small_disk, small_disk):
    service = on_small_disk.start()
    api = service.api
    made = [api.buy().data["order_no"], api.sell("10.00").data["order_no"]]
    assert api.notice(made[0], 10_000).status == 200
    filler = _fill(small_disk)
    refused, more = _refused(api.buy)
    assert refused.code == 50300, service.log.read_text()
    assert FULL.word in _health(api.send, 503).json["msg"]
    assert api.listed().data["total"] == len(made) + more
    filler.unlink()
    _health(api.send, 200)
    assert api.buy().code == 1
    service.flask("order", "accept", made[1])
    until(lambda: [api.status(each) for each in made] == ["completed", "completed"])
    service.flask("ledger", "verify")
    log = service.log.read_text()
    assert FULL.text in log
    assert "Traceback" not in log
    assert service.stop() == 0


@pytest.mark.usefixtures("slow")
def test_kill_9_on_a_full_disk_loses_nothing(on_small_disk, small_disk):
    service = on_small_disk.start()
    filler = _fill(small_disk)
    _, made = _refused(service.api.buy)
    service.kill()
    filler.unlink()
    service.start()
    assert service.api.listed().data["total"] == made


@pytest.mark.usefixtures("slow")
def test_a_start_on_a_full_disk_ends_with_one_line_or_serves(on_small_disk, small_disk):
    """If the files to write at the start find no room, it reports that."""
    shutil.rmtree(small_disk / "instance")
    (small_disk / "instance").mkdir()
    _fill(small_disk)
    said = on_small_disk.refused()
    assert "orders.sqlite" in said
    assert "vault.key" not in [file.name for file in (small_disk / "instance").iterdir()]


@pytest.mark.usefixtures("slow")
def test_a_start_on_a_read_only_disk_ends_with_one_line(on_small_disk, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert "ead-only" in on_small_disk.refused()
