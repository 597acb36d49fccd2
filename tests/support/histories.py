"""Random histories of one writer, what they leave behind, and a process that writes them until it is killed.

Every writer has a user of its own, so that what it must find again depends on its own steps alone. A step is noted in
a file before it starts and again when it is acknowledged; after a kill the database must hold every acknowledged
step, and the one under way wholly or not at all. Steps name memories by their words, since new versions get new ids.
"""

import json
import os
import random
import threading
from pathlib import Path
from typing import Any

from kektor.api import Database
from kektor.engine.local import LocalEngine
from kektor.engine.records import Actor
from kektor.handles import MemoryHandle
from kektor.storage.store import Durability
from tests.support.embedders import HashingEmbedder

Step = dict[str, Any]
State = dict[str, Any]
"""What a reader sees of one writer: current memories by text, messages, edges, raw nodes, what was rejected."""

INDEX = "faults"
RAW = "raw"


def open_database(folder: Path, *, checkpoint_bytes: int = 40_000) -> Database:
    """The real engine with a real log; checkpoints come often, so that kills hit them too."""
    engine = LocalEngine(folder, durability=Durability("always"), checkpoint_bytes=checkpoint_bytes)
    secret = engine.secret("digest.key")
    return Database(engine, secret=secret, actor=Actor(), embedder=HashingEmbedder())


def prepare(folder: Path) -> None:
    with open_database(folder) as db:
        db.create_index(INDEX, embedder=HashingEmbedder())
        db.create_index(RAW, dim=4)


class History:
    """Draws the next step of one writer from what its earlier steps left."""

    def __init__(self, user: str, seed: int, number: int = 0) -> None:
        self.user = user
        self._random = random.Random(seed)
        self._number = number

    def next(self, state: State) -> Step:
        self._number += 1
        number, pick = self._number, self._random
        memories, nodes = sorted(state["memories"]), sorted(state["nodes"])
        choices = ["remember", "remember_bare", "upsert_bare", "upsert", "ingest"]
        if memories:
            choices += ["evolve", "retract", "erase", "archive", "update"]
        if len(memories) > 1:
            choices.append("link")
        if nodes:
            choices += ["delete", "upsert_again"]
        op = pick.choice(choices)
        step: Step = {"op": op, "number": number, "id": f"{self.user}-{number}"}
        if op in ("evolve", "retract", "erase", "archive", "update"):
            step["of"] = pick.choice(memories)
        elif op == "link":
            step["ends"] = pick.sample(memories, 2)
        elif op in ("delete", "upsert_again"):
            step["of"] = pick.choice(nodes)
        return step


def perform(db: Database, user: str, step: Step) -> None:
    """Do one step through the public API."""
    memory = db.memory(INDEX, user=user)
    op, node_id, text = step["op"], step["id"], _text(user, step)
    if "of" in step and op not in ("delete", "upsert_again"):
        named = _id_of(memory, step["of"])
    if op == "remember":
        memory.remember(text, id=node_id, tags=["t"], metadata={"number": step["number"]})
    elif op == "remember_bare":
        memory.remember(text, id=node_id)
    elif op == "ingest":
        memory.ingest_messages([{"role": "user", "content": text, "id": node_id}], session=f"{user}-session")
    elif op == "evolve":
        memory.evolve(named, text)
    elif op == "retract":
        memory.retract(named)
    elif op == "erase":
        memory.forget(ids=[named], mode="erase")
    elif op == "archive":
        memory.archive(named)
    elif op == "update":
        memory.update(named, tags=["changed"])
    elif op == "link":
        src, dst = (_id_of(memory, text) for text in step["ends"])
        memory.link(src, "knows", dst)
    elif op == "upsert_bare":
        db.index(RAW).upsert([f"{node_id}-a", f"{node_id}-b", f"{node_id}-c"])
    elif op == "upsert":
        rows = [[step["number"], 1.0, 2.0, 3.0]] * 2
        db.index(RAW).upsert([f"{node_id}-a", f"{node_id}-b"], vectors=rows, metadata=[{"x": 1}, {}])
    elif op == "upsert_again":
        db.index(RAW).upsert([step["of"]], vectors=[[0.5, 0.5, 0.5, step["number"]]])
    else:
        db.index(RAW).delete([step["of"]])


def observe(db: Database, user: str) -> State:
    """Everything a reader can tell of one writer, through the same API."""
    memory = db.memory(INDEX, user=user)
    items = memory.list(limit=1000, kinds=["memory"]).items
    words = {item.id: item.text for item in items}
    raw = db.index(RAW)
    mine = [node for node in raw if node.id.startswith(f"{user}-")]
    vectors = raw.vectors([node.id for node in mine])
    messages = memory.list(limit=1000, kinds=["source"]).items
    return {
        "memories": {item.text: [item.tags, item.metadata, item.version] for item in items},
        "messages": sorted(item.text for item in messages),
        "edges": sorted(
            [item.text, words[edge.dst]]
            for item in items
            for edge in memory.edges(item.id, direction="out", rel="knows")
        ),
        "nodes": {
            node.id: None if vector is None else [float(v) for v in vector]
            for node, vector in zip(mine, vectors, strict=True)
        },
        "rejected": memory.count(include=["rejected"], filter="trust = 'rejected'"),
    }


def write_until_killed(folder: str, users: list[str], seed: int, notes: str, ready: Any) -> None:
    """The body of the process that dies: one thread a writer, all on one database."""
    db = open_database(Path(folder))
    notebook = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(kind: str, user: str, step: Step) -> None:
        # One write a line: what was written before a kill is in the kernel's hands, whole.
        os.write(notebook, json.dumps([kind, user, step]).encode() + b"\n")

    def work(user: str, seed: int) -> None:
        history = History(user, seed, number=seed % 1_000_000 * 1000)
        while True:
            step = history.next(observe(db, user))
            say("begin", user, step)
            perform(db, user, step)
            say("done", user, step)

    threads = [threading.Thread(target=work, args=(user, seed + at)) for at, user in enumerate(users)]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()


def _id_of(memory: MemoryHandle, text: str) -> str:
    return memory.list(filter={"eq": ["text", text]}).items[0].id


def _text(user: str, step: Step) -> str:
    return f"{user} states fact number {step['number']}"
