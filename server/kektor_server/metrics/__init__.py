"""What a server tells of itself while it works: Prometheus metrics, logs, traces. Never a word of a memory.

`registry` holds the metrics, `logs` shapes log lines, `traces` makes spans where the OpenTelemetry SDK is installed.
"""
