"""Isolation on PersonaMem: 37 people in one index, and what any of them finds of another.

Ingests every conversation under its user (`ingest_messages`), with one sentence planted for each that nobody else
could guess. Then each user asks, by every way to read, for the best match that another user has: that sentence, a
sentence of the other's talk, the other's ids, the other's vector. Reports how many answers were another's (it must
be 0) and, as the control, how many of the same questions the owner has answered. No language model is involved.

    KEKTOR_BENCH_DATA=… python benchmarks/memory/personamem.py [--messages N] [--others N] [--out FOLDER]

The data is MIT; it is read from KEKTOR_BENCH_DATA and never copied here.
"""

import argparse
import gzip
import hashlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track

import kektor
from kektor.engine.view import ScopeRule
from kektor.memory.requests import SearchRequest

DATA_FILE = "personamem-documents.json.gz"
DATA_SHA256 = "26b7eaa63a55c8957f411360b2dcd1e898a9dcdd14885c43bf063a4e431262b5"
INDEX = "personamem"
_TURN = re.compile(r"^\[(SYSTEM|USER|ASSISTANT)\] ?", re.MULTILINE)
_LONGEST = 4000


class Owner(NamedTuple):
    """What one user has that another would like to find."""

    user: str
    planted: str
    memory: str
    source: str
    said: str
    vector: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=0, help="at most so many messages a user; 0 is all")
    parser.add_argument("--others", type=int, default=0, help="of how many others each user asks; 0 is all")
    parser.add_argument("--out", type=Path, help="write the figures there")
    options = parser.parse_args()
    console = Console(stderr=True)
    talks = conversations(options.messages)
    with tempfile.TemporaryDirectory() as folder, kektor.open(folder, sync="off") as database:
        began = time.perf_counter()
        owners = [
            ingest(database, user, said) for user, said in track(sorted(talks.items()), "ingesting", console=console)
        ]
        ingested = time.perf_counter() - began
        embedder = database.index(INDEX).settings.fingerprint
        found, asked, answered, spent = ask_all(database, owners, options.others, console)
    figures = {
        "version": kektor.__version__,
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip(),
        "embedder": embedder,
        "cores": os.cpu_count(),
        "data_sha256": DATA_SHA256,
        "messages_a_user_at_most": options.messages or None,
        "users": len(owners),
        "messages": sum(map(len, talks.values())),
        "ingest_seconds": round(ingested, 1),
        "recall_ms_median": round(1000 * statistics.median(spent), 1),
        "asked": dict(sorted(asked.items())),
        "cross_user_hits": dict(sorted(found.items())),
        "answered_to_the_owner": dict(sorted(answered.items())),
        "cross_user_hits_in_all": sum(found.values()),
    }
    print(json.dumps(figures, indent=1))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "personamem.json").write_text(json.dumps(figures, indent=1) + "\n")
    unanswered = [way for way in asked if not answered[way]]
    if figures["cross_user_hits_in_all"] or unanswered:
        sys.exit(f"isolation does not hold, or a control found nothing: {unanswered}")


def conversations(most: int) -> dict[str, list[tuple[str, str, str]]]:
    """Session, role and content of every message, by user."""
    folder = os.environ.get("KEKTOR_BENCH_DATA")
    if folder is None or not (path := Path(folder) / DATA_FILE).exists():
        sys.exit(f"set KEKTOR_BENCH_DATA to the folder that holds {DATA_FILE}")
    packed = path.read_bytes()
    if (digest := hashlib.sha256(packed).hexdigest()) != DATA_SHA256:
        sys.exit(f"{path} has sha256 {digest}, not {DATA_SHA256}: another version of the data")
    talks: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for document in json.loads(gzip.decompress(packed)):
        parts = _TURN.split(document["content"])[1:]
        for role, content in zip(parts[::2], parts[1::2], strict=True):
            if content.strip() and (not most or len(talks[document["user_id"]]) < most):
                talks[document["user_id"]].append((document["id"], role.lower(), content.strip()[:_LONGEST]))
    return talks


