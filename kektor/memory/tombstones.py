"""What is remembered of a value so that it does not come back: digests of what it says, never the text."""

from collections.abc import Iterable

from msgspec import structs

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Claim, Node, Tombstone
from kektor.memory.commands.base import MemoryCommand
from kektor.text import Digester, Span, sentences, telling

__all__ = ["ERASURE", "REJECTED", "bury", "claim_digest", "guard"]

REJECTED = "value"
ERASURE = "erasure"
"""The classes of tombstones: of what was said not to be true, and of what was erased."""


def bury(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    node: Node,
    *,
    cls: str = REJECTED,
    index: str | None = None,
) -> None:
    """Remember the value of a node: its text in every reading, and its claim."""
    digester = command.context.digester
    digests = digester.digests(node.text) if node.text else ()
    if node.claim is not None:
        digests += (claim_digest(digester, node.claim),)
    _put(tx, command, principal, index or command.index, node, digests, cls=cls)


def guard(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    node: Node,
    *,
    index: str | None = None,
    spans: Iterable[Span] | None = None,
) -> None:
    """Remember what is erased of a node, sentence by sentence, so that it is withheld inside other text as well.

    `spans` are the sentences that go; None is the whole node with its claim.
    """
    index = index or command.index
    settings = tx.index(index)
    language = "english" if settings is None else settings.text.language
    own = sentences(node.text)
    if spans is None and len(own) != 1:
        bury(tx, command, principal, node, cls=ERASURE, index=index)
    for span in own if spans is None else spans:
        said = node.text[span.start : span.end]
        digests = command.context.digester.digests(said)
        if spans is None and len(own) == 1 and node.claim is not None:
            digests += (claim_digest(command.context.digester, node.claim),)
        tokens = telling(said, language)
        hashed = tuple(sorted(command.context.digester.digest("token", token) for token in tokens))
        _put(tx, command, principal, index, node, digests, cls=ERASURE, tokens=hashed)


def claim_digest(digester: Digester, claim: Claim) -> bytes:
    """What a claim is recognised by, whatever words it is told in."""
    return digester.digest("claim", *structs.astuple(claim))


def _put(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    index: str,
    node: Node,
    digests: tuple[bytes, ...],
    *,
    cls: str,
    tokens: tuple[bytes, ...] = (),
) -> None:
    settings = tx.index(index)
    if not digests or settings is None:
        return
    standing = tx.tombstone(index, node.scope, digests[0])
    if standing is not None and standing.cls == cls and set(digests) <= set(standing.digests):
        return
    tx.put_tombstone(
        Tombstone(
            id=clock.new_id(),
            index=settings.number,
            scope=node.scope,
            digest=digests[0],
            cls=cls,
            created_at=tx.time,
            actor=principal.actor,
            # A reason may quote what is erased.
            reason="" if cls == ERASURE else command.reason,
            node=node.id,
            also=digests[1:],
            tokens=tokens,
        )
    )
