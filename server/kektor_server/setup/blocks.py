"""A marked block in a text file that is somebody else's."""

from kektor_server.setup.edits import Uneditable

__all__ = ["remove_block", "set_block"]

_BEGIN = "<!-- kektor memory: begin (kept by `kektor setup`) -->"
_END = "<!-- kektor memory: end -->"


def set_block(text: str, content: str) -> str:
    """The file with the block at its end, or in place of the one there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = f"{_BEGIN}\n{content.strip()}\n{_END}\n".replace("\n", newline)
    place = _place(text)
    if place is not None:
        return text[: place[0]] + block + text[place[1] :]
    if not text:
        return block
    gap = newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{block}"


def remove_block(text: str) -> str:
    """The file without the block and the empty line before it."""
    place = _place(text)
    if place is None:
        return text
    before, after = text[: place[0]], text[place[1] :]
    for gap in ("\r\n\r\n", "\n\n"):
        if before.endswith(gap):
            return before[: -len(gap) // 2] + after
    return before + after


def _place(text: str) -> tuple[int, int] | None:
    begin = text.find(_BEGIN)
    if begin < 0:
        return None
    end = text.find(_END, begin)
    if end < 0:
        raise Uneditable(f"a block begins ({_BEGIN}) and does not end: remove that line")
    end += len(_END)
    newline = text.find("\n", end)
    return begin, newline + 1 if newline >= 0 and not text[end:newline].strip() else end
