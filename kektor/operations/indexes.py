"""Indexes: create, list, configure, drop, maintain."""

from typing import Any, cast, get_args

import msgspec
from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Upkeep
from kektor.engine.records import DEFAULT_LAYERS, IndexSettings, Kind, Policy, Receipt
from kektor.engine.view import ScopeRule
from kektor.errors import Forbidden, Invalid, NotFound
from kektor.memory.commands.indexes import ConfigureIndex, CreateIndex, DropIndex, merged_policy
from kektor.memory.limits import check_name
from kektor.memory.objects import IndexStats
from kektor.memory.presenting import stats_of
from kektor.memory.reading import make_view
from kektor.memory.requests import ConfigureIndexRequest, CreateIndexRequest, PolicyChange, TimeIn
from kektor.operations.base import BaseOperations
from kektor.operations.graph import Progress

__all__ = ["IndexOperations"]


class IndexOperations(BaseOperations):
    """What concerns an index as a whole."""

    def create_index(self, request: CreateIndexRequest, principal: Principal) -> IndexSettings:
        """Make an index; one without `dim` and `embedder` gets the default embedder."""
        embedder = request.embedder
        if embedder not in (None, "default", "minilm", self._default_embedder) and "admin" not in principal.rights:
            raise Forbidden(
                "an embedder by path, address or model name reads files and calls out: it needs the right 'admin'",
                field="embedder",
            )
        if embedder is None and request.dim is None:
            embedder = self._default_embedder
        new = self._new_settings(
            request.name,
            embedder=embedder,
            dim=request.dim,
            metric=request.metric,
            precision=request.precision,
            m=request.m,
            ef_construction=request.ef_construction,
            text=request.text,
            policy=merged_policy(Policy(), _named(request.policy)),
            layers={**DEFAULT_LAYERS, **request.layers},
        )
        command = CreateIndex(
            context=self.context,
            index=request.name,
            new=new,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
        )
        self._submit(command, principal)
        return self._settings(principal, request.name)

    def configure_index(self, name: str, request: ConfigureIndexRequest, principal: Principal) -> IndexSettings:
        """Merge a policy and layers into the settings."""
        self._settings(principal, name)
        policy = _named(request.policy)
        command = ConfigureIndex(
            context=self.context,
            index=name,
            policy=policy,
            layers=dict(request.layers),
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
        )
        self._submit(command, principal)
        return self._settings(principal, name)

    def drop_index(
        self, name: str, principal: Principal, *, reason: str = "", idempotency_key: str | None = None
    ) -> Receipt:
        """Drop an index with all it holds."""
        if not principal.grants_for(check_name(name)):
            raise NotFound(f"there is no index {name!r}", field="index")
        command = DropIndex(
            context=self.context, index=name, reason=reason, idempotency_key=idempotency_key, asked=[name]
        )
        return self._submit(command, principal)

    def list_indexes(self, principal: Principal) -> list[IndexSettings]:
        """Those a grant of the caller reaches."""
        return [s for s in self.engine.indexes() if principal.grants_for(s.name)]

    def get_index(self, name: str, principal: Principal) -> IndexSettings:
        return self._settings(principal, name)

    def index_stats(
        self,
        name: str,
        principal: Principal,
        *,
        as_of: TimeIn | None = None,
        known_at: TimeIn | None = None,
        tz: str = "UTC",
    ) -> IndexStats:
        """Sizes of an index, and how many nodes a read of this caller shows: now, or as the times say."""
        self._settings(principal, name)
        if not any(rule.user is rule.agent is rule.project is None for rule in principal.grants_for(name)):
            raise Forbidden("the statistics of an index cover all its scopes", field="index")
        view = make_view(self.engine, principal, name, as_of=as_of, known_at=known_at, tz=tz)
        counts = {kind.value: self.engine.count(structs.replace(view, kinds=frozenset([kind]))) for kind in Kind}
        return stats_of(name, self.engine.stats(name), {kind: count for kind, count in counts.items() if count})

    def maintain_index(self, name: str, action: str, principal: Principal, *, progress: Progress | None = None) -> None:
        """Vacuum or refine an index in short steps; `progress` is told after each and may raise to stop there."""
        self._settings(principal, name)
        if "admin" not in principal.rights or ScopeRule() not in principal.grants_for(name):
            raise Forbidden(
                "maintaining an index needs the right 'admin' and a grant for all its scopes", field="index"
            )
        if action not in get_args(Upkeep):
            raise Invalid(f"action must be one of {', '.join(get_args(Upkeep))}, not {action!r}", field="action")
        done, total = 0, 1
        while done < total:
            done, total = self.engine.upkeep(name, cast(Upkeep, action))
            if progress is not None:
                progress(done / max(total, 1))

    def _settings(self, principal: Principal, name: str) -> IndexSettings:
        settings = self.engine.index(check_name(name)) if principal.grants_for(name) else None
        if settings is None:
            raise NotFound(f"there is no index {name!r}", field="index")
        return settings


def _named(policy: PolicyChange) -> dict[str, Any]:
    """What a request says of a policy, without what it leaves as it is."""
    return {name: value for name, value in msgspec.structs.asdict(policy).items() if value is not None}
