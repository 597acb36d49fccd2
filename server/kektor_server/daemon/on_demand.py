"""A daemon that was started because somebody asked for its directory and nobody answered."""

import contextlib
import json
import logging
import os

from kektor.errors import Invalid, KektorError
from kektor_server.daemon.ownership import owned
from kektor_server.daemon.places import UnsafeFolder
from kektor_server.daemon.service import serve_owned
from kektor_server.metrics.logs import configure_logging
from kektor_server.settings import SettingsError, load_settings

__all__ = ["run"]

_LOG = logging.getLogger("kektor.server")


def run(data: str, ready: int) -> int:
    """Serve a directory on its Unix socket until nobody needs it; `ready` is told "ok" or the error, then closed."""
    try:
        settings = load_settings({"data": data})
        configure_logging(settings)
        with owned(settings) as owner:
            _tell(ready, b"ok")
            serve_owned(owner, settings, on_demand=True)
    except KektorError as error:
        _report(ready, error)
        return 1
    except (SettingsError, UnsafeFolder) as error:
        _report(ready, Invalid(str(error)))
        return 1
    return 0


def _report(ready: int, error: KektorError) -> None:
    _LOG.error("%s", error)
    with contextlib.suppress(OSError):  # it was told "ok" long ago
        _tell(ready, json.dumps(error.as_dict()).encode())


def _tell(ready: int, text: bytes) -> None:
    os.write(ready, text)
    os.close(ready)
