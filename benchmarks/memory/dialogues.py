"""The dialogues of LoCoMo, cleaned up and ingested through the public API: what the benchmarks here share.

The data is CC BY-NC 4.0, for evaluation only; it is read from KEKTOR_BENCH_DATA and never copied here.
"""

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import kektor

DATA_FILE = "locomo-dev.json"
DATA_SHA256 = "1c9979aed9f236d0d6700ff90f205f01c1796875da7956cf94672edd87753933"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
ADVERSARIAL = 5
"""Questions that ask of one person what was said of the other."""

_TURN = re.compile(r"D(\d+):(?:\d+:)?(\d+)")


class Turn(NamedTuple):
    id: str
    session: int
    at: datetime
    speaker: str
    text: str


class Question(NamedTuple):
    text: str
    category: int
    evidence: frozenset[str]


class Dialogue(NamedTuple):
    name: str
    turns: list[Turn]
    questions: list[Question]
    adversarial: list[Question]


def load() -> list[Dialogue]:
    """Read the pinned file; a different one is refused, since figures of two files cannot be compared."""
    folder = Path(os.environ.get("KEKTOR_BENCH_DATA", "."))
    path = folder / DATA_FILE
    if not path.exists():
        sys.exit(f"{path} is not there: set KEKTOR_BENCH_DATA to the folder that holds {DATA_FILE}")
    raw = path.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != DATA_SHA256:
        sys.exit(f"{path} has sha256 {digest}, this benchmark is pinned to {DATA_SHA256}")
    return [_dialogue(sample) for sample in json.loads(raw)]


def _dialogue(sample: dict[str, Any]) -> Dialogue:
    conversation = sample["conversation"]
    turns = []
    numbers = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        at = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        turns += [
            Turn(turn["dia_id"], number, at, turn["speaker"], _words(turn))
            for turn in conversation[f"session_{number}"]
        ]
    known = {turn.id for turn in turns}
    asked = [Question(qa["question"], qa["category"], _evidence(qa["evidence"]) & known) for qa in sample["qa"]]
    return Dialogue(
        sample["sample_id"],
        turns,
        [question for question in asked if question.category in CATEGORIES and question.evidence],
        [question for question in asked if question.category == ADVERSARIAL],
    )


def _words(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares {caption}]" if caption else turn["text"]


def _evidence(given: Sequence[str]) -> frozenset[str]:
    """Ids are written loosely: several in one string, leading zeros, a stray colon; unknown ones are dropped."""
    return frozenset(f"D{a}:{int(b)}" for text in given for a, b in _TURN.findall(text))


def ingest(db: kektor.Database, dialogue: Dialogue) -> float:
    """Seconds for all sessions of a dialogue."""
    memory = db.memory("locomo", project=dialogue.name)
    started = time.perf_counter()
    for session in dict.fromkeys(turn.session for turn in dialogue.turns):
        memory.ingest_messages(
            [
                {"role": "user", "content": t.text, "speaker": t.speaker, "at": t.at.isoformat(), "id": t.id}
                for t in dialogue.turns
                if t.session == session
            ],
            session=f"{dialogue.name}-{session}",
        )
    return time.perf_counter() - started
