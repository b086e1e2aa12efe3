"""Counters of requests and calls to channels, for Prometheus (services/metrics.py adds those from the database)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from runtime import settings
from runtime.state import Part

disable_created_metrics()  # they would add an unused series for each counter and histogram

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Counters:
    """One application's counters. `load` returns how many requests are running and waiting."""

    def __init__(self) -> None:
        self.load: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "orders_http_requests",
            "responses by endpoint, HTTP status and the envelope's code",
            ("endpoint", "status", "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "orders_http_request_seconds",
            "response time in seconds",
            ("endpoint",),
            registry=self.registry,
            buckets=BUCKETS,
        )
        self._calls = Counter(
            "orders_channel_calls", "calls to channels", ("driver", "call", "result"), registry=self.registry
        )
        self._unknown_notices = Counter(
            "orders_unknown_notices", "notices for unknown orders", ("result",), registry=self.registry
        )
        build = Gauge("orders_build_info", "the service's version", ("version",), registry=self.registry)
        build.labels(settings.VERSION).set(1)
        # Looked up once, because labels() costs as much as the rest of the count.
        self._counters: dict[tuple[str, int, int], Any] = {}
        self._histograms: dict[str, Any] = {}

    def answered(self, endpoint: str, status: int, code: int, seconds: float) -> None:
        """Count a response; `code` is 0 if it is not an envelope."""
        key = (endpoint, status, code)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = self._requests.labels(endpoint, str(status), str(code or ""))
        counter.inc()
        histogram = self._histograms.get(endpoint)
        if histogram is None:
            histogram = self._histograms[endpoint] = self._seconds.labels(endpoint)
        histogram.observe(seconds)

    def called(self, driver: str, call: str, result: str) -> None:
        """Count a call to a channel."""
        self._calls.labels(driver, call, result).inc()

    def unknown_notice(self, result: str) -> None:
        """Count a notice about an order that the database does not have (services/channels/unknown_notices.py)."""
        self._unknown_notices.labels(result).inc()


counters = Part(Counters)
