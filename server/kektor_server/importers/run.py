"""Items on their way in: through the operations of every other command, once however often they come."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from kektor_server.cli.conversations import parts
from kektor_server.cli.faults import Fault
from kektor_server.importers.items import Change, Conversation, Item, Left, Link, Statement

__all__ = ["Importing"]

_PART = 100
_REFUSED = ("blocked", "conflict", "invalid", "too_large", "forbidden", "not_found")
"""Errors of one item, after which the next one may well go in."""


class Caller(Protocol):
    def call(self, operation: str, fields: Mapping[str, Any], about: str = "") -> Any: ...


class Importing:
    """One run of an import, and its report.

    Every statement gets an id that is made of its source's own key. So a second run finds it there: unchanged it is a
    duplicate, and what has been changed, archived or forgotten here since is left as it is and told.
    """

    def __init__(self, target: Caller, source: str, fields: Callable[..., dict[str, Any]]) -> None:
        self._target = target
        self._source = source
        self._fields = fields
        self._ids: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.left: list[dict[str, str]] = []

    def run(self, items: Iterable[Item], step: Callable[[], None]) -> None:
        """Take in all items, one after the other."""
        for item in items:
            try:
                self._take(item)
            except Fault as fault:
                if fault.code not in _REFUSED:
                    raise
                self.counts["refused"] += 1
                self._leave(_named(item), f"{fault.code}: {fault.message}")
            step()

    def _take(self, item: Item) -> None:
        match item:
            case Statement():
                self._remember(item)
            case Change():
                self._change(item)
            case Link():
                self._link(item)
            case Conversation():
                self._ingest(item)
            case Left():
                self._leave(item.where, item.why)

    def _remember(self, item: Statement) -> None:
        fields = self._scoped(item, text=item.text, id=self._id(item.key), **item.fields)
        try:
            receipt = self._target.call("remember", fields)
        except Fault as fault:
            if fault.code != "conflict" or not self._is_there(fields):
                raise
            receipt = {"outcome": "duplicate", "id": fields["id"]}
        self.counts[receipt["outcome"]] += 1
        self._ids[item.key] = str(receipt.get("id") or receipt.get("of"))

    def _is_there(self, fields: dict[str, Any]) -> bool:
        """Whether it was imported before and only put away since."""
        about: dict[str, Any] = {name: fields[name] for name in ("index", "scope") if name in fields}
        there = self._target.call("get", about, fields["id"])
        return bool(there["text"] == fields["text"])

    def _change(self, item: Change) -> None:
        if item.of not in self._ids:
            self._leave(f"a change of {item.of}", "what it changes was not imported")
            return
        about, key = self._ids[item.of], f"import-{self._source}-{item.key}"
        if item.text is None:
            self._target.call("archive", self._fields(idempotency_key=key, reason="deleted at its source"), about)
            self.counts["archived"] += 1
            return
        fields = self._fields(text=item.text, valid_from=item.at, idempotency_key=key, reason="changed at its source")
        receipt = self._target.call("evolve", fields, about)
        self._ids[item.of] = str(receipt["id"])
        self.counts["changed"] += 1

    def _link(self, item: Link) -> None:
        ends = [self._ids.get(key) for key in (item.src, item.dst)]
        if None in ends:
            self._leave(_named(item), "one of its ends was not imported")
            return
        edge = {"src": ends[0], "rel": item.rel, "dst": ends[1]}
        # Under a key of its own: what was unlinked here since is not linked again.
        key = f"import-{self._id(f'{ends[0]} {item.rel} {ends[1]}')}"
        self._target.call("link", self._fields(edges=[edge], idempotency_key=key))
        self.counts["links"] += 1

    def _ingest(self, item: Conversation) -> None:
        for part in parts(item.messages, _PART):
            fields = self._fields(session=item.session, title=item.title or None, messages=[*part.repeated, *part.new])
            receipt = self._target.call("ingest_messages", fields)
            for outcome in receipt["items"][len(part.repeated) :]:
                self.counts[f"messages_{outcome['outcome']}"] += 1
        self.counts["conversations"] += 1

    def _scoped(self, item: Statement, **given: Any) -> dict[str, Any]:
        fields = self._fields(**given)
        if item.scope:
            fields["scope"] = {**item.scope, **fields.get("scope", {})}
        return fields

    def _leave(self, where: str, why: str) -> None:
        self.counts["left"] += 1
        self.left.append({"what": where, "why": why})

    def _id(self, key: str) -> str:
        digest = hashlib.blake2b(f"{self._source}\0{key}".encode("utf-8", "surrogatepass"), digest_size=12)
        return f"{self._source}-{digest.hexdigest()}"


def _named(item: Item) -> str:
    match item:
        case Statement():
            return f"{item.key}: {item.text[:60]}"
        case Change():
            return f"a change of {item.of}"
        case Link():
            return f"{item.src} {item.rel} {item.dst}"
        case Conversation():
            return item.title or item.session
        case Left():
            return item.where
