"""Whether a node speaks of somebody, and whether two names are the same."""

from kektor.engine.records import Node
from kektor.text import fold
from kektor.text.words import within, words

__all__ = ["mentions", "same"]


def mentions(node: Node, name: str) -> bool:
    """Whether a node speaks of somebody, was said by them, or is theirs: whole words, whatever the case and accents.

    "Dana" is mentioned by "Dana's boat" and not by "Danae".
    """
    wanted = words(name)
    if not wanted:
        return False
    speaker = node.metadata.get("speaker")
    places = [node.text, speaker if isinstance(speaker, str) else "", node.scope.user, *node.tags]
    if node.claim is not None:
        places += [node.claim.subject, node.claim.object]
    return any(within(wanted, words(place)) for place in places)


def same(one: str, other: str) -> bool:
    """Equal but for case, accents, look-alike letters and punctuation."""
    return bool(one) and fold(one) == fold(other)
