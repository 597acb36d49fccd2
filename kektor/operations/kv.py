"""Key-values: what a program keeps beside its memories, under keys of its own."""

from kektor.engine.gateway import Principal
from kektor.engine.records import Receipt, Scope
from kektor.errors import Forbidden, NotFound
from kektor.memory import requests as rq
from kektor.memory.commands.base import one_scope
from kektor.memory.commands.kv import DropKv, PutKv
from kektor.memory.inputs import read_rule, write_scope
from kektor.memory.limits import check_id, check_metadata, check_name
from kektor.memory.objects import KvEntry, ScopeOut
from kektor.operations.base import BaseOperations

__all__ = ["KvOperations"]


class KvOperations(BaseOperations):
    """Values are any JSON; a version counts how often one was put."""

    def kv_get(self, index: str, key: str, principal: Principal, *, scope: rq.ScopeIn | None = None) -> KvEntry:
        """The value of the one scope that has the key; Conflict when the caller sees several."""
        if not principal.rights & {"read", "write", "review", "admin"}:
            raise Forbidden("this caller may not read")
        grants = principal.grants_for(check_name(index))
        if not grants:
            raise Forbidden(f"no grant of this caller reaches index {index!r}", field="index")
        check_id(key, field="key")
        rule = read_rule(scope)
        held = [] if self.engine.index(index) is None else self.engine.kv_scopes(index, key)
        seen = [each for each in held if rule.admits(each) and any(grant.admits(each) for grant in grants)]
        owner = one_scope(key, seen, rule) if seen else None
        found = None if owner is None else self.engine.kv(index, owner, key)
        if owner is None or found is None:
            raise NotFound(f"there is no key {key!r} in index {index!r}", field="key")
        return _entry(key, found[0], found[1], owner)

    def kv_put(self, key: str, request: rq.PutKvRequest, principal: Principal) -> KvEntry:
        """Store a value; the answer has its version."""
        check_id(key, field="key")
        # As the value of a map, so that it keeps the limits of metadata: size, depth, numbers that JSON has.
        check_metadata({"value": request.value}, field="value")
        self._writable_index(principal, request.index)
        scope = write_scope(request.scope, principal, request.index)
        command = PutKv(
            context=self.context,
            index=request.index,
            scope=scope,
            key=key,
            value=request.value,
            if_match=request.if_match,
            only_new=request.only_new,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[key, request],
        )
        receipt = self._submit(command, principal)
        return _entry(key, request.value, receipt.version or 1, scope)

    def kv_delete(self, key: str, request: rq.DropKvRequest, principal: Principal) -> Receipt:
        """Take a value away."""
        check_id(key, field="key")
        scope = write_scope(request.scope, principal, check_name(request.index))
        command = DropKv(
            context=self.context,
            index=request.index,
            scope=scope,
            key=key,
            if_match=request.if_match,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[key, request],
        )
        return self._submit(command, principal)


def _entry(key: str, value: object, version: int, scope: Scope) -> KvEntry:
    return KvEntry(key, value, version, ScopeOut(scope.user or None, scope.agent or None, scope.project or None))
