"""KektorDB: pages of its index export, `{data: [{id, metadata}]}`, alone, in a list, or one a line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kektor_server.importers.items import Item, Left, Statement, Unreadable
from kektor_server.importers.sources import instant, json_lines, json_of, objects, read_text, text_of

__all__ = ["read_kektordb"]

_TEXTS = ("content", "text", "description", "summary")
_OURS = frozenset({*_TEXTS, "type", "memory_layer", "tags", "timestamp", "user_id", "agent_id", "_index_name"})
_DERIVED = ("session_summary", "memories_summary", "reflection", "consolidated_memory", "consolidated_belief",
            "user_profile", "user_profile_insight", "failure_pattern", "knowledge_evolution", "knowledge_artifact",
            "agent_proxy")  # fmt: skip
"""What it made itself of memories; ours makes its own."""


def read_kektordb(path: Path) -> Iterator[Item]:
    """Current memories and entities. What it had replaced or archived, and what it had made itself, is left."""
    for place, node in _nodes(path):
        metadata = node.get("metadata")
        if not isinstance(metadata, dict) or not text_of(node.get("id")):
            raise Unreadable(f"{place}: a node has an id and metadata")
        why = _why_not(metadata)
        text = next((text for name in _TEXTS if (text := text_of(metadata.get(name))).strip()), "")
        if why or not text:
            yield Left(f"node {node['id']}", why or "it has no text")
        else:
            yield Statement(node["id"], text, _fields(metadata), _scope(metadata))


def _why_not(metadata: dict[str, Any]) -> str:
    if metadata.get("_is_historical") in (True, "true"):
        return "it was replaced by a newer version"
    if metadata.get("_archived") in (True, "true"):
        return "it is archived"
    kind = metadata.get("type")
    return f"{kind} is derived from memories" if kind in _DERIVED else ""


def _fields(metadata: dict[str, Any]) -> dict[str, Any]:
    tags = metadata.get("tags")
    listed = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else []
    own = {name: value for name, value in metadata.items() if name not in _OURS and not name.startswith("_")}
    if metadata.get("type") not in (None, "memory"):
        own["type"] = metadata["type"]
    at = instant(metadata.get("timestamp")) or instant(metadata.get("_created_at"))
    return {
        "tags": [tag for each in listed if (tag := str(each).strip())],
        "layer": text_of(metadata.get("memory_layer")) or "semantic",
        "metadata": own,
        **({} if at is None else {"valid_from": at}),
        **({"pinned": True} if metadata.get("_pinned") in (True, "true") else {}),
    }


def _scope(metadata: dict[str, Any]) -> dict[str, str]:
    members = {"user": metadata.get("user_id"), "agent": metadata.get("agent_id")}
    return {name: str(value) for name, value in members.items() if value}


def _nodes(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = read_text(path)
    if text.lstrip().startswith("{") and "\n{" in text.strip():
        pages = [page for _, page in json_lines(text, str(path))]
    else:
        value = json_of(text, str(path))
        pages = [value] if isinstance(value, dict) else objects(value, str(path))
    for page in pages:
        nodes = page.get("data", [page]) if isinstance(page, dict) else []
        for number, node in enumerate(objects(nodes, str(path)), 1):
            yield f"{path}, node {number}", node
