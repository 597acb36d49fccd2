"""A writer on a disk that notes everything: run by `tests/faults/test_power.py` in a process of its own."""

import sys
from pathlib import Path

import kektor
from kektor.api import Database
from kektor.engine.local import LocalEngine
from kektor.engine.records import Actor
from kektor.storage.store import Durability
from tests.support.embedders import HashingEmbedder
from tests.support.failing_disk import Disk

__all__ = ["open_small"]


def open_small(folder: Path) -> kektor.Database:
    """Checkpoints come often, so that cuts hit them."""
    engine = LocalEngine(folder, durability=Durability("always"), checkpoint_bytes=6_000)
    return Database(engine, secret=engine.secret("digest.key"), actor=Actor(), embedder=HashingEmbedder())


def main(folder: Path, notes: Path) -> None:
    disk = Disk(folder)
    folder.mkdir()
    disk.note(notes)
    for opened in range(3):
        with open_small(folder) as db:
            memory = db.memory()
            for number in range(8):
                text = f"Fact {opened} {number}"
                disk.mark(f"begin\t{text}")
                memory.remember(text, id=f"f-{opened}-{number}")
                disk.mark(f"done\t{text}")
            disk.mark("begin\ttransaction")
            with db.transaction() as tx:
                tx.memory().remember(f"Half {opened} one")
                tx.memory().remember(f"Half {opened} two")
            disk.mark("done\ttransaction")
            disk.mark(f"begin\t-Fact {opened} 3")
            memory.forget(ids=[f"f-{opened}-3"], mode="erase")
            disk.mark(f"done\t-Fact {opened} 3")
            if opened == 1:
                db.compact()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
