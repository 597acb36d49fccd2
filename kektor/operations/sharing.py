"""Sharing a memory with another scope or index."""

from msgspec import structs

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.records import NodeKey, Receipt
from kektor.errors import Invalid
from kektor.memory import requests as rq
from kektor.memory.commands.share import SHARED_KINDS, Share
from kektor.memory.drafts import Draft
from kektor.memory.inputs import read_rule, write_scope
from kektor.memory.limits import check_id
from kektor.memory.reading import existing_index, find_one, only_by_id
from kektor.operations.base import BaseOperations

__all__ = ["ShareOperations"]


class ShareOperations(BaseOperations):
    """A copy has its own id and history, and `copied_from` leads back: erasing the original reaches it."""

    def share(self, node_id: str, request: rq.ShareRequest, principal: Principal) -> Receipt:
        """Copy a memory to another scope or index; Forbidden where the caller may not write."""
        view = only_by_id(self.engine, principal, request.index, scope=request.scope)
        existing_index(self.engine, request.index)
        node = find_one(self.engine, view, check_id(node_id))
        if node.kind not in SHARED_KINDS or node.raw:
            raise Invalid(f"{node_id!r} is a {node.kind.value} and cannot be shared; memories can", field="id")
        target = request.to.index or request.index
        scope = write_scope(request.to.scope, principal, target)
        self._writable_index(principal, target)
        settings, own = self.engine.index(target), self.engine.index(request.index)
        same_model = settings is not None and own is not None and settings.fingerprint == own.fingerprint
        vectors = self.engine.vectors(view, [NodeKey(node.scope, node.id)]) if same_model else [None]
        draft = Draft(
            index=target,
            scope=scope,
            text=node.text,
            node_id=clock.new_id(),
            kind=node.kind,
            metadata=node.metadata,
            tags=node.tags,
            layer=node.layer,
            pinned=node.pinned,
            occurred=node.occurred,
            valid_from=node.state.valid_from,
            valid_to=node.state.valid_to,
            claim=node.claim,
            vector=vectors[0],
        )
        command = Share(
            context=self.context,
            index=target,
            scope=scope,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[node_id, structs.asdict(request)],
            drafts=[draft],
            node=node,
            source_index=request.index,
            rule=read_rule(request.scope),
            move=request.move,
        )
        return self._submit(command, principal)
