"""A transaction of the local engine: reads the present, collects effects, and commits them as one frame."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import structs

from kektor.engine import effects as fx
from kektor.engine.audit import EVERY_SLOT, Entry, Noted, Side, Subject, entry_of
from kektor.engine.port import Direction, Vector
from kektor.engine.records import Edge, Erasure, Event, IndexSettings, Node, NodeKey, Origin, Scope, State, Tombstone
from kektor.engine.space import EdgeRow, IndexSpace
from kektor.errors import Internal, TooLarge

if TYPE_CHECKING:
    from kektor.engine.local import LocalEngine

__all__ = ["LARGEST_TRANSACTION", "LocalTransaction"]

LARGEST_TRANSACTION = 1 << 30
_encode = msgspec.msgpack.Encoder().encode


_Joined: TypeAlias = tuple[Edge, NodeKey, NodeKey]


class LocalTransaction:
    """See `port.Transaction`. What is staged shadows what is applied."""

    def __init__(self, engine: "LocalEngine", time: int) -> None:
        self.time = time
        self._engine = engine
        self._effects: list[fx.Effect] = []
        self._settings: dict[str, IndexSettings | None] = {}
        self._next_index = engine.tables.next_index
        self._nodes: dict[tuple[int, NodeKey], Node | None] = {}
        self._slots: dict[tuple[int, NodeKey], int] = {}
        self._by_id: dict[tuple[int, str], list[NodeKey]] = {}
        self._by_digest: dict[tuple[int, Scope, bytes], list[NodeKey]] = {}
        self._vectors: dict[tuple[int, NodeKey], Vector] = {}
        self._next_slot: dict[int, int] = {}
        self._next_edge: dict[int, int] = {}
        self._left: set[tuple[int, int]] = set()
        """Slots whose records have moved."""
        self._edges: dict[tuple[int, NodeKey], dict[int, _Joined]] = {}
        self._ended: set[tuple[int, int]] = set()
        self._buried: dict[tuple[int, Scope, bytes], Tombstone] = {}
        self._lifted: set[str] = set()
        self._kv: dict[tuple[int, Scope, str], tuple[Any, int] | None] = {}
        self._outcomes: dict[bytes, fx.KeepOutcome] = {}
        self.lsn: int | None = None
        self._new_slots: dict[tuple[int, int], NodeKey] = {}
        self._dropped: set[tuple[int, int]] = set()
        self._noted: list[tuple[Event, int, int]] = []
        self._noted_to = 0

    # Indexes

    def index(self, name: str) -> IndexSettings | None:
        if name in self._settings:
            return self._settings[name]
        return self._engine.tables.settings.get(name)

    def indexes(self) -> list[IndexSettings]:
        known = {**self._engine.tables.settings, **self._settings}
        return [settings for settings in known.values() if settings is not None]

    def put_index(self, settings: IndexSettings) -> IndexSettings:
        if settings.number == 0:
            settings = structs.replace(settings, number=self._next_index, created_at=self.time)
            self._next_index += 1
        self._settings[settings.name] = settings
        self._effects.append(fx.PutIndex(settings))
        return settings

    def drop_index(self, name: str) -> None:
        self._effects.append(fx.DropIndex(self._number(name)))
        self._settings[name] = None

    # Nodes

    def nodes_of_id(self, index: str, node_id: str) -> list[Node]:
        number, space = self._where(index)
        slots = () if space is None else space.names.of_id(node_id)
        keys = dict.fromkeys(_keys(space, slots))
        keys.update(dict.fromkeys(self._by_id.get((number, node_id), ())))
        return [node for key in keys if (node := self.node(index, key)) is not None]

    def node(self, index: str, key: NodeKey) -> Node | None:
        number, space = self._where(index)
        if (number, key) in self._nodes:
            return self._nodes[number, key]
        slot = None if space is None else space.names.slot(key)
        return None if space is None or slot is None else space.node(slot)

    def nodes_of_digest(self, index: str, scope: Scope, digest: bytes) -> list[Node]:
        number, space = self._where(index)
        slots = () if space is None else space.names.of_digest(scope, digest)
        keys = dict.fromkeys(_keys(space, slots))
        keys.update(dict.fromkeys(self._by_digest.get((number, scope, digest), ())))
        return [node for key in keys if (node := self.node(index, key)) is not None]

    def lineage(self, index: str, scope: Scope, lineage: str) -> list[Node]:
        number, space = self._where(index)
        slots = [] if space is None else space.names.of_lineage(scope, lineage)
        keys = dict.fromkeys(_keys(space, slots))
        for (where, key), node in self._nodes.items():
            if where == number and node is not None and node.lineage == lineage and key.scope == scope:
                keys[key] = None
        found = [node for key in keys if (node := self.node(index, key)) is not None and node.lineage == lineage]
        return sorted(found, key=lambda node: node.version)

    def vector(self, index: str, key: NodeKey) -> Vector | None:
        number, space = self._where(index)
        if (number, key) in self._nodes:
            return self._vectors.get((number, key))
        slot = None if space is None else space.names.slot(key)
        if space is None or slot is None or slot not in space.vectors:
            return None
        vector: Vector = space.vectors.vectors(np.array([slot], np.uint32))[0]
        return vector

    def put_node(self, index: str, node: Node, vector: Vector | None = None) -> None:
        number, space = self._where(index)
        key = NodeKey(node.scope, node.id)
        if self.node(index, key) is not None:
            raise Internal(f"{index} already holds {node.id!r} in {node.scope}")
        slot = self._next_slot.get(number, 0 if space is None else space.next_slot)
        self._next_slot[number] = slot + 1
        self._slots[number, key] = slot
        self._new_slots[number, slot] = key
        encoded = None
        if vector is not None:
            vector = np.ascontiguousarray(vector, dtype=np.float32)
            self._vectors[number, key] = vector
            encoded = vector.astype("<f4", copy=False).tobytes()
        self._stage(number, key, node)
        self._effects.append(fx.PutNode(number, slot, node, encoded))

    def set_state(self, index: str, key: NodeKey, state: State, *, superseded_by: str = "") -> Node:
        number, slot, old = self._held(index, key)
        closed = structs.replace(old.state, recorded_to=state.recorded_from)
        new = structs.replace(
            old, states=(*old.states[:-1], closed, state), superseded_by=superseded_by or old.superseded_by
        )
        self._stage(number, key, new)
        self._effects.append(fx.SetState(number, slot, state, superseded_by))
        return new

    def amend(self, index: str, key: NodeKey, **changes: Any) -> Node:
        number, slot, old = self._held(index, key)
        new = structs.replace(old, **changes)
        self._stage(number, key, new)
        self._effects.append(fx.AmendNode(number, slot, **changes))
        return new

    def drop_node(self, index: str, key: NodeKey, *, replaced: bool = False) -> None:
        number, slot, _ = self._held(index, key)
        self._nodes[number, key] = None
        self._vectors.pop((number, key), None)
        self._dropped.add((number, slot))
        self._effects.append(fx.DropNode(number, slot, replaced))
        for edge_number, (_, src, dst) in self._edges.pop((number, key), {}).items():
            self._edges.get((number, dst if src == key else src), {}).pop(edge_number, None)

    def redact(self, index: str, node: Node, vector: Vector | None = None) -> None:
        key = NodeKey(node.scope, node.id)
        number, slot, old = self._held(index, key)
        joined = [*self._moved_edges(number, key), *self._edges.get((number, key), {}).values()]
        self.drop_node(index, key)
        self.put_node(index, structs.replace(node, place=old.place or slot + 1), vector)
        for edge, src, dst in joined:
            self.put_edge(index, src, dst, edge)

    def _moved_edges(self, number: int, key: NodeKey) -> Iterator[_Joined]:
        """The applied edges at a node whose record moves: what replaces them is staged."""
        space, slot = self._engine.space_by_number(number), self._applied(number, key)
        if space is None or slot is None or (number, slot) in self._left:
            return
        self._left.add((number, slot))
        for edge_number, row in space.edges_at(slot, "both"):
            src, dst = space.names.key(row.src), space.names.key(row.dst)
            if src is None or dst is None or not self._stands(number, src) or not self._stands(number, dst):
                continue
            ended = (number, edge_number) in self._ended and row.edge.deleted_at is None
            self._ended.add((number, edge_number))
            yield structs.replace(row.edge, deleted_at=self.time) if ended else row.edge, src, dst

    def copies(self, index: str, key: NodeKey) -> list[tuple[str, Node]]:
        origin = Origin(self._number(index), key.scope, key.id)
        found = []
        for name, settings in self._engine.tables.settings.items():
            space = self._engine.space_by_number(settings.number)
            if space is not None and self.index(name) is not None:
                for held in _keys(space, space.names.of_origin(origin)):
                    node = self.node(name, held)
                    if node is not None:
                        found.append((name, node))
        return found

    def put_erasure(self, erasure: Erasure) -> None:
        self._effects.append(fx.PutErasure(erasure))

    # Edges

    def put_edge(self, index: str, src: NodeKey, dst: NodeKey, edge: Edge) -> None:
        number, src_slot, _ = self._held(index, src)
        _, dst_slot, _ = self._held(index, dst)
        space = self._engine.space_by_number(number)
        edge_number = self._next_edge.get(number, 0 if space is None else space.next_edge)
        self._next_edge[number] = edge_number + 1
        self._effects.append(fx.PutEdge(number, edge_number, src_slot, dst_slot, edge))
        for end in {src, dst}:
            self._edges.setdefault((number, end), {})[edge_number] = (edge, src, dst)

    def edges(self, index: str, key: NodeKey, direction: Direction = "both") -> list[_Joined]:
        number, space = self._where(index)
        slot = self._applied(number, key)
        held = () if space is None or slot is None else space.edges_at(slot, direction)
        staged = self._edges.get((number, key), {})
        wanted = {
            n: joined
            for n, joined in staged.items()
            if (direction != "in" and joined[1] == key) or (direction != "out" and joined[2] == key)
        }
        return [joined for _, joined in self._open(number, space, held, wanted)]

    def end_edge(self, index: str, src: NodeKey, rel: str, dst: NodeKey) -> Edge | None:
        number, space = self._where(index)
        src_slot, dst_slot = self._applied(number, src), self._applied(number, dst)
        held: Iterable[tuple[int, EdgeRow]] = ()
        if space is not None and src_slot is not None and dst_slot is not None:
            held = space.edges_between(src_slot, dst_slot)
        ends = self._edges.get((number, src), {}), self._edges.get((number, dst), {})
        fewer = min(ends, key=len)
        staged = {n: joined for n, joined in fewer.items() if joined[1:] == (src, dst)}
        ended = None
        for edge_number, (edge, _, _) in self._open(number, space, held, staged):
            if edge.rel == rel:
                self._effects.append(fx.EndEdge(number, edge_number, self.time))
                self._ended.add((number, edge_number))
                ended = structs.replace(edge, deleted_at=self.time)
        return ended

    def _open(
        self,
        number: int,
        space: IndexSpace | None,
        held: Iterable[tuple[int, EdgeRow]],
        staged: dict[int, _Joined],
    ) -> list[tuple[int, _Joined]]:
        """Of some edges, applied and staged, those that stand."""
        found: list[tuple[int, _Joined]] = []
        for edge_number, row in held:
            assert space is not None, "what is held is in a space"
            src, dst = space.names.key(row.src), space.names.key(row.dst)
            if src is not None and dst is not None:
                found.append((edge_number, (row.edge, src, dst)))
        return [
            (edge_number, joined)
            for edge_number, joined in [*found, *staged.items()]
            if joined[0].deleted_at is None
            and (number, edge_number) not in self._ended
            and all(self._stands(number, end) for end in joined[1:])
        ]

    def _stands(self, number: int, key: NodeKey) -> bool:
        """Whether a node is there, without reading it."""
        if (number, key) in self._nodes:
            return self._nodes[number, key] is not None
        space = self._engine.space_by_number(number)
        return space is not None and space.names.slot(key) is not None

    def _applied(self, number: int, key: NodeKey) -> int | None:
        """The slot of a node that is not only staged."""
        space = self._engine.space_by_number(number)
        return None if space is None else space.names.slot(key)

    # Values

    def tombstone(self, index: str, scope: Scope, digest: bytes) -> Tombstone | None:
        key = (self._number(index), scope, digest)
        if key in self._buried:
            return self._buried[key]
        standing = [stone for stone in self._engine.tables.standing(*key) if stone.id not in self._lifted]
        return standing[-1] if standing else None

    def tombstone_of_id(self, index: str, tombstone_id: str) -> Tombstone | None:
        stone = self._engine.tables.tombstones.get(tombstone_id)
        stands = stone is not None and stone.lifted_at is None and tombstone_id not in self._lifted
        return stone if stands and stone is not None and stone.index == self._number(index) else None

    def guarded(self, index: str, scope: Scope) -> bool:
        return self._engine.tables.withholds(self._number(index), scope, "erasure")

    def guards(self, index: str, scope: Scope, tokens: frozenset[bytes]) -> list[Tombstone]:
        number = self._number(index)
        held = self._engine.tables.guarding(number, scope, tokens)
        staged = {stone.id: stone for key, stone in self._buried.items() if key[:2] == (number, scope) and stone.tokens}
        return [stone for stone in held if stone.id not in self._lifted] + [
            stone for stone in staged.values() if tokens.issuperset(stone.tokens)
        ]

    def put_tombstone(self, tombstone: Tombstone) -> None:
        for digest in tombstone.digests:
            self._buried[tombstone.index, tombstone.scope, digest] = tombstone
        self._effects.append(fx.PutTombstone(tombstone))

    def lift_tombstone(self, tombstone_id: str) -> Tombstone | None:
        stone = self._engine.tables.tombstones.get(tombstone_id)
        if stone is None or stone.lifted_at is not None or tombstone_id in self._lifted:
            return None
        self._lifted.add(tombstone_id)
        self._effects.append(fx.LiftTombstone(tombstone_id, self.time))
        return structs.replace(stone, lifted_at=self.time)

    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None:
        where = (self._number(index), scope, key)
        return self._kv[where] if where in self._kv else self._engine.tables.kv.get(where)

    def put_kv(self, index: str, scope: Scope, key: str, value: Any) -> int:
        held = self.kv(index, scope, key)
        version = 1 if held is None else held[1] + 1
        where = (self._number(index), scope, key)
        self._kv[where] = (value, version)
        self._effects.append(fx.PutKv(*where, value, version))
        return version

    def drop_kv(self, index: str, scope: Scope, key: str) -> bool:
        if self.kv(index, scope, key) is None:
            return False
        where = (self._number(index), scope, key)
        self._kv[where] = None
        self._effects.append(fx.DropKv(*where))
        return True

    def outcome(self, key: bytes) -> tuple[bytes, bytes] | None:
        kept = self._outcomes.get(key) or self._engine.tables.outcomes.get(key)
        return None if kept is None else (kept.request, kept.outcome)

    def keep_outcome(self, key: bytes, request: bytes, outcome: bytes) -> None:
        self._outcomes[key] = fx.KeepOutcome(key, request, outcome, self.time)
        self._effects.append(self._outcomes[key])

    @property
    def next_lsn(self) -> int:
        """The LSN this transaction will have when it commits."""
        return self._engine.lsn + 1

    @property
    def staged(self) -> int:
        """How many changes were staged so far."""
        return len(self._effects)

    def touched(self, index: str) -> dict[NodeKey, Node | None]:
        number = self._number(index)
        return {key: node for (where, key), node in self._nodes.items() if where == number}

    def note(self, event: Event) -> None:
        self._noted.append((event, self._noted_to, len(self._effects)))
        self._noted_to = len(self._effects)

    def commit(self) -> int:
        previous = self._engine.tables.audit_head
        entries: list[Entry] = []
        sides: list[Side] = []
        for event, start, end in self._noted:
            noted = self._touched(event, self._effects[start:end])
            entry, side = entry_of(noted, lsn=self.next_lsn, place=len(entries), time=self.time, previous=previous)
            previous = entry.hash
            entries.append(entry)
            sides.append(side)
        record = fx.TransactionRecord(self.time, tuple(self._effects), tuple(entries), tuple(sides))
        payload = fx.encode(record)
        if len(payload) > LARGEST_TRANSACTION:
            raise TooLarge(
                f"this transaction is {len(payload)} bytes; the limit is {LARGEST_TRANSACTION}: send it in parts"
            )
        self.lsn = self._engine.append(record, payload)
        return self.lsn

    def _touched(self, event: Event, effects: Sequence[fx.Effect]) -> Noted:
        """What one event changed, for the audit."""
        places: dict[tuple[int, int], None] = {}
        erased: list[tuple[int, int]] = []
        others: list[fx.Effect] = []
        for effect in effects:
            match effect:
                case fx.PutNode() | fx.SetState() | fx.AmendNode() | fx.AddVector():
                    places[effect.index, effect.slot] = None
                case fx.DropNode():
                    places[effect.index, effect.slot] = None
                    erased.append((effect.index, effect.slot))
                case fx.PutEdge():
                    places |= {(effect.index, effect.src): None, (effect.index, effect.dst): None}
                    others.append(effect)
                case fx.DropIndex():
                    erased.append((effect.number, EVERY_SLOT))
                    others.append(effect)
                case fx.KeepOutcome():
                    pass
                case _:
                    others.append(effect)
        settings = self.index(event.index) or self._engine.tables.settings.get(event.index)
        digest = hashlib.blake2b(_encode(others), digest_size=16).digest() if others else b""
        subjects = {place: self._subject(*place) for place in places}
        return Noted(event, 0 if settings is None else settings.number, subjects, tuple(erased), digest)

    def _subject(self, number: int, slot: int) -> Subject:
        """A slot's node before this transaction and as it leaves it."""
        space = self._engine.space_by_number(number)
        held = None if space is None else space.names.key(slot)
        before = b"" if space is None or held is None else space.nodes.get(slot) or b""
        key = self._new_slots.get((number, slot), held)
        if key is None:
            return Subject("", b"", b"")
        if (number, slot) in self._dropped:
            return Subject(key.id, before, b"")
        node = self._nodes.get((number, key))
        return Subject(key.id, before, before if node is None else _encode(node))

    # Helpers

    def _number(self, index: str) -> int:
        settings = self.index(index)
        if settings is None:
            raise Internal(f"no index {index!r} in this transaction")
        return settings.number

    def _where(self, index: str) -> tuple[int, IndexSpace | None]:
        number = self._number(index)
        return number, self._engine.space_by_number(number)

    def _slot(self, number: int, key: NodeKey) -> int | None:
        if (number, key) in self._slots:
            return self._slots[number, key]
        space = self._engine.space_by_number(number)
        return None if space is None else space.names.slot(key)

    def _held(self, index: str, key: NodeKey) -> tuple[int, int, Node]:
        node = self.node(index, key)
        number = self._number(index)
        slot = self._slot(number, key)
        if node is None or slot is None:
            raise Internal(f"{index} holds no {key.id!r} in {key.scope}")
        return number, slot, node

    def _stage(self, number: int, key: NodeKey, node: Node) -> None:
        self._nodes[number, key] = node
        self._by_id.setdefault((number, key.id), []).append(key)
        for digest in {node.digest, node.topic} - {b""}:
            self._by_digest.setdefault((number, key.scope, digest), []).append(key)


def _keys(space: IndexSpace | None, slots: Iterable[int]) -> Iterator[NodeKey]:
    for slot in slots:
        key = None if space is None else space.names.key(slot)
        if key is not None:
            yield key
