"""One complete item of LongMemEval: is the session that holds the answer found among fifty-three?

Ingests every session through the public API and asks the item's question. Reports the rank of the first hit of the
gold session, and of the first gold turn.

    KEKTOR_BENCH_DATA=… python benchmarks/memory/longmemeval.py [--out benchmarks/memory/results]
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.progress import track

import kektor

DATA_FILE = "longmemeval-single.json"
DATA_SHA256 = "9c5d1cd86db0d66671786bae984d94337cde306f1235a14bb12bd6a958b27d81"


def load() -> dict[str, Any]:
    path = Path(os.environ.get("KEKTOR_BENCH_DATA", ".")) / DATA_FILE
    if not path.exists():
        sys.exit(f"{path} is not there: set KEKTOR_BENCH_DATA to the folder that holds {DATA_FILE}")
    raw = path.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != DATA_SHA256:
        sys.exit(f"{path} has sha256 {digest}, this benchmark is pinned to {DATA_SHA256}")
    items = json.loads(raw)
    return items[0] if isinstance(items, list) else items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="folder for the result file")
    options = parser.parse_args()
    item = load()
    gold_sessions = set(item["answer_session_ids"])
    gold_turns: set[str] = set()
    turns = 0
    with tempfile.TemporaryDirectory() as folder, kektor.open(folder) as db:
        memory = db.memory("longmemeval", user="asker")
        started = time.perf_counter()
        sessions = list(
            zip(item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True)
        )
        for name, date, messages in track(sessions, "ingesting"):
            at = datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").isoformat()
            kept = [message for message in messages if message["content"].strip()]
            ids = memory.ingest_messages(
                [{"role": message["role"], "content": message["content"], "at": at} for message in kept], session=name
            ).ids
            gold_turns |= {one for one, message in zip(ids, kept, strict=True) if message.get("has_answer")}
            turns += len(kept)
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        hits = memory.recall(item["question"], k=50, budget_tokens=100_000).hits
        asked = time.perf_counter() - started
    by_session = next((n for n, hit in enumerate(hits, 1) if hit.memory.session in gold_sessions), None)
    by_turn = next((n for n, hit in enumerate(hits, 1) if hit.memory.id in gold_turns), None)
    result = {
        "sessions": len(item["haystack_sessions"]),
        "turns": turns,
        "first hit of the gold session": by_session,
        "first gold turn": by_turn,
        "turns per second": round(turns / seconds, 1),
        "recall ms": round(1000 * asked, 1),
        "sha256": DATA_SHA256,
    }
    print(json.dumps(result, indent=2))
    if options.out is not None:
        (options.out / "longmemeval.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
