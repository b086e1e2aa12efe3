"""Monitoring: metrics, readiness, request ids, and a machine-readable log."""

import json
import re
import shutil
import subprocess

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from blueprints.api import envelope
from services.platform import heartbeats
from tests.support import ROOT, Service, until

DASHBOARD = json.loads((ROOT / "deploy/grafana/tillbook.json").read_text("utf-8"))
RULES = ROOT / "deploy/prometheus/alerts.yml"
SITUATIONS = ROOT / "tests/data/alerts.yml"
METRICS = (ROOT / "docs/reference/metrics.md").read_text("utf-8")
FAR = {"X-Forwarded-For": "203.0.113.9"}


def _samples(text):
    """The value of each sample by name and labels."""
    families = text_string_to_metric_families(text)
    return {(each.name, *sorted(each.labels.items())): each.value for family in families for each in family.samples}


def _numbers(http):
    answer = http("GET", "/metrics")
    assert answer.status == 200
    return _samples(answer.text)


def _requests(numbers, **labels):
    return numbers.get(("orders_http_requests_total", *sorted(labels.items())), 0)


@pytest.fixture
def watched(instance):
    """The service in a process of its own, with a log in JSON."""
    running = Service(
        instance, ORDERS_LOG_FORMAT="json", ORDERS_ACCESS_LOG="1", ORDERS_TRUSTED_PROXIES="1", ORDERS_LOG_LEVEL="INFO"
    ).start()
    yield running
    if running.process.poll() is None:
        running.stop()


def test_requests_are_counted_by_operation_status_and_code(api, http):
    assert api.buy().code == 1
    http("GET", "/nowhere/at/all")
    http("GET", "/nowhere/else")
    numbers = _numbers(http)
    assert _requests(numbers, endpoint="createOrder", status="200", code="1") == 1
    assert _requests(numbers, endpoint="other", status="404", code="40404") == 2
    assert numbers["orders_http_request_seconds_count", ("endpoint", "createOrder")] == 1
    assert not any("nowhere" in str(key) for key in numbers)


def test_orders_and_calls_to_channels_are_counted(api, http, flask):
    flask("order", "ask", api.buy().data["order_no"])
    numbers = _numbers(http)
    assert numbers["orders_orders", ("status", "pending"), ("type", "buy")] >= 1
    assert numbers[("orders_database_up",)] == 1
    calls = [key for key in numbers if key[0] == "orders_channel_calls_total"]
    assert any(("driver", "trial") in key and ("result", "answered") in key for key in calls)


