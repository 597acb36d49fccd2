"""What all operations share: the engine, the gateway, and indexes that come to be on their first write."""

from collections.abc import Callable
from copy import copy
from typing import Any, Self

from kektor.engine.gateway import Gateway, Principal, Unit
from kektor.engine.port import Engine
from kektor.engine.records import IndexSettings, Receipt
from kektor.errors import Internal, Invalid
from kektor.memory.commands.base import MemoryCommand
from kektor.memory.commands.indexes import CreateIndex
from kektor.memory.compaction import Compactor
from kektor.memory.context import MemoryContext
from kektor.memory.limits import check_name
from kektor.models import Embedder

__all__ = ["BaseOperations"]


class BaseOperations:
    """Composed by `kektor.api`."""

    def __init__(
        self,
        engine: Engine,
        gateway: Gateway,
        context: MemoryContext,
        *,
        resolve_embedder: Callable[[str], Embedder],
        default_embedder: str,
        compactor: Compactor,
    ) -> None:
        self.engine = engine
        self.gateway: Gateway | Unit = gateway
        self.context = context
        self._resolve_embedder = resolve_embedder
        self._default_embedder = default_embedder
        self._compactor = compactor

    def within(self, unit: Unit) -> Self:
        """The same operations as parts of one transaction."""
        bound = copy(self)
        bound.engine = unit.engine
        bound.context = copy(self.context)
        bound.context.engine = unit.engine
        bound.gateway = unit
        return bound

    def _submit(self, command: MemoryCommand, principal: Principal) -> Receipt:
        return self.gateway.submit(command, principal)

    def _writable_index(self, principal: Principal, name: str) -> IndexSettings:
        """The settings of an index to write memories into; it is made with the default embedder when it is new."""
        check_name(name)
        settings = self.engine.index(name)
        if settings is None:
            new = self._new_settings(name, embedder=self._default_embedder, dim=None)
            self._submit(CreateIndex(context=self.context, index=name, new=new, exist_ok=True), principal)
            settings = self.engine.index(name)
        if settings is None:
            raise Internal(f"index {name!r} vanished while it was created")
        return settings

    def _new_settings(self, name: str, *, embedder: str | None, dim: int | None, **others: Any) -> IndexSettings:
        fingerprint = ""
        if embedder is not None:
            model = self._resolve_embedder(embedder)
            if dim is not None and dim != model.dim:
                raise Invalid(f"dim is {dim}, the embedder {embedder!r} makes {model.dim}", field="dim")
            dim, embedder, fingerprint = model.dim, model.name, model.fingerprint.text
        if dim is None:
            raise Invalid("an index needs a dim or an embedder that tells it", field="dim")
        return IndexSettings(
            name=name,
            number=0,
            dim=dim,
            embedder=embedder,
            fingerprint=fingerprint,
            **others,
        )
