"""A preview: what was asked and what it found, in a token that a caller shows again to have exactly that done."""

import base64
import binascii
import zlib
from typing import Any

import msgspec
from msgspec import Struct, structs

from kektor.errors import Conflict, Invalid
from kektor.memory.forgetting.closure import Closure, Place
from kektor.text import Digester

__all__ = ["Preview", "compare", "fingerprints", "read_preview", "write_preview"]

_CHECK = 16
_MARK = 8
_LARGEST = 64 << 20


class Preview(Struct, frozen=True, array_like=True):
    """The request as it came, when it was asked, and a mark of each thing it reaches."""

    asked: dict[str, Any]
    now: int
    marks: bytes


def write_preview(digester: Digester, preview: Preview) -> str:
    """The token; nobody but this database makes one, and it says nothing that its caller did not say."""
    body = zlib.compress(msgspec.msgpack.encode(preview), 6)
    return base64.urlsafe_b64encode(digester.exact(b"preview", body) + body).rstrip(b"=").decode()


def read_preview(digester: Digester, token: str) -> Preview:
    """Invalid for anything that `write_preview` did not make."""
    try:
        raw = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        check, body = raw[:_CHECK], raw[_CHECK:]
        if check != digester.exact(b"preview", body):
            raise ValueError("another database made it")
        return msgspec.msgpack.decode(zlib.decompressobj().decompress(body, _LARGEST), type=Preview)
    except (ValueError, binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise Invalid("the preview is no token of this database: ask with dry_run first", field="preview") from error


def fingerprints(digester: Digester, closure: Closure) -> dict[Place, bytes]:
    """A mark of everything that is about to happen, by place; equal only when the same happens to the same text."""
    marks: dict[Place, bytes] = {}
    for name in ("matched", "derived", "copies"):
        for place, gone in getattr(closure, name).items():
            marks[place] = _mark(digester, name, place, gone.node.text)
    for place, cut in closure.cuts.items():
        marks[place] = _mark(digester, f"cut {cut.spans}", place, cut.node.text)
    for place, made in closure.rebuilt.items():
        marks[place] = _mark(digester, f"rebuilt {len(made.evidence)}", place, made.node.text)
    return marks


def compare(preview: Preview, marks: dict[Place, bytes], visible: set[Place]) -> None:
    """Conflict, naming the difference, when what would go now is not what was previewed."""
    shown = {preview.marks[at : at + _MARK] for at in range(0, len(preview.marks), _MARK)}
    now = set(marks.values())
    if shown == now:
        return
    added = sorted(place.key.id for place, mark in marks.items() if mark not in shown and place in visible)
    raise Conflict(
        f"what would be forgotten has changed since the preview: {len(now - shown)} new or changed, "
        f"{len(shown - now)} no longer there; preview again",
        field="preview",
        details={"added": added, "added_count": len(now - shown), "gone_count": len(shown - now)},
    )


def _mark(digester: Digester, what: str, place: Place, text: str) -> bytes:
    return digester.exact("mark", what, place.index, *structs.astuple(place.key.scope), place.key.id, text)[:_MARK]
