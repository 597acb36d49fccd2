"""Memories and receipts in words, for a terminal."""

import shutil
import sys
from typing import Any

from kektor_server.cli.output import shown

__all__ = [
    "forgotten_lines",
    "memory_lines",
    "one_line",
    "recall_lines",
    "receipt_lines",
    "review_lines",
    "version_line",
]

_SHORTEST = 40

Object = dict[str, Any]


_TO_OTHER = {"duplicate": "same as", "proposed": "would replace"}


def receipt_lines(receipt: Object) -> list[str]:
    """The outcome and the id, then what to know about it."""
    named = receipt.get("id") or ", ".join(receipt.get("ids") or ())
    lines = [f"{receipt['outcome']}  {named}"]
    if receipt.get("of") and receipt["of"] != receipt.get("id"):
        lines.append(f"  {_TO_OTHER.get(receipt['outcome'], 'replaces')} {receipt['of']}")
    if receipt.get("conflicts"):
        lines.append(f"  disagrees with {', '.join(receipt['conflicts'])}")
    if receipt.get("remainder"):
        lines.append(f"  what stays: {receipt['remainder']}")
    if receipt.get("reflection"):
        lines.append(f"  awaits a decision: {receipt['reflection']}")
    return [*lines, *(f"  {shown(warning)}" for warning in receipt.get("warnings") or ())]


def recall_lines(recall: Object) -> list[str]:
    """The hits, best first, or why there are none."""
    if not recall["hits"]:
        reasons = {"empty": "nothing is stored yet", "no_match": "no memory answers this"}
        left_out = f"; left out by the budget: {', '.join(recall['dropped'])}" if recall["dropped"] else ""
        return [f"{recall['status']}: {reasons.get(recall['status'], 'nothing fits the budget')}{left_out}"]
    lines = [] if recall["status"] == "ok" else [f"{recall['status']}: this may not be the answer"]
    for hit in recall["hits"]:
        memory = hit["memory"]
        lines += [shown(memory["text"]), f"  {_labels(memory)}  score {hit['score']:.3f}"]
    return lines


def memory_lines(memory: Object) -> list[str]:
    """One memory in full."""
    scope = ", ".join(f"{name} {shown(value)}" for name, value in memory["scope"].items() if value) or "shared"
    lines = [
        shown(memory["text"]),
        f"  {_labels(memory)}",
        f"  {memory['kind']}, layer {memory['layer'] or '-'}, index {memory['index']}, {scope}",
        f"  version {memory['version']}, recorded {memory['recorded_at']} by {memory['actor']['kind']}",
    ]
    if memory["occurred_label"]:
        lines.append(f"  occurred {memory['occurred_label']}")
    if memory["tags"]:
        lines.append(f"  tags {', '.join(map(shown, memory['tags']))}")
    others = ("supersedes", "superseded_by")
    lines += [f"  {name.replace('_', ' ')} {memory[name]}" for name in others if memory[name]]
    return [*lines, *(f"  evidence {span['source']}: {shown(span['quote'])}" for span in memory["evidence"])]


def version_line(memory: Object) -> str:
    """One version of a history."""
    when, text = memory["recorded_at"][:19], shown(memory["text"])
    return f"{memory['version']}  {when}  {_state(memory)}  {text}  ({memory['id']})"


def one_line(memory: Object) -> str:
    """One memory of a list; cut to the terminal when there is one."""
    line = f"{memory['id']}  {memory['recorded_at'][:10]}  {shown(memory['text']).replace(chr(10), ' ')}"
    if not sys.stdout.isatty():
        return line
    width = max(shutil.get_terminal_size().columns, _SHORTEST)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def review_lines(review: Object) -> list[str]:
    """One review: what it is about, and what is to be known for deciding it."""
    lines = [f"{review['id']}  {review['kind']}, {review['status']}  {review['created_at'][:10]}"]
    for memory in review["memories"]:
        lines += [f"  {shown(memory['text'])}", f"    {_labels(memory)}, by {memory['actor']['kind']}"]
    if review["replaces"]:
        lines.append(f"  would replace {review['replaces']}")
    if review["question"]:
        lines.append(f"  asked: {shown(review['question'])}")
    for name, said in (("suggested", review["suggested"]), ("decided", review["decided"])):
        if said:
            note = f": {shown(said['note'])}" if said["note"] else ""
            lines.append(f"  {name} by {said['actor']['kind']}: {said['decision']}{note}")
    return lines


def forgotten_lines(done: Object) -> list[str]:
    """What goes, or went."""
    lines = []
    for name in ("matched", "derived", "copies"):
        lines += [f"  {node['id']}  {shown(node['text'])}  ({node['why']})" for node in done[name]]
    return lines


def _labels(memory: Object) -> str:
    return f"{memory['id']}  {memory['validity']['label']}  {_state(memory)}"


def _state(memory: Object) -> str:
    return memory["trust"] if memory["status"] == "current" else f"{memory['status']}, {memory['trust']}"
