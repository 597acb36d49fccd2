"""The metrics of one server. Every label has few values: routes as declared, statuses, reasons of a fixed list."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kektor.engine.port import Engine
from kektor.errors import KektorError

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_INDEXES: Final = 100
"""Indexes that are told by name; the sizes of the others are one sum."""


class Metrics:
    """Counting is quick and needs no lock of ours; what has to be looked up is looked up when somebody asks."""

    def __init__(self, engine: Engine, gauges: Iterable[tuple[str, str, Callable[[], float]]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "kektor_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "kektor_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._slow = Counter(
            "kektor_slow_requests", "Requests above slow_seconds.", ("method", "route"), registry=self._registry
        )
        self._denied = Counter("kektor_denied_calls", "Calls denied.", ("why",), registry=self._registry)
        for name, about, look in gauges:
            Gauge(name, about, registry=self._registry).set_function(look)
        self._registry.register(_OfTheDatabase(engine))
        ProcessCollector(namespace="kektor", registry=self._registry)

    def answered(self, method: str, route: str, status: int, seconds: float, *, slow: bool) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if slow:
            self._slow.labels(method, route).inc()

    def denied(self, why: str) -> None:
        self._denied.labels(why).inc()

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)


class _OfTheDatabase(Collector):
    """Sizes and health, as they are when somebody asks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """None in advance, so that registering looks nothing up."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        health = self._engine.health()
        yield _gauge("kektor_damage_found", "Kinds of damage met so far.", len(health.damage))
        writable = health.closed is None and health.read_only is None
        yield _gauge("kektor_writable", "1 while writes are taken.", int(writable))
        try:
            settings = self._engine.indexes()
            sizes = [(each.name, self._engine.stats(each.name)) for each in settings]
        except KektorError:  # closing, or an index dropped meanwhile: the next look has them
            return
        yield _gauge("kektor_indexes", "Indexes.", len(sizes))
        yield _gauge("kektor_log_position", "The last LSN.", max((stats.lsn for _, stats in sizes), default=0))
        for part in ("nodes", "vectors", "texts", "edges"):
            family = GaugeMetricFamily(f"kektor_index_{part}", f"How many {part} an index holds.", labels=["index"])
            for name, stats in sizes[:_INDEXES]:
                family.add_metric([name], getattr(stats, part))
            if len(sizes) > _INDEXES:
                family.add_metric(["(others)"], sum(getattr(stats, part) for _, stats in sizes[_INDEXES:]))
            yield family


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, about)
    family.add_metric([], value)
    return family
