"""The file of the well-known knowledge-graph memory server: entities, observations and relations, one JSON a line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kektor_server.importers.items import Item, Left, Link, Statement, Unreadable
from kektor_server.importers.sources import json_lines, json_of, read_text, text_of
from kektor_server.mcp.known_graph import ABOUT, entity_fields, observation_fields

__all__ = ["read_graph"]


def read_graph(path: Path) -> Iterator[Item]:
    """Entities first, then what is known of them, then how they are related.

    The file is JSON lines with a `type` each, or one object with `entities` and `relations`.
    """
    entities, relations, left = _parts(path)
    names = {text_of(entity["name"]) for entity in entities}
    for entity in entities:
        name, kind = text_of(entity["name"]), text_of(entity.get("entityType")) or "entity"
        yield _statement(f"entity:{name}", entity_fields(name, kind))
        for observation in dict.fromkeys(map(str, entity.get("observations") or ())):
            if not observation.strip():
                continue
            key = f"observation:{name}:{observation}"
            yield _statement(key, observation_fields(name, observation))
            yield Link(key, ABOUT, f"entity:{name}")
    for relation in relations:
        src, rel, dst = (text_of(relation.get(part)) for part in ("from", "relationType", "to"))
        missing = [name for name in (src, dst) if name not in names]
        if missing or not rel:
            yield Left(
                f"relation {src} {rel} {dst}", f"there is no entity {missing[0]!r}" if missing else "it is unnamed"
            )
        else:
            yield Link(f"entity:{src}", rel, f"entity:{dst}")
    yield from left


def _parts(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Left]]:
    text = read_text(path)
    entities: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    left: list[Left] = []
    if (text.lstrip().startswith("{") and '"entities"' in text.partition("\n")[0]) or (
        path.suffix == ".json" and _whole(text)
    ):
        value = json_of(text, str(path))
        entities, relations = value.get("entities") or [], value.get("relations") or []
    else:
        for place, record in json_lines(text, str(path)):
            kind = record.get("type")
            if kind == "entity":
                entities.append(record)
            elif kind == "relation":
                relations.append(record)
            else:
                left.append(Left(place, f"a record of type {kind!r} is neither an entity nor a relation"))
    if not all(isinstance(each, dict) and text_of(each.get("name")).strip() for each in entities):
        raise Unreadable(f"{path}: an entity needs a name")
    if not entities and not relations and left:
        raise Unreadable(f"{path} holds neither entities nor relations: is it the memory server's file?")
    return entities, relations, left


def _whole(text: str) -> bool:
    """Whether the file is one object and not one a line."""
    return ("\n" not in text.strip() and '"entities"' in text) or text.lstrip()[:2] in ("{\n", "{\r")


def _statement(key: str, fields: dict[str, Any]) -> Statement:
    text = fields.pop("text")
    return Statement(key, text, fields)
