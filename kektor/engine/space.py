"""One index in one process: its records, and every structure that finds them, kept in step by `apply_*`.

This is where nodes become slots. Nothing above `LocalEngine` sees a slot.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from kektor_native import CorruptFile, NewerFile, TextIndex, VectorIndex
from msgspec import structs

from kektor.engine.columns import Columns
from kektor.engine.effects import AddVector, AmendNode, DropNode, EndEdge, PutEdge, PutNode, SetState
from kektor.engine.indexed import TEXT_FIELDS, about
from kektor.engine.names import Names
from kektor.engine.records import Edge, IndexSettings, Node, Scope
from kektor.errors import Corrupt
from kektor.graph import Adjacency
from kektor.storage.heap import RecordHeap
from kektor.storage.structure import Structure

__all__ = ["EdgeRow", "IndexSpace", "Loss"]

_AMENDABLE = tuple(field for field in AmendNode.__struct_fields__ if field not in {"index", "slot"})


class Loss(NamedTuple):
    """What a damaged file cost: where, what is wrong, what is lost by it."""

    where: str
    what: str
    lost: str


class EdgeRow(msgspec.Struct, frozen=True, array_like=True):
    """An edge with the slots of its ends."""

    src: int
    dst: int
    edge: Edge


_node_decoder = msgspec.msgpack.Decoder(Node)
_edge_decoder = msgspec.msgpack.Decoder(EdgeRow)
_encode = msgspec.msgpack.Encoder().encode


class IndexSpace:
    """The records of one index by slot, and their derived structures."""

    def __init__(self, settings: IndexSettings) -> None:
        self.settings = settings
        self.nodes = RecordHeap("nodes")
        self.edges = RecordHeap("edges")
        self.vectors = self.new_vectors()
        self.texts = self._new_texts()
        self._start()

    def new_vectors(self) -> VectorIndex:
        """An empty one, as the settings want it."""
        settings = self.settings
        return VectorIndex(
            settings.dim,
            metric=settings.metric,  # type: ignore[arg-type]
            precision="f32",
            m=settings.m,
            ef_construction=settings.ef_construction,
        )

    def _new_texts(self) -> TextIndex:
        text = self.settings.text
        return TextIndex(fields=TEXT_FIELDS, language=text.language, k1=text.k1, b=text.b)

    def rebuild_texts(self) -> None:
        """The text index anew, from the records."""
        self.texts = self._new_texts()
        for slot in self.columns.alive:
            self._index_text(slot, self.node(slot), lsn=0)

    @classmethod
    def open(
        cls, settings: IndexSettings, folder: Path, *, next_slot: int, next_edge: int, tolerant: bool = False
    ) -> "IndexSpace":
        """Map what a checkpoint holds; columns, ids and adjacency are rebuilt from the records.

        Without `tolerant` any damage is an error. With it, what can be read is kept, what is derived is built anew,
        and `losses` names the rest.
        """
        space = cls(settings)
        space.nodes = RecordHeap.open(folder / "nodes", "nodes", tolerant=tolerant)
        space.edges = RecordHeap.open(folder / "edges", "edges", tolerant=tolerant)
        for slot in space.nodes.numbers():
            try:
                space._register(slot, space.node(slot))
            except (Corrupt, msgspec.MsgspecError) as error:
                space._lose("node", space.nodes, space.lost_nodes, slot, error, tolerant=tolerant)
        for number in space.edges.numbers():
            try:
                row = space.edge(number)
                space.adjacency.add(number, src=row.src, dst=row.dst)
            except (Corrupt, msgspec.MsgspecError) as error:
                space._lose("edge", space.edges, space.lost_edges, number, error, tolerant=tolerant)
        for heap in (space.nodes, space.edges):
            space.losses += [
                Loss(str(path), what, "nothing but the records named beside it") for path, what in heap.broken.items()
            ]
        space._open_derived(folder, tolerant=tolerant)
        space.next_slot = next_slot
        space.next_edge = next_edge
        return space

    def _lose(
        self, kind: str, heap: RecordHeap, lost: set[int], number: int, error: Exception, *, tolerant: bool
    ) -> None:
        if not tolerant:
            raise error
        lost.add(number)
        name = _first_text(heap.raw(number))
        called = f", whose first field reads {name!r}" if name else ""
        self.losses.append(Loss(f"index {self.settings.name}", str(error), f"{kind} {number}{called}"))

    def _open_derived(self, folder: Path, *, tolerant: bool) -> None:
        try:
            self.vectors = VectorIndex.open(str(folder / "vectors"))
        except NewerFile:
            raise
        except (CorruptFile, FileNotFoundError) as error:
            if not tolerant:
                raise
            self.losses.append(Loss(str(folder / "vectors"), str(error), f"the vectors of index {self.settings.name}"))
        try:
            self.texts = TextIndex.open(str(folder / "texts"))
        except NewerFile:
            raise
        except (CorruptFile, FileNotFoundError) as error:
            if not tolerant:
                raise
            self.rebuild_texts()
            self.losses.append(Loss(str(folder / "texts"), str(error), "nothing: it was built anew from the records"))

    def _start(self) -> None:
        self.columns = Columns()
        self.adjacency = Adjacency()
        self.next_slot = 0
        self.next_edge = 0
        self.names = Names()
        self.losses: list[Loss] = []
        self.lost_nodes: set[int] = set()
        """Slots whose record is damaged: nobody sees them, and what is said of them later changes nothing."""
        self.lost_edges: set[int] = set()

    def structures(self) -> dict[str, Structure]:
        """What a checkpoint saves of this index, by folder."""
        return {"nodes": self.nodes, "edges": self.edges, "vectors": self.vectors, "texts": self.texts}

    # Reading

    def node(self, slot: int) -> Node:
        """The node of a slot that has one."""
        record = self.nodes.get(slot)
        if record is None:
            raise KeyError(slot)
        return _node_decoder.decode(record)

    def maybe_node(self, slot: int) -> Node | None:
        """The node of a slot; None when it was dropped since."""
        record = self.nodes.get(slot)
        return None if record is None else _node_decoder.decode(record)

    def edge(self, number: int) -> EdgeRow:
        record = self.edges.get(number)
        if record is None:
            raise KeyError(number)
        return _edge_decoder.decode(record)

    def lineage(self, scope: Scope, lineage: str) -> list[tuple[int, Node]]:
        """Slot and node of every version, oldest first."""
        found = [(slot, self.node(slot)) for slot in self.names.of_lineage(scope, lineage)]
        return sorted(found, key=lambda pair: pair[1].version)

    def edges_at(self, slot: int, direction: str, *, after: int = -1) -> Iterator[tuple[int, EdgeRow]]:
        """Every edge ever linked at a slot, oldest first, those numbered beyond `after`; a loop once."""
        leaving = self.adjacency.leaving(slot, after=after) if direction != "in" else iter(())
        entering = self.adjacency.entering(slot, after=after) if direction != "out" else iter(())
        last = -1
        for number in merge(leaving, entering):
            if number != last:
                last = number
                yield number, self.edge(number)

    def edges_between(self, src: int, dst: int) -> Iterator[tuple[int, EdgeRow]]:
        """Every edge ever linked from one slot to another, oldest first."""
        for number in self.adjacency.between(src, dst):
            yield number, self.edge(number)

    # Applying effects; live and at replay alike

    def put_nodes(self, effects: Sequence[PutNode], lsn: int) -> None:
        for effect in effects:
            self.nodes.put(effect.slot, _encode(effect.node))
            self._register(effect.slot, effect.node)
            self._index_text(effect.slot, effect.node, lsn)
            self.next_slot = max(self.next_slot, effect.slot + 1)
        self._add_vectors([(e.slot, e.vector) for e in effects if e.vector is not None], lsn)

    def add_vector(self, effect: AddVector, lsn: int) -> None:
        self._add_vectors([(effect.slot, effect.vector)], lsn)

    def set_state(self, effect: SetState) -> None:
        if effect.slot in self.lost_nodes:
            return
        old = self.node(effect.slot)
        closed = structs.replace(old.state, recorded_to=effect.state.recorded_from)
        new = structs.replace(
            old,
            states=(*old.states[:-1], closed, effect.state),
            superseded_by=effect.superseded_by or old.superseded_by,
        )
        self._replace(effect.slot, old, new)

    def amend(self, effect: AmendNode, lsn: int) -> None:
        if effect.slot in self.lost_nodes:
            return
        old = self.node(effect.slot)
        changes = {field: value for field in _AMENDABLE if (value := getattr(effect, field)) is not None}
        new = structs.replace(old, **changes)
        self._replace(effect.slot, old, new)
        if about(new) != about(old):
            self.texts.remove(effect.slot, lsn=lsn)
            self._index_text(effect.slot, new, lsn)

    def drop_node(self, effect: DropNode, lsn: int) -> None:
        slot = effect.slot
        if slot in self.lost_nodes:
            self.lost_nodes.discard(slot)
        else:
            node = self.node(slot)
            self.columns.remove(slot, node)
            self.names.remove(slot, node)
        # Newest first: what is taken from the end of a hub's list moves nothing.
        for number, row in reversed(list(self.edges_at(slot, "both"))):
            self.adjacency.remove(number, src=row.src, dst=row.dst)
            self.edges.drop(number)
        self.nodes.drop(slot)
        self.vectors.remove(np.array([slot], np.uint32), lsn=lsn, erase=True)
        self.texts.remove(slot, lsn=lsn, erase=not effect.replaced)

    def put_edge(self, effect: PutEdge) -> None:
        self.edges.put(effect.number, _encode(EdgeRow(effect.src, effect.dst, effect.edge)))
        self.adjacency.add(effect.number, src=effect.src, dst=effect.dst)
        self.next_edge = max(self.next_edge, effect.number + 1)

    def end_edge(self, effect: EndEdge) -> None:
        if effect.number in self.lost_edges:
            return
        row = self.edge(effect.number)
        ended = structs.replace(row.edge, deleted_at=effect.deleted_at)
        self.edges.put(effect.number, _encode(structs.replace(row, edge=ended)))

    def _replace(self, slot: int, old: Node, new: Node) -> None:
        self.nodes.put(slot, _encode(new))
        self.columns.change(slot, old, new)
        self.names.change(slot, old, new)

    def _register(self, slot: int, node: Node) -> None:
        self.columns.add(slot, node)
        self.names.add(slot, node)

    def _index_text(self, slot: int, node: Node, lsn: int) -> None:
        if node.text:
            self.texts.add(slot, [node.text, about(node)], lsn=lsn)

    def _add_vectors(self, rows: list[tuple[int, bytes]], lsn: int) -> None:
        if rows:
            slots = np.array([slot for slot, _ in rows], np.uint32)
            flat = np.frombuffer(b"".join(vector for _, vector in rows), "<f4").astype(np.float32, copy=False)
            self.vectors.add(slots, flat.reshape(len(rows), self.settings.dim), lsn=lsn)


def _first_text(record: bytes) -> str:
    """What a damaged record, an array that begins with a text, still says of itself; it may be damaged too."""
    at = 3 if record[:1] == b"\xdc" else 1
    head = record[at : at + 2]
    if len(head) < 2:
        return ""
    start, length = (at + 2, head[1]) if head[0] == 0xD9 else (at + 1, head[0] & 31)
    return record[start : start + length].decode("utf-8", "replace") if head[0] == 0xD9 or head[0] >> 5 == 5 else ""
