"""durable.kill: `kill -9` at a random moment under concurrent writes loses nothing that was acknowledged."""

import json
import multiprocessing
import os
import random
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from kektor.engine.local import LocalEngine
from tests.support.histories import State, Step, observe, open_database, perform, prepare, write_until_killed

ROUNDS = int(os.environ.get("KEKTOR_FAULT_ROUNDS", "50"))
USERS = ["ann", "bob", "cyd"]


@pytest.mark.faults
@pytest.mark.timeout(60 + 10 * ROUNDS)
def test_durable_kill(tmp_path: Path) -> None:
    """After every kill each writer's state is that of its acknowledged steps, or of those and the one under way."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.histories"])
    pick = random.Random(os.environ.get("KEKTOR_FAULT_SEED", "kektor"))
    folder = tmp_path / "data"
    prepare(folder)
    model = _Model(tmp_path / "model")
    acknowledged = in_flight_kept = 0
    for number in range(ROUNDS):
        lines = _run_and_kill(context, folder, seed=pick.randrange(1 << 30), after=pick.random() * 0.5)
        with open_database(folder) as db:
            assert isinstance(db.engine, LocalEngine)
            assert db.engine.findings() == []
            assert db.engine.validate() == []
            assert db.verify_audit().findings == []
            found = {user: observe(db, user) for user in USERS}
        for user in USERS:
            done = [step for kind, who, step in lines if kind == "done" and who == user]
            begun = [step for kind, who, step in lines if kind == "begin" and who == user]
            acknowledged += len(done)
            expected = model.apply(user, done)
            under_way = begun[len(done) :]
            if under_way and found[user] != expected:
                expected = model.apply(user, under_way)
                in_flight_kept += 1
            assert found[user] == expected, f"round {number}, {user}: {len(done)} acknowledged"
    model.close()
    assert acknowledged > ROUNDS, "the writers were killed before they wrote: the test shows nothing"
    print(f"{ROUNDS} kills, {acknowledged} acknowledged steps, {in_flight_kept} unacknowledged ones kept whole, 0 lost")


class _Model:
    """The same steps done one after the other on a database that nobody kills."""

    def __init__(self, folder: Path) -> None:
        prepare(folder)
        self._db = open_database(folder)

    def apply(self, user: str, steps: list[Step]) -> State:
        for step in steps:
            perform(self._db, user, step)
        return observe(self._db, user)

    def close(self) -> None:
        self._db.close()


def _run_and_kill(context: ForkServerContext, folder: Path, *, seed: int, after: float) -> list[tuple[str, str, Step]]:
    """Start the writers, kill them, and read what they noted."""
    notes = folder.parent / "notes"
    notes.unlink(missing_ok=True)
    ready = context.Event()
    process = context.Process(target=write_until_killed, args=(str(folder), USERS, seed, str(notes), ready))
    process.start()
    assert ready.wait(60), "the writer did not start"
    time.sleep(after)
    process.kill()
    process.join()
    return [tuple(json.loads(line)) for line in notes.read_text().splitlines()] if notes.exists() else []