class TestWhoMayRead:
    @pytest.fixture
    def settings_of_app(self):
        return {"trusted_proxies": 1}

    def test_metrics_are_not_served_to_others(self, http):
        assert http("GET", "/metrics", headers=FAR).code == 40404
        assert http("GET", "/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status == 200


@pytest.mark.usefixtures("slow")
def test_a_service_is_ready_once_its_jobs_run(watched):
    ready = until(lambda: (answer := watched.api.send("GET", "/readyz")).status == 200 and answer)
    assert ready.data == dict.fromkeys(("database", "scheduler", "disk", "clock", "proxy"), "ok")


def test_while_the_service_stops_it_is_not_ready_and_still_serves_metrics(http):
    envelope.draining().set()
    try:
        assert (http("GET", "/readyz").code, http("GET", "/metrics").status) == (50300, 200)
    finally:
        envelope.draining().clear()


@pytest.mark.usefixtures("slow")
def test_a_log_in_json_is_json_in_each_line_from_start_to_end(watched):
    watched.stop()
    said = [json.loads(line)["message"] for line in watched.log.read_text("utf-8").splitlines()]
    assert (said[0], said[-1]) == (f"serving on {watched.url}", "stopped")


@pytest.mark.usefixtures("slow")
def test_a_log_record_is_one_line_whatever_a_caller_sends(instance):
    with_text = Service(instance, ORDERS_ACCESS_LOG="1").start()
    requests.get(f"{with_text.url}/a%0Ab%1B", headers={"X-Request-Id": "one"}, timeout=10)
    until(lambda: "[one]" in with_text.log.read_text("utf-8"))
    with_text.stop()
    lines = with_text.log.read_text("utf-8").splitlines()
    assert len([line for line in lines if "[one]" in line]) == 1
    assert "\x1b" not in "".join(lines)


def test_a_job_that_hangs_makes_it_not_ready(http, clock):
    heartbeats.beating("orders", list)
    clock(heartbeats.SHORT + 1)
    assert http("GET", "/readyz").data["scheduler"] == "orders is late"
    heartbeats.forget()


@pytest.mark.usefixtures("slow")
def test_refusals_of_the_server_itself_are_counted_and_have_an_id(watched):
    answer = requests.post(f"{watched.url}/merchant/createOrder", data=b"x" * 70_000, timeout=10)
    assert (answer.status_code, bool(answer.headers["X-Request-Id"])) == (413, True)
    numbers = _samples(requests.get(f"{watched.url}/metrics", timeout=10).text)
    assert _requests(numbers, endpoint="other", status="413", code="41300") == 1


@pytest.mark.usefixtures("slow")
def test_each_line_of_the_log_is_json_with_the_id_of_its_request(watched):
    requests.get(f"{watched.url}/healthz?q=hush-hush", headers={"X-Request-Id": "from-the-proxy"}, timeout=10)

    def said():
        lines = watched.log.read_text("utf-8").splitlines()
        return [line for line in map(json.loads, (each for each in lines if each[:1] == "{")) if "endpoint" in line]

    line = until(lambda: next((each for each in said() if each.get("request_id") == "from-the-proxy"), None))
    assert (line["endpoint"], line["status"], line["code"], line["level"]) == ("health", 200, 1, "INFO")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert "hush-hush" not in watched.log.read_text("utf-8")


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/console/", "/merchant/createOrder"])
def test_every_response_has_an_id(http, path):
    first, second = (http("GET", path).headers["X-Request-Id"] for _ in range(2))
    assert first != second


@pytest.mark.parametrize("given", ["a" * 65, "a b", "ü", "<x>", ""])
def test_an_id_that_could_harm_the_log_is_replaced(http, given):
    assert http("GET", "/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"] != given
    assert http("GET", "/healthz", headers={"X-Request-Id": "good-1"}).headers["X-Request-Id"] == "good-1"


def test_a_failing_database_does_not_stop_the_metrics(http, app, instance):
    if not (file := instance / "orders.sqlite").exists():
        pytest.skip("about SQLite's file")
    aside = file.rename(instance / "moved.sqlite")
    try:
        until(lambda: http("GET", "/healthz").status == 503)
        numbers = _numbers(http)
        assert numbers[("orders_database_up",)] == 0
        assert not any(key[0] == "orders_orders" for key in numbers)
        assert http("GET", "/readyz").data["database"] == "missing"
    finally:
        aside.rename(file)
    until(lambda: http("GET", "/healthz").status == 200)


def test_each_watched_metric_exists(http, api):
    text = http("GET", "/metrics").text
    there = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    there |= {"orders_backup_age_seconds", "orders_backup_failed"}  # with scheduled backups
    there |= {"orders_ledger_faults", "orders_ledger_last_verified_timestamp_seconds"}  # once the ledger was checked
    there |= {"orders_http_request_seconds_bucket"}
    panels = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    rules = " ".join(re.findall(r"\b(?:expr: .*|histogram_quantile.*)", RULES.read_text("utf-8")))
    for named in set(re.findall(r"\b(?:orders|process)_\w+", f"{panels} {rules}")):
        assert named in there, named
    for name in there - {"orders_http_request_seconds_bucket"}:
        assert name.removeprefix("orders_") in METRICS, name


needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def _promtool(*arguments, stdin=""):
    done = subprocess.run(["promtool", *arguments], input=stdin, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@needs_promtool
@pytest.mark.usefixtures("slow")
def test_prometheus_accepts_the_rules():
    _promtool("check", "rules", RULES)


@needs_promtool
@pytest.mark.usefixtures("slow")
def test_names_and_descriptions_of_metrics_follow_the_conventions_of_prometheus(watched):
    assert watched.api.buy().code == 1
    text = watched.api.send("GET", "/metrics").text
    assert "process_resident_memory_bytes " in text
    _promtool("check", "metrics", stdin=text)


@needs_promtool
@pytest.mark.usefixtures("slow")
def test_alerts_fire_in_the_situations_that_they_name(tmp_path):
    shutil.copy(RULES, tmp_path / "alerts_rules.yml")
    _promtool("test", "rules", shutil.copy(SITUATIONS, tmp_path))


def test_each_alert_has_a_situation():
    named = set(re.findall(r"alert: (\w+)", RULES.read_text("utf-8")))
    assert named == set(re.findall(r"firing.*alertname=\"(\w+)\"", SITUATIONS.read_text("utf-8")))
