"""Evidence recall on LoCoMo: does recall bring back the turns that answer the question?

Ingests the dialogues through the public API (`ingest_messages`, one message a turn), asks every question of categories
1 to 4 with `recall`, and reports the mean share of its evidence turns among the first 5, 10 and 20 hits and within
1,500 tokens, beside BM25 (rank-bm25) over the same rows in the same run. No language model is involved.

    KEKTOR_BENCH_DATA=… python benchmarks/memory/locomo.py [--limit N] [--out benchmarks/memory/results]

The data is CC BY-NC 4.0, for evaluation only; it is read from KEKTOR_BENCH_DATA and never copied here.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dialogues import CATEGORIES, DATA_FILE, DATA_SHA256, Dialogue, Question, ingest, load
from rank_bm25 import BM25Okapi
from rich.console import Console
from rich.progress import track
from rich.table import Table

import kektor

CUTOFFS = (5, 10, 20)
TOKEN_BUDGET = 1500


Ranker = Callable[[str], Sequence[str]]
"""A question to turn ids, best first."""


def kektor_ranker(db: kektor.Database, dialogue: Dialogue, latencies: list[float]) -> Ranker:
    memory = db.memory("locomo", project=dialogue.name)

    def rank(question: str) -> list[str]:
        started = time.perf_counter()
        found = memory.recall(question, k=60, budget_tokens=100_000)
        latencies.append(time.perf_counter() - started)
        return [hit.memory.metadata["message_id"] for hit in found]

    return rank


def bm25_ranker(dialogue: Dialogue) -> Ranker:
    rows = BM25Okapi([_tokens(f"{turn.speaker}: {turn.text}") for turn in dialogue.turns], k1=1.2, b=0.75)

    def rank(question: str) -> list[str]:
        scores = rows.get_scores(_tokens(question))
        order = sorted(range(len(scores)), key=lambda at: -scores[at])
        return [dialogue.turns[at].id for at in order[:60]]

    return rank


_STOP_WORDS = """
    a about am an and are as at be been but by can could d did do does for from had has have he her hers him
    his how i if in into is it its just ll me my no not of on or our re s she so some t than that the their
    them then there these they this to up us ve was we were what when where which who why will with would you
    your
"""
_STOP = frozenset(_STOP_WORDS.split())


def _tokens(text: str) -> list[str]:
    return [word[:6] for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _STOP]


def packed(db: kektor.Database, dialogue: Dialogue, question: Question) -> float:
    """Evidence inside the context that a caller would paste, envelope and all, at the token budget."""
    memory = db.memory("locomo", project=dialogue.name)
    found = memory.recall(question.text, k=60, budget_tokens=TOKEN_BUDGET)
    return _share({hit.memory.metadata["message_id"] for hit in found}, question)


def measure(rank: Ranker, dialogue: Dialogue, question: Question) -> dict[str, float]:
    order = rank(question.text)
    sizes = {turn.id: len(f"{turn.speaker}: {turn.text}") / 4 + 8 for turn in dialogue.turns}
    row = {f"R@{k}": _share(set(order[:k]), question) for k in CUTOFFS}
    used, taken = 0.0, set()
    for turn in order:
        used += sizes[turn]
        if used > TOKEN_BUDGET:
            break
        taken.add(turn)
    row[f"R@{TOKEN_BUDGET}tok"] = _share(taken, question)
    return row


def _share(found: set[str], question: Question) -> float:
    return len(question.evidence & found) / len(question.evidence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=None, help="dialogues to use (default: all)")
    parser.add_argument("--embedder", default=None, help="embedder of the index (default: the library's)")
    parser.add_argument("--out", type=Path, default=None, help="folder for the result file")
    options = parser.parse_args()
    console = Console()
    dialogues = load()[: options.limit]
    latencies: list[float] = []
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, kektor.open(folder, embedder=options.embedder) as db:
        seconds = sum(ingest(db, dialogue) for dialogue in track(dialogues, "ingesting", console=console))
        fingerprint = db.index("locomo").settings.fingerprint
        turns = sum(len(dialogue.turns) for dialogue in dialogues)
        for dialogue in track(dialogues, "asking", console=console):
            rankers = {"bm25": bm25_ranker(dialogue), "kektor": kektor_ranker(db, dialogue, latencies)}
            for question in dialogue.questions:
                for system, rank in rankers.items():
                    row = measure(rank, dialogue, question)
                    if system == "kektor":
                        row["packed"] = packed(db, dialogue, question)
                    rows.append({"system": system, "dialogue": dialogue.name, "category": question.category, **row})
    result = summarise(rows)
    result["ingest"] = {"turns": turns, "seconds": round(seconds, 2), "per_second": round(turns / seconds, 1)}
    latencies.sort()
    result["recall_ms"] = {
        "p50": round(1000 * statistics.median(latencies), 2),
        "p95": round(1000 * latencies[int(0.95 * len(latencies))], 2),
    }
    result["run"] = environment(len(dialogues), fingerprint)
    show(console, result)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / "locomo.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
        console.print(f"wrote {path}")


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = [f"R@{k}" for k in CUTOFFS] + [f"R@{TOKEN_BUDGET}tok"]
    table: dict[str, dict[str, dict[str, float]]] = {}
    for system in ("bm25", "kektor"):
        groups = {"all": [r for r in rows if r["system"] == system]}
        groups |= {name: [r for r in groups["all"] if r["category"] == number] for number, name in CATEGORIES.items()}
        table[system] = {
            name: {column: round(100 * statistics.fmean(r[column] for r in group), 1) for column in columns}
            for name, group in groups.items()
            if group
        }
    own = [r["packed"] for r in rows if "packed" in r]
    return {
        "questions": len(own),
        "evidence_recall": table,
        "packed_context": {f"R@{TOKEN_BUDGET} real tokens, envelope included": round(100 * statistics.fmean(own), 1)},
    }


def environment(dialogues: int, embedder: str) -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "data": DATA_FILE,
        "sha256": DATA_SHA256,
        "dialogues": dialogues,
        "commit": commit.stdout.strip() or None,
        "kektor": kektor.__version__,
        "embedder": embedder,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def show(console: Console, result: dict[str, Any]) -> None:
    table = Table(title=f"Evidence recall over turns, {result['questions']} questions (%)")
    columns = [f"R@{k}" for k in CUTOFFS] + [f"R@{TOKEN_BUDGET}tok"]
    for name in ("category", "system", *columns):
        table.add_column(name, justify="left" if name in ("category", "system") else "right")
    for category in result["evidence_recall"]["bm25"]:
        for system in ("bm25", "kektor"):
            values = result["evidence_recall"][system][category]
            table.add_row(category, system, *(f"{values[column]:.1f}" for column in columns))
    console.print(table)
    console.print("packed:", result["packed_context"])
    console.print("ingest:", result["ingest"], "recall:", result["recall_ms"])


if __name__ == "__main__":
    main()
