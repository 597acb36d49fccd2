"""Spans of requests, where the OpenTelemetry SDK is installed and the program has set a provider up."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec

__all__ = ["Span", "spans"]

Span = Callable[[str, int, int, Mapping[str, str | int], Mapping[bytes, bytes]], None]
"""Told name, begin and end (nanoseconds since the epoch), attributes, and the headers that may name a parent."""


def spans() -> Span | None:
    """What makes a span of a request that has ended; None without the SDK."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        return None
    from opentelemetry import propagate, trace

    tracer = trace.get_tracer("kektor")

    def told(
        name: str, begun: int, ended: int, attributes: Mapping[str, str | int], headers: Mapping[bytes, bytes]
    ) -> None:
        carrier = {
            key.decode(): value.decode("latin-1")
            for key, value in headers.items()
            if key in (b"traceparent", b"tracestate")
        }
        span = tracer.start_span(
            name,
            context=propagate.extract(carrier),
            kind=trace.SpanKind.SERVER,
            attributes=dict(attributes),
            start_time=begun,
        )
        span.end(ended)

    return told
