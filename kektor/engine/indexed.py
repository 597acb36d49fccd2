"""What the text index holds of a node: the words themselves, and what they are filed under."""

from kektor import times
from kektor.engine.records import Node

__all__ = ["TEXT_FIELDS", "about"]

TEXT_FIELDS: tuple[tuple[str, float], ...] = (("text", 1.0), ("about", 0.5))
"""Fields and their weights, in the order in which texts are given to the index."""


def about(node: Node) -> str:
    """What a node is filed under, for the text index: tags, speaker, title, name, and the day it happened."""
    parts = list(node.tags)
    parts += [value for key in ("speaker", "title", "name") if isinstance(value := node.metadata.get(key), str)]
    if node.occurred is not None:
        parts.append(times.day_words(node.occurred.at))
    return "\n".join(parts)
