"""Which value comes first when facts were told twice? The FactConsolidation part of MemoryAgentBench, single hop.

Saves the numbered facts in their order with plain `remember`, one call a fact and no other help, then asks every
question with `recall`. A later fact overrides an earlier one, so the answer is what was told last. Reported is how many
of the questions have the current value in the first hit, in the first five, and in the context. No language model is
involved; the answers of the data set are looked for in the text as they are.

    KEKTOR_BENCH_DATA=… python benchmarks/memory/fact_consolidation.py [--size 6k] [--out benchmarks/memory/results]

The data (MIT) is read from KEKTOR_BENCH_DATA and never copied here.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track

import kektor

DATA_FILE = "factconsolidation-dev.json"
DATA_SHA256 = "96cfecfcb3d9e339aebbee92b62b9dd92ca2e9e647b1de2c077a53657fdc1026"
SIZES = ("6k", "32k")
_FACT = re.compile(r"^\d+\. (.+)$", re.MULTILINE)


class Task(NamedTuple):
    size: str
    facts: list[str]
    questions: list[tuple[str, list[str]]]


def load(folder: Path) -> list[Task]:
    """Read the pinned file; a different one is refused, since figures of two files cannot be compared."""
    path = folder / DATA_FILE
    if not path.exists():
        sys.exit(f"{path} is not there: set KEKTOR_BENCH_DATA to the folder that holds {DATA_FILE}")
    raw = path.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != DATA_SHA256:
        sys.exit(f"{path} has sha256 {digest}, this benchmark is pinned to {DATA_SHA256}")
    return [
        Task(size, _FACT.findall(sample["context"]), list(zip(sample["questions"], sample["answers"], strict=True)))
        for size in SIZES
        for sample in json.loads(raw)
        if sample["metadata"]["source"] == f"factconsolidation_sh_{size}"
    ]


def run(task: Task, console: Console, misses: bool) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    counts = Counter[str]()
    latencies: list[float] = []
    with tempfile.TemporaryDirectory() as folder, kektor.open(folder, sync="off") as db:
        memory = db.memory("facts")
        started = time.perf_counter()
        for fact in track(task.facts, f"saving {task.size}", console=console):
            outcomes[memory.remember(fact).outcome] += 1
        seconds = time.perf_counter() - started
        fingerprint = db.index("facts").settings.fingerprint
        for question, answers in track(task.questions, f"asking {task.size}", console=console):
            asked = time.perf_counter()
            found = memory.recall(question)
            latencies.append(time.perf_counter() - asked)
            texts = [hit.memory.text for hit in found]
            first = _tells(texts[:1], answers)
            counts["first"] += first
            counts["first_five"] += _tells(texts[:5], answers)
            counts["context"] += _tells([found.context], answers)
            if misses and not first:
                console.print(question, answers, texts[:4], style="dim")
    latencies.sort()
    return {
        "facts": len(task.facts),
        "questions": len(task.questions),
        "current_value": {
            name: round(100 * counts[name] / len(task.questions), 1) for name in ("first", "first_five", "context")
        },
        "outcomes_of_saving": dict(outcomes.most_common()),
        "save_ms": round(1000 * seconds / len(task.facts), 2),
        "recall_ms": {
            "p50": round(1000 * statistics.median(latencies), 2),
            "p95": round(1000 * latencies[int(0.95 * len(latencies))], 2),
        },
        "embedder": fingerprint,
    }


def _tells(texts: list[str], answers: list[str]) -> bool:
    return any(answer.casefold() in text.casefold() for text in texts for answer in answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default=None, help="only this one (default: all)")
    parser.add_argument("--misses", action="store_true", help="show the questions whose first hit is another value")
    parser.add_argument("--out", type=Path, default=None, help="folder for the result file")
    options = parser.parse_args()
    console = Console()
    tasks = load(Path(os.environ.get("KEKTOR_BENCH_DATA", ".")))
    result: dict[str, Any] = {
        task.size: run(task, console, options.misses) for task in tasks if options.size in (None, task.size)
    }
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    result["run"] = {
        "data": DATA_FILE,
        "sha256": DATA_SHA256,
        "commit": commit.stdout.strip() or None,
        "kektor": kektor.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    console.print_json(json.dumps(result))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / "fact_consolidation.json"
        path.write_text(json.dumps(result, indent=2) + "\n")
        console.print(f"wrote {path}")


if __name__ == "__main__":
    main()
