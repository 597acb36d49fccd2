"""Indexes: create, list, configure, drop."""

from collections.abc import Mapping, Set

import msgspec

from kektor.engine.gateway import Principal
from kektor.engine.port import EngineStats
from kektor.engine.records import DEFAULT_LAYERS, IndexSettings, Layer, Policy, Receipt
from kektor.errors import Forbidden, Invalid, NotFound
from kektor.memory.commands.indexes import ConfigureIndex, CreateIndex, DropIndex, merged_policy
from kektor.memory.limits import check_name
from kektor.memory.requests import ConfigureIndexRequest, CreateIndexRequest
from kektor.operations.base import BaseOperations

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
        for name, value, low, high in (
            ("m", request.m, 2, 128),
            ("ef_construction", request.ef_construction, 8, 2000),
        ):
            if not low <= value <= high:
                raise Invalid(f"{name} must be {low} to {high}, not {value}", field=name)
        _check_layers(request.layers)
        _check_policy(request.policy, request.layers.keys() | DEFAULT_LAYERS.keys())
        new = self._new_settings(
            request.name,
            embedder=embedder,
            dim=request.dim,
            metric=request.metric,
            precision=request.precision,
            m=request.m,
            ef_construction=request.ef_construction,
            text=request.text,
            policy=_with_bare_entries(request.policy),
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
        old = self._settings(principal, name)
        _check_layers(request.layers)
        policy = {k: v for k, v in msgspec.structs.asdict(request.policy).items() if v is not None}
        if "single_valued" in policy:
            policy["single_valued"] = tuple(policy["single_valued"])
        new = _with_bare_entries(merged_policy(old.policy, policy))
        _check_policy(new, request.layers.keys() | old.layers.keys())
        policy |= {"single_valued": new.single_valued} if "single_valued" in policy else {}
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

    def index_stats(self, name: str, principal: Principal) -> EngineStats:
        """Sizes of the whole index, whatever the caller sees of it; needs a grant for all of it."""
        self._settings(principal, name)
        if not any(rule.user is rule.agent is rule.project is None for rule in principal.grants_for(name)):
            raise Forbidden("the statistics of an index cover all its scopes", field="index")
        return self.engine.stats(name)

    def _settings(self, principal: Principal, name: str) -> IndexSettings:
        settings = self.engine.index(check_name(name)) if principal.grants_for(name) else None
        if settings is None:
            raise NotFound(f"there is no index {name!r}", field="index")
        return settings


def _check_layers(layers: Mapping[str, Layer]) -> None:
    for name, layer in layers.items():
        half_life = layer.half_life_days
        if half_life is not None and not 0 < half_life <= 36_500:
            raise Invalid(
                f"half_life_days must be above 0 and at most 36500, not {half_life}",
                field=f"layers.{name}.half_life_days",
            )
        if layer.decay != "exponential":
            raise Invalid(f"decay must be 'exponential', not {layer.decay!r}", field=f"layers.{name}.decay")


_POLICY_CHOICES = {
    "evidence": ("off", "record", "require"),
    "agent_writes": ("accept", "propose"),
    "write": ("open", "gated", "frozen"),
}


_RETENTION_MODES = ("archive", "retract", "erase")


def _check_policy(policy: Policy, layers: Set[str]) -> None:
    """Every field is one of its values; what concerns a layer names one that the index has."""
    for name, choices in _POLICY_CHOICES.items():
        value = getattr(policy, name)
        if value not in choices:
            raise Invalid(f"policy.{name} must be {' or '.join(choices)}, not {value!r}", field=f"policy.{name}")
    for number, entry in enumerate(policy.single_valued or ()):
        if not entry.strip() or len(entry) > 100:
            raise Invalid(
                "an entry of single_valued is a predicate such as 'lives in' or a noun such as 'port', "
                "of 1 to 100 characters",
                field=f"policy.single_valued[{number}]",
            )
    for layer, kept in policy.retention.items():
        where = f"policy.retention.{layer}"
        if layer not in layers:
            raise Invalid(f"there is no layer {layer!r}; there are {', '.join(sorted(layers))}", field=where)
        if not 0 < kept.days <= 36_500:
            raise Invalid(f"days must be above 0 and at most 36500, not {kept.days}", field=f"{where}.days")
        if kept.mode not in _RETENTION_MODES:
            raise Invalid(f"mode must be {' or '.join(_RETENTION_MODES)}, not {kept.mode!r}", field=f"{where}.mode")


def _with_bare_entries(policy: Policy) -> Policy:
    """The entries of `single_valued` without white space around them, each once."""
    if policy.single_valued is None:
        return policy
    entries = tuple(dict.fromkeys(entry.strip() for entry in policy.single_valued))
    return msgspec.structs.replace(policy, single_valued=entries)
