"""Conversations as ChatGPT and Claude export them: `conversations.json`, or the zip that it comes in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kektor_server.importers.items import Conversation, Item, Left, Unreadable
from kektor_server.importers.sources import instant, json_of, objects, read_text, text_of

__all__ = ["read_chatgpt", "read_claude"]

_MEMBER = "conversations.json"
_ROLES = ("user", "assistant", "tool", "system")


def read_chatgpt(path: Path) -> Iterator[Item]:
    """Each conversation along the branch that was shown last; what was never shown is left out."""
    for number, talk in enumerate(objects(json_of(read_text(path, _MEMBER), str(path)), str(path)), 1):
        place = f"{path}, conversation {number}"
        mapping = talk.get("mapping")
        if not isinstance(mapping, dict):
            raise Unreadable(f"{place}: a conversation of ChatGPT has a mapping")
        name = text_of(talk.get("conversation_id")) or text_of(talk.get("id")) or f"{path.stem}-{number}"
        messages = [said for node in _branch(mapping, talk.get("current_node")) if (said := _of_chatgpt(node))]
        yield from _conversation("chatgpt", name, text_of(talk.get("title")), messages, place)


def read_claude(path: Path) -> Iterator[Item]:
    """Each conversation in the order it was held."""
    for number, talk in enumerate(objects(json_of(read_text(path, _MEMBER), str(path)), str(path)), 1):
        place = f"{path}, conversation {number}"
        if not isinstance(talk.get("chat_messages"), list):
            raise Unreadable(f"{place}: a conversation of Claude has chat_messages")
        said = (_of_claude(message) for message in objects(talk["chat_messages"], place))
        name = text_of(talk.get("uuid")) or f"{path.stem}-{number}"
        yield from _conversation("claude", name, text_of(talk.get("name")), [each for each in said if each], place)


def _conversation(source: str, name: str, title: str, messages: list[dict[str, Any]], place: str) -> Iterator[Item]:
    if messages:
        yield Conversation(f"{source}:{name}", title, messages)
    else:
        yield Left(f"{place} ({title or name})", "nothing was said in it")


def _branch(mapping: dict[str, Any], current: Any) -> list[dict[str, Any]]:
    """From the last message up to the root, turned round. Without one, all in the order they are in."""
    if current not in mapping:
        return [node for node in mapping.values() if isinstance(node, dict)]
    branch: list[dict[str, Any]] = []
    seen: set[str] = set()
    while isinstance(node := mapping.get(current), dict) and current not in seen:
        seen.add(current)
        branch.append(node)
        current = node.get("parent")
    return branch[::-1]


def _of_chatgpt(node: dict[str, Any]) -> dict[str, Any] | None:
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    content, author = message.get("content"), message.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if role not in _ROLES or hidden or not isinstance(content, dict):
        return None
    parts = content.get("parts")
    listed = parts if isinstance(parts, list) else [content.get("text")]
    text = "\n\n".join(part for part in listed if isinstance(part, str) and part.strip())
    return _message(str(role), text, message.get("id"), message.get("create_time"))


def _of_claude(message: dict[str, Any]) -> dict[str, Any] | None:
    role = {"human": "user", "assistant": "assistant"}.get(text_of(message.get("sender")))
    if role is None:
        return None
    content = message.get("content")
    listed = content if isinstance(content, list) else []
    parts = [text_of(part.get("text")) for part in listed if isinstance(part, dict) and part.get("type") == "text"]
    text = "\n\n".join(part for part in parts if part.strip()) or text_of(message.get("text"))
    return _message(role, text, message.get("uuid"), message.get("created_at"))


def _message(role: str, text: str, name: Any, at: Any) -> dict[str, Any] | None:
    if not text.strip():
        return None
    told = {"role": role, "content": text, "id": text_of(name) or None, "at": instant(at)}
    return {key: value for key, value in told.items() if value is not None}