def ingest(database: kektor.Database, user: str, said: list[tuple[str, str, str]]) -> Owner:
    """Keep what a user said, and a secret of theirs."""
    mem = database.memory(INDEX, user=user)
    sessions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for session, role, content in said:
        sessions[session].append({"role": role, "content": content})
    for session, messages in sessions.items():
        mem.ingest_messages(messages, session=session)
    token = hashlib.sha256(user.encode()).hexdigest()[:12]
    planted = f"The locker in the hall opens with zq{token}"
    source = mem.ingest_messages([{"role": "user", "content": f"{planted}."}], session="locker").ids or [""]
    memory = str(mem.remember(planted, evidence=[{"source": source[0], "quote": planted}]).id)
    mem.link(memory, "noted_in", source[0])
    vector = database.operations.vector_of(INDEX, memory, database.principal(INDEX, ScopeRule(user=user)))
    longest = max((content for _, role, content in said if role == "user"), key=len)
    return Owner(user, planted, memory, source[0], longest[:300], vector or [])


def ask_all(
    database: kektor.Database, owners: list[Owner], others: int, console: Console
) -> tuple[Counter[str], Counter[str], Counter[str], list[float]]:
    """Ask for what everybody has: as its owner, and as others."""
    found: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    spent: list[float] = []
    chooser = random.Random(7)
    for owner in track(owners, "asking", console=console):
        for way, scopes in reads(database, owner.user, owner, spent):
            answered[way] += bool(scopes) and scopes <= {owner.user, ""}
        strangers = [other for other in owners if other.user != owner.user]
        for stranger in strangers if not others else chooser.sample(strangers, min(others, len(strangers))):
            for way, scopes in reads(database, stranger.user, owner, spent):
                asked[way] += 1
                found[way] += bool(scopes - {stranger.user, ""})
    for way in asked:
        found[way] += 0
    return found, asked, answered, spent


def reads(database: kektor.Database, user: str, wanted: Owner, spent: list[float]) -> Iterator[tuple[str, set[str]]]:
    """Every way to read, and whose records it answered with."""
    mem = database.memory(INDEX, user=user)
    who = database.principal(INDEX, ScopeRule(user=user))
    kinds = ["memory", "source"]
    ways: dict[str, Callable[[], Any]] = {
        "recall": lambda: [hit.memory for hit in mem.recall(wanted.planted, k=20)],
        "recall of words": lambda: [hit.memory for hit in mem.recall(wanted.said, k=20, mode="fast")],
        "search by text": lambda: _search(database, who, text=wanted.planted, kinds=kinds),
        "search by vector": lambda: _search(database, who, vector=wanted.vector, kinds=kinds),
        "list": lambda: mem.list(filter={"contains": ["text", wanted.planted]}, kinds=kinds).items,
        "get": lambda: [mem.get(wanted.memory)],
        "get a source": lambda: [mem.get(wanted.source)],
        "history": lambda: mem.history(wanted.memory),
        "evidence": lambda: [mem.get(span.source) for span in mem.evidence(wanted.memory)],
        "edges": lambda: [mem.get(edge.dst) for edge in mem.edges(wanted.memory, direction="out")],
        "traverse": lambda: [node.memory for node in mem.traverse(wanted.memory).nodes],
        "sessions": lambda: mem.sessions().items,
        "forgetting preview": lambda: [
            mem.get(node.id)
            for node in mem.forget(query=wanted.planted.rpartition(" ")[2], mode="erase", dry_run=True).matched
        ],
    }
    for way, ask in ways.items():
        began = time.perf_counter()
        try:
            scopes = {record.scope.user or "" for record in ask()}
        except kektor.NotFound:
            scopes = set()
        if way == "recall":
            spent.append(time.perf_counter() - began)
        yield way, scopes


def _search(database: kektor.Database, who: Any, **fields: Any) -> list[Any]:
    request = SearchRequest(k=20, with_memories=True, **fields)
    return [hit.memory for hit in database.operations.search(INDEX, request, who)]


if __name__ == "__main__":
    main()
