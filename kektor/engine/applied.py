"""What the log and the checkpoints amount to: the indexes and small tables after one transaction.

Applying reads no clock, no model and no policy: live and at replay it gives the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kektor.engine import effects as fx
from kektor.engine.audit import Entry
from kektor.engine.space import IndexSpace
from kektor.engine.tables import SmallTables
from kektor.engine.visible import ViewCompiler
from kektor.storage.structure import Structure

__all__ = ["Applied"]


class Applied:
    """Everything a database holds, in memory or mapped; `lsn` is the last transaction in it."""

    def __init__(self) -> None:
        self.tables = SmallTables()
        self.spaces: dict[int, IndexSpace] = {}
        self.compilers: dict[int, ViewCompiler] = {}
        self.lsn = 0

    def apply(self, record: fx.TransactionRecord, lsn: int) -> None:
        """Take one transaction in."""
        puts: dict[int, list[fx.PutNode]] = {}
        touched: set[int] = set()
        for effect in record.effects:
            index = getattr(effect, "index", None)
            if isinstance(effect, fx.PutNode):
                puts.setdefault(effect.index, []).append(effect)
                touched.add(effect.index)
                continue
            # A run of new nodes is applied together, so that their vectors are added in one native call.
            for number, run in puts.items():
                self.spaces[number].put_nodes(run, lsn)
            puts.clear()
            if isinstance(index, int):
                touched.add(index)
            _APPLY[type(effect)](self, effect, lsn)
        for number, run in puts.items():
            self.spaces[number].put_nodes(run, lsn)
        for number in touched & self.compilers.keys():
            self.compilers[number].invalidate()
        self.tables.time = record.time
        self.pass_over(lsn, record.entries)

    def pass_over(self, lsn: int, entries: Sequence[Entry]) -> None:
        """Be behind one transaction, as far as its audit goes."""
        self.tables.audit_count += len(entries)
        if entries:
            self.tables.audit_head = entries[-1].hash
        self.lsn = lsn

    def _put_index(self, effect: fx.PutIndex, lsn: int) -> None:
        settings = effect.settings
        self.tables.settings[settings.name] = settings
        self.tables.next_index = max(self.tables.next_index, settings.number + 1)
        if settings.number in self.spaces:
            self.spaces[settings.number].settings = settings
        else:
            space = self.spaces[settings.number] = IndexSpace(settings)
            self.compilers[settings.number] = ViewCompiler(space)

    def _drop_index(self, effect: fx.DropIndex, lsn: int) -> None:
        self.tables.drop_index(effect.number)
        del self.spaces[effect.number], self.compilers[effect.number]

    def structures(self) -> dict[str, Structure]:
        """What a checkpoint saves, by folder."""
        self.tables.next_slots = {number: space.next_slot for number, space in self.spaces.items()}
        self.tables.next_edges = {number: space.next_edge for number, space in self.spaces.items()}
        parts: dict[str, Structure] = {"database": self.tables}
        for number, space in self.spaces.items():
            parts |= {f"{number}/{name}": part for name, part in space.structures().items()}
        return parts


_APPLY: dict[type, Callable[[Applied, Any, int], None]] = {
    fx.PutIndex: Applied._put_index,
    fx.DropIndex: Applied._drop_index,
    fx.SetState: lambda e, x, lsn: e.spaces[x.index].set_state(x),
    fx.AmendNode: lambda e, x, lsn: e.spaces[x.index].amend(x, lsn),
    fx.DropNode: lambda e, x, lsn: e.spaces[x.index].drop_node(x, lsn),
    fx.AddVector: lambda e, x, lsn: e.spaces[x.index].add_vector(x, lsn),
    fx.PutEdge: lambda e, x, lsn: e.spaces[x.index].put_edge(x),
    fx.EndEdge: lambda e, x, lsn: e.spaces[x.index].end_edge(x),
    fx.PutKv: lambda e, x, lsn: e.tables.put_kv(x),
    fx.DropKv: lambda e, x, lsn: e.tables.drop_kv(x),
    fx.PutTombstone: lambda e, x, lsn: e.tables.put_tombstone(x),
    fx.LiftTombstone: lambda e, x, lsn: e.tables.lift_tombstone(x),
    fx.PutErasure: lambda e, x, lsn: e.tables.put_erasure(x),
    fx.KeepOutcome: lambda e, x, lsn: e.tables.keep_outcome(x),
}
