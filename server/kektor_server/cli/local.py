"""A data directory opened for one command."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import kektor
from kektor.contract import convert
from kektor.engine.gateway import Principal
from kektor.engine.local import LocalEngine
from kektor.engine.records import Actor, ActorKind
from kektor.errors import KektorError
from kektor.ingest import IngestMessagesRequest
from kektor.memory import requests as rq
from kektor.memory.presenting import index_of
from kektor.operations import Operations
from kektor.operations.admin import CompactRequest
from kektor.operations.audit import AuditRequest
from kektor_server.auth.requests import CreateTokenRequest, RotateRequest
from kektor_server.cli.faults import Fault
from kektor_server.daemon.doctor import examine
from kektor_server.daemon.exporting import export_lines
from kektor_server.settings import Settings

if TYPE_CHECKING:
    from kektor_server.auth.authority import TokenAuthority

__all__ = ["RUNS", "LocalTarget"]

TokenRun = Callable[["TokenAuthority", Principal, str, dict[str, Any]], Any]
Run = Callable[[Operations, Principal, str, dict[str, Any]], Any]


class LocalTarget:
    """The directory is this process's alone until it is closed."""

    def __init__(self, settings: Settings, *, human: bool) -> None:
        actor = Actor(ActorKind.HUMAN if human else ActorKind.SERVICE, "", "cli")
        self._examined = False
        self._database = kektor.open(Path(settings.data), actor=actor, embedder=settings.embedder, sync=settings.sync)

    def call(self, operation: str, fields: Mapping[str, Any], about: str = "") -> Any:
        """Run one operation; returns plain JSON values, raises Fault."""
        principal = self._database.principal()
        try:
            if operation in TOKEN_RUNS:
                from kektor_server.auth.authority import TokenAuthority

                authority = TokenAuthority.of(self._database)
                return msgspec.to_builtins(TOKEN_RUNS[operation](authority, principal, about, dict(fields)))
            result = RUNS[operation](self._database.operations, principal, about, dict(fields))
        except KektorError as error:
            raise Fault.of(error.as_dict()["error"]) from error
        return msgspec.to_builtins(result)

    def doctor(self) -> dict[str, Any]:
        """A thorough look, after which nothing is written: a checkpoint of what is damaged would pass for good."""
        self._examined = True
        report: dict[str, Any] = json.loads(msgspec.json.encode(examine(self._database.engine)))
        return report

    def repair(self) -> list[str]:
        """Mend what can be mended; says what was done."""
        engine = self._database.engine
        try:
            return engine.repair() if isinstance(engine, LocalEngine) else []
        except KektorError as error:
            raise Fault.of(error.as_dict()["error"]) from error

    def export(self, indexes: list[str] | None) -> Iterator[bytes]:
        """The lines of an export."""
        try:
            yield from export_lines(self._database, indexes)
        except KektorError as error:
            raise Fault.of(error.as_dict()["error"]) from error

    def close(self) -> None:
        """Let the directory go; after an examination by the end of the process alone, since closing writes."""
        if not self._examined:
            self._database.close()


def _list(operations: Operations, principal: Principal, _about: str, fields: dict[str, Any]) -> Any:
    return operations.list_memories(convert(rq.ListRequest, fields), principal)


def _get(operations: Operations, principal: Principal, about: str, fields: dict[str, Any]) -> Any:
    return operations.get(fields["index"], about, principal, scope=_scope(fields), resolve=fields.get("resolve"))


def _history(operations: Operations, principal: Principal, about: str, fields: dict[str, Any]) -> Any:
    versions = operations.history(fields["index"], about, principal, scope=_scope(fields))
    return {"items": versions, "next_cursor": None}


def _tombstones(operations: Operations, principal: Principal, _about: str, fields: dict[str, Any]) -> Any:
    page = {name: fields[name] for name in ("limit", "cursor") if name in fields}
    return operations.tombstones(fields["index"], principal, scope=_scope(fields), **page)


def _sessions(operations: Operations, principal: Principal, _about: str, fields: dict[str, Any]) -> Any:
    page = {name: fields[name] for name in ("limit", "cursor") if name in fields}
    return operations.sessions(fields["index"], principal, scope=_scope(fields), **page)


def _evidence(operations: Operations, principal: Principal, about: str, fields: dict[str, Any]) -> Any:
    spans = operations.evidence(fields["index"], about, principal, scope=_scope(fields))
    return {"items": spans, "next_cursor": None}


def _list_indexes(operations: Operations, principal: Principal, _about: str, _fields: dict[str, Any]) -> Any:
    return {"items": [index_of(settings) for settings in operations.list_indexes(principal)], "next_cursor": None}


