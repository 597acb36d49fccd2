"""In which order equals come: by what they say, then by id, never by where they are stored."""

import hashlib

from kektor.engine.records import Node, Scope

__all__ = ["content_order", "tie_order"]


def content_order(text: str) -> int:
    """A number that depends on the text alone, so that every database orders the same texts alike.

    Stored digests will not do: they are keyed with a secret of each database.
    """
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def tie_order(node: Node) -> tuple[int, str, Scope]:
    """What to sort equals by."""
    return content_order(node.text), node.id, node.scope
