"""What can be mended in an open index without a backup: derived structures anew, damaged records aside."""

from collections.abc import Callable, Iterator

import numpy as np
from kektor_native import CorruptFile

from kektor.engine.space import IndexSpace

__all__ = ["mend"]


def mend(space: IndexSpace, keep: Callable[[str, bytes], None]) -> Iterator[str]:
    """Do it, and say what was done; `keep` sets bytes aside under a name."""
    name = space.settings.name
    for slot in sorted(space.lost_nodes):
        keep(f"{name}-node-{slot}", space.nodes.raw(slot))
        space.nodes.drop(slot)
        space.vectors.remove(np.array([slot], np.uint32), lsn=0, erase=True)
        space.texts.remove(slot, lsn=0, erase=True)
        yield f"index {name}: the damaged record of node {slot} was taken out, and is kept in quarantine/"
    for number in sorted(space.lost_edges):
        keep(f"{name}-edge-{number}", space.edges.raw(number))
        space.edges.drop(number)
        yield f"index {name}: the damaged record of edge {number} was taken out, and is kept in quarantine/"
    space.lost_nodes.clear()
    space.lost_edges.clear()
    space.losses.clear()
    space.nodes.broken.clear()
    space.edges.broken.clear()
    if space.texts.validate():
        space.rebuild_texts()
        yield f"index {name}: its text index was built anew from the records"
    if space.vectors.validate():
        lost = _rebuild_vectors(space)
        yield f"index {name}: its vector index was built anew from the vectors" + (
            f"; those of {', '.join(lost)} are damaged, and gone" if lost else ""
        )


def _rebuild_vectors(space: IndexSpace) -> list[str]:
    """The graph is derived from the rows, each of which has a checksum; returns the ids whose row is damaged."""
    old, lost = space.vectors, []
    space.vectors = space.new_vectors()
    for slot in space.columns.alive:
        if slot in old:
            row = np.array([slot], np.uint32)
            try:
                space.vectors.add(row, old.vectors(row), lsn=0, throttle=False)
            except (CorruptFile, KeyError):
                key = space.names.key(slot)
                lost.append(repr(key.id) if key is not None else str(slot))
    return lost
