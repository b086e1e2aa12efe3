"""Monitoring: metrics, readiness, request ids, and a machine-readable log."""

import json
import re
import shutil

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from blueprints.api import envelope
from services.channels import health
from services.platform import heartbeats
from tests.support import ROOT, Service, finished, until

DASHBOARD = json.loads((ROOT / "deploy/grafana/tillbook.json").read_text("utf-8"))
RULES = ROOT / "deploy/prometheus/alerts.yml"
SITUATIONS = ROOT / "tests/data/alerts.yml"
METRICS = (ROOT / "docs/reference/metrics.md").read_text("utf-8")


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
    logs = {"ORDERS_LOG_FORMAT": "json", "ORDERS_ACCESS_LOG": "1", "ORDERS_LOG_LEVEL": "INFO"}
    running = Service(instance, ORDERS_TRUSTED_PROXIES="1", **logs).start()
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


def test_channels_that_groups_leave_out_are_counted(http):
    for _ in range(5):
        health.record(2, "wxpay", "the merchant is limited")
    numbers = _numbers(http)
    off = {key[1:]: value for key, value in numbers.items() if key[0] == "orders_channel_off"}
    failures = {key[1:]: value for key, value in numbers.items() if key[0] == "orders_channel_failures"}
    wxpay, alipay = ((("channel", "2"), ("method", method)) for method in ("wxpay", "alipay"))
    assert (off[wxpay], off[alipay], failures[wxpay], failures[alipay]) == (1, 0, 5, 0)


@pytest.mark.parametrize("settings_of_app", [{"trusted_proxies": 1}])
def test_metrics_are_served_to_this_machine_only(http):
    assert http("GET", "/metrics", headers={"X-Forwarded-For": "203.0.113.9"}).code == 40404
    assert http("GET", "/metrics", headers={"X-Forwarded-For": "127.0.0.1"}).status == 200


def test_while_the_service_stops_it_is_not_ready_and_still_serves_metrics(http):
    envelope.draining().set()
    try:
        assert (http("GET", "/readyz").code, http("GET", "/metrics").status) == (50300, 200)
    finally:
        envelope.draining().clear()


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
def test_a_running_service_becomes_ready_counts_its_servers_refusals_and_logs_in_json(watched):
    ready = until(lambda: (answer := watched.api.send("GET", "/readyz")).status == 200 and answer)
    assert ready.data == dict.fromkeys(("database", "scheduler", "disk", "clock", "proxy"), "ok")
    refused = requests.post(f"{watched.url}/merchant/createOrder", data=b"x" * 70_000, timeout=10)
    assert (refused.status_code, bool(refused.headers["X-Request-Id"])) == (413, True)
    metrics = watched.api.send("GET", "/metrics").text
    assert _requests(_samples(metrics), endpoint="other", status="413", code="41300") == 1
    assert "process_resident_memory_bytes " in metrics
    requests.get(f"{watched.url}/healthz?q=hush-hush", headers={"X-Request-Id": "from-the-proxy"}, timeout=10)
    watched.stop()

    log = watched.log.read_text("utf-8")
    lines = [json.loads(line) for line in log.splitlines()]
    messages = [line["message"] for line in lines]  # the first request may be answered before the first line
    assert f"serving on {watched.url}" in messages[:3]
    assert messages[-1] == "stopped"
    (line,) = [line for line in lines if line.get("request_id") == "from-the-proxy"]
    assert (line["endpoint"], line["status"], line["code"], line["level"]) == ("health", 200, 1, "INFO")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert "hush-hush" not in log


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/console/", "/merchant/createOrder"])
def test_every_response_has_an_id(http, path):
    first, second = (http("GET", path).headers["X-Request-Id"] for _ in range(2))
    assert first != second


def test_an_id_that_could_harm_the_log_is_replaced(http):
    for given in ("a" * 65, "a b", "ü", "<x>", ""):
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


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.usefixtures("slow")
def test_prometheus_accepts_the_metrics_and_the_rules_whose_alerts_fire_in_the_situations_that_they_name(
    api, http, tmp_path
):
    def promtool(*arguments, metrics=None):
        done = finished(["promtool", *arguments], input=metrics)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout

    assert api.buy().code == 1
    promtool("check", "metrics", metrics=http("GET", "/metrics").text)
    promtool("check", "rules", RULES)
    shutil.copy(RULES, tmp_path / "alerts_rules.yml")
    promtool("test", "rules", shutil.copy(SITUATIONS, tmp_path))


def test_each_alert_has_a_situation():
    named = set(re.findall(r"alert: (\w+)", RULES.read_text("utf-8")))
    assert named == set(re.findall(r"firing.*alertname=\"(\w+)\"", SITUATIONS.read_text("utf-8")))
