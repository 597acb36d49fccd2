"""Answers made smaller for callers that say they can read that."""

import gzip
import re
from typing import Final

import zstandard

from kektor_server.rest.principal import Headers

__all__ = ["compressed"]

_WORTH_IT: Final = 1024
_GZIP_LEVEL: Final = 4
_ZSTD_LEVEL: Final = 3
_OFFER: Final = re.compile(r"\s*([a-z*]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?", re.IGNORECASE)


def compressed(body: bytes, headers: Headers) -> tuple[bytes, bytes | None]:
    """The body as it goes out, and its encoding when it has one. Takes its time: not for the event loop."""
    accept = headers.get(b"accept-encoding")
    if accept is None or len(body) < _WORTH_IT:
        return body, None
    offered = _offered(accept.decode("latin-1"))
    if "zstd" in offered:
        return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(body), b"zstd"
    if "gzip" in offered:
        return gzip.compress(body, _GZIP_LEVEL, mtime=0), b"gzip"
    return body, None


def _offered(accept: str) -> set[str]:
    """Encodings with a weight above zero; `*` alone is nobody's wish."""
    found = (_OFFER.fullmatch(part) for part in accept.split(","))
    return {offer[1].lower() for offer in found if offer is not None and float(offer[2] or 1) > 0}
