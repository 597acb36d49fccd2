"""Log lines: for people, or as JSON for whatever collects them."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from kektor_server.settings import Settings

__all__ = ["configure_logging"]

_LOGGERS: Final = ("kektor", "uvicorn")


def configure_logging(settings: Settings) -> None:
    """Log to standard error, unless the program has set these loggers up itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else Lines())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(handler)
            logger.setLevel(settings.log_level.upper())
            logger.propagate = False
    if settings.access_log:
        logging.getLogger("kektor.access").setLevel(logging.INFO)


class Lines(logging.Formatter):
    """One line a record, with its fields behind it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        told = super().format(record)
        fields = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        first, newline, rest = told.partition("\n")
        return f"{first} {fields}{newline}{rest}" if fields else told


class JsonLines(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """What a call to the logger passed as `extra={"fields": …}`."""
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields
