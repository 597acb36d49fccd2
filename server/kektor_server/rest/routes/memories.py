"""Memories: saving, reading and what may happen to one."""

from msgspec import structs

from kektor.engine.records import Receipt
from kektor.memory.objects import Forgotten, Memory, MemoryPage
from kektor.memory.requests import (
    ConfirmRequest,
    DismissRequest,
    EvolveRequest,
    ForgetRequest,
    ReinforceRequest,
    RememberRequest,
    ShareRequest,
    UpdateRequest,
    VerbRequest,
)
from kektor.memory.revision import revision
from kektor_server.rest.answers import EvidencePage, MemoryList
from kektor_server.rest.inputs import DeleteMemoryQuery, GetMemoryQuery, ListQuery, MemoryQuery, ReinforceBody
from kektor_server.rest.route import Call, Routes, is_new

__all__ = ["routes"]

routes = Routes("memories")


@routes.post("/v1/memories", creates=is_new, errors=("not_found", "conflict", "blocked"))
def remember(call: Call, body: RememberRequest) -> Receipt:
    """Save a statement: 201 when it is new, 200 when it is there already."""
    return call.operations.remember(body, call.principal)


@routes.get("/v1/memories", errors=("not_found",))
def list_memories(call: Call, query: ListQuery) -> MemoryPage:
    """Memories in the order they were recorded, a page at a time."""
    return call.operations.list_memories(query.request(), call.principal)


@routes.get("/v1/memories/{id}", errors=("not_found", "conflict"), etag=revision)
def get_memory(call: Call, id: str, query: GetMemoryQuery) -> Memory:
    """That version exactly, superseded and archived ones too; `resolve=head` its newest successor."""
    return call.operations.get(
        query.index,
        id,
        call.principal,
        scope=query.scope(),
        resolve=query.resolve,
        as_of=query.as_of,
        known_at=query.known_at,
        tz=query.tz,
    )


@routes.patch("/v1/memories/{id}", errors=("not_found", "conflict", "blocked"))
def update_memory(call: Call, id: str, body: UpdateRequest) -> Receipt:
    """Replace tags, metadata, layer or pin; the statement, and so the version, stays."""
    return call.operations.update(id, body, call.principal)


@routes.delete("/v1/memories/{id}", errors=("not_found", "conflict", "blocked"), keyed=True)
def delete_memory(call: Call, id: str, query: DeleteMemoryQuery) -> Forgotten:
    """Forget one memory: `mode=erase` (the default) takes its whole lineage, `mode=archive` puts it out of sight."""
    request = ForgetRequest(
        ids=[id],
        index=query.index,
        scope=query.scope(),
        mode=query.mode,
        reason=query.reason,
        idempotency_key=call.idempotency_key,
    )
    return call.operations.forget(request, call.principal)


@routes.get("/v1/memories/{id}/history", errors=("not_found", "conflict"))
def memory_history(call: Call, id: str, query: MemoryQuery) -> MemoryList:
    """Every version of the same statement, oldest first."""
    return MemoryList(call.operations.history(query.index, id, call.principal, scope=query.scope()), None)


@routes.get("/v1/memories/{id}/evidence", errors=("not_found", "conflict"))
def memory_evidence(call: Call, id: str, query: MemoryQuery) -> EvidencePage:
    """The spans of sources that a memory rests on."""
    return EvidencePage(call.operations.evidence(query.index, id, call.principal, scope=query.scope()), None)


@routes.post("/v1/memories/{id}/evolve", errors=("not_found", "conflict", "blocked"))
def evolve(call: Call, id: str, body: EvolveRequest) -> Receipt:
    """The world changed: the text holds from `valid_from` (default now) on, the old version until then."""
    return call.operations.evolve(id, body, call.principal)


@routes.post("/v1/memories/{id}/correct", errors=("not_found", "conflict", "blocked"))
def correct(call: Call, id: str, body: EvolveRequest) -> Receipt:
    """It was never true: the text takes its whole interval, and the old value cannot come back."""
    return call.operations.correct(id, body, call.principal)


@routes.post("/v1/memories/{id}/retract", errors=("not_found", "conflict", "blocked"))
def retract(call: Call, id: str, body: VerbRequest) -> Receipt:
    """It was never true and nothing replaces it: rejected by value."""
    return call.operations.change_state("retract", id, body, call.principal)


@routes.post("/v1/memories/{id}/archive", errors=("not_found", "conflict", "blocked"))
def archive(call: Call, id: str, body: VerbRequest) -> Receipt:
    """Out of sight until it is restored."""
    return call.operations.change_state("archive", id, body, call.principal)


@routes.post("/v1/memories/{id}/restore", errors=("not_found", "conflict", "blocked"))
def restore(call: Call, id: str, body: VerbRequest) -> Receipt:
    """Back from the archive."""
    return call.operations.change_state("restore", id, body, call.principal)


@routes.post("/v1/memories/{id}/pin", errors=("not_found", "conflict", "blocked"))
def pin(call: Call, id: str, body: VerbRequest) -> Receipt:
    """A pinned memory does not age out of sight."""
    return call.operations.pin(id, body, call.principal, pinned=True)


@routes.post("/v1/memories/{id}/unpin", errors=("not_found", "conflict", "blocked"))
def unpin(call: Call, id: str, body: VerbRequest) -> Receipt:
    """It ages like the others again."""
    return call.operations.pin(id, body, call.principal, pinned=False)


@routes.post("/v1/memories/{id}/confirm", errors=("not_found", "conflict", "blocked"))
def confirm(call: Call, id: str, body: ConfirmRequest) -> Receipt:
    """It was seen to hold again, as a source says when `evidence` names one."""
    return call.operations.confirm(id, body, call.principal)


@routes.post("/v1/memories/{id}/dismiss", errors=("not_found", "conflict", "blocked"))
def dismiss(call: Call, id: str, body: DismissRequest) -> Receipt:
    """A key led here wrongly: that way counts for less, and the memory stays as it is."""
    return call.operations.dismiss(id, body, call.principal)


@routes.post("/v1/memories/{id}/share", creates=is_new, errors=("not_found", "conflict", "blocked"))
def share(call: Call, id: str, body: ShareRequest) -> Receipt:
    """Copy it to another scope or index; the copy knows its original, so that erasing that reaches it."""
    return call.operations.share(id, body, call.principal)


@routes.post("/v1/memories/{id}/reinforce", errors=("not_found", "conflict", "blocked"))
def reinforce(call: Call, id: str, body: ReinforceBody) -> Receipt:
    """Count a use; reading never does."""
    return call.operations.reinforce(ReinforceRequest(ids=[id], **structs.asdict(body)), call.principal)