def _without_index(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "index"}


def _reviews(operations: Operations, principal: Principal, _about: str, fields: dict[str, Any]) -> Any:
    page = {name: fields[name] for name in ("status", "limit", "cursor") if name in fields}
    return operations.reviews(fields["index"], principal, scope=_scope(fields), **page)


def _scope(fields: dict[str, Any]) -> rq.ScopeIn | None:
    return convert(rq.ScopeIn, fields["scope"]) if "scope" in fields else None


TOKEN_RUNS: dict[str, TokenRun] = {
    "token_create": lambda a, p, about, f: a.create(convert(CreateTokenRequest, f), p),
    "token_list": lambda a, p, about, f: a.tokens(p, limit=100, cursor=f.get("cursor")),
    "token_revoke": lambda a, p, about, f: a.revoke(about, p),
    "keys_rotate": lambda a, p, about, f: a.rotate(convert(RotateRequest, f), p),
}

RUNS: dict[str, Run] = {
    "remember": lambda o, p, about, f: o.remember(convert(rq.RememberRequest, f), p),
    "recall": lambda o, p, about, f: o.recall(convert(rq.RecallRequest, f), p),
    "get": _get,
    "list": _list,
    "history": _history,
    "evolve": lambda o, p, about, f: o.evolve(about, convert(rq.EvolveRequest, f), p),
    "correct": lambda o, p, about, f: o.correct(about, convert(rq.EvolveRequest, f), p),
    "retract": lambda o, p, about, f: o.change_state("retract", about, convert(rq.VerbRequest, f), p),
    "archive": lambda o, p, about, f: o.change_state("archive", about, convert(rq.VerbRequest, f), p),
    "restore": lambda o, p, about, f: o.change_state("restore", about, convert(rq.VerbRequest, f), p),
    "pin": lambda o, p, about, f: o.pin(about, convert(rq.VerbRequest, f), p, pinned=True),
    "unpin": lambda o, p, about, f: o.pin(about, convert(rq.VerbRequest, f), p, pinned=False),
    "confirm": lambda o, p, about, f: o.confirm(about, convert(rq.ConfirmRequest, f), p),
    "update": lambda o, p, about, f: o.update(about, convert(rq.UpdateRequest, f), p),
    "share": lambda o, p, about, f: o.share(about, convert(rq.ShareRequest, f), p),
    "evidence": _evidence,
    "link": lambda o, p, about, f: o.link(f["index"], convert(rq.LinkRequest, _without_index(f)), p),
    "unlink": lambda o, p, about, f: o.unlink(f["index"], convert(rq.UnlinkRequest, _without_index(f)), p),
    "edges": lambda o, p, about, f: o.edges(f["index"], about, convert(rq.EdgesRequest, _without_index(f)), p),
    "path": lambda o, p, about, f: o.path(f["index"], convert(rq.PathRequest, _without_index(f)), p),
    "create_index": lambda o, p, about, f: index_of(o.create_index(convert(rq.CreateIndexRequest, f), p)),
    "list_indexes": _list_indexes,
    "get_index": lambda o, p, about, f: index_of(o.get_index(about, p)),
    "index_stats": lambda o, p, about, f: o.index_stats(about, p),
    "configure_index": lambda o, p, about, f: index_of(
        o.configure_index(about, convert(rq.ConfigureIndexRequest, f), p)
    ),
    "drop_index": lambda o, p, about, f: o.drop_index(about, p, reason=f.get("reason", "")),
    "forget": lambda o, p, about, f: o.forget(convert(rq.ForgetRequest, f), p),
    "sessions": _sessions,
    "start_session": lambda o, p, about, f: o.start_session(convert(rq.StartSessionRequest, f), p),
    "end_session": lambda o, p, about, f: o.end_session(about, convert(rq.EndSessionRequest, f), p),
    "reviews": _reviews,
    "review": lambda o, p, about, f: o.review(about, convert(rq.ReviewRequest, f), p),
    "tombstones": _tombstones,
    "lift": lambda o, p, about, f: o.lift(about, convert(rq.LiftRequest, f), p),
    "audit": lambda o, p, about, f: o.audit(convert(AuditRequest, f), p),
    "verify_audit": lambda o, p, about, f: o.verify_audit(p),
    "compact": lambda o, p, about, f: o.compact(convert(CompactRequest, f), p),
    "ingest_messages": lambda o, p, about, f: o.ingest_messages(convert(IngestMessagesRequest, f), p),
}
