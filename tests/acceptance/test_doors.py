"""doors: many agents over one memory."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.doors import Machine, wait_for
from tests.support.mcp_client import RawClient

ROUNDS = max(2, int(os.environ.get("KEKTOR_FAULT_ROUNDS", "0")) // 5)
AGENTS = 8
WRITES = 3


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path, idle_exit=1.0)
    yield machine
    machine.halt()


@pytest.mark.door("mcp")
@pytest.mark.faults
@pytest.mark.timeout(180 + 90 * ROUNDS)
def test_doors_many_agents(machine: Machine) -> None:
    """Eight agents write at once while they and their daemon are killed at random: what any was told is stored is
    there once, all see it, and nobody is left behind."""
    chance = random.Random(20_26)
    acknowledged: list[str] = []
    attempted: set[str] = set()
    failures: list[object] = []
    lock = threading.Lock()

    def live(agent: int, turn: int, *, dies: bool) -> None:
        client = RawClient(machine)
        client.initialize(client=f"agent {agent}")
        texts = [f"Agent {agent} noted observation {turn}-{number}" for number in range(WRITES)]
        attempted.update(texts)
        asked = [client.begin("tools/call", {"name": "remember", "arguments": {"text": text}}) for text in texts]
        for number, text in zip(asked, texts, strict=True):
            if dies and number == asked[-1]:
                client.process.kill()  # whatever it was about to be told, it is not
                return
            result = client.answer(number, timeout=120)["result"]
            with lock:
                (failures.append(result) if result.get("isError") else acknowledged.append(text))
        code, errors = client.close()
        if (code, errors) != (0, b""):
            failures.append((code, errors))

    for turn in range(ROUNDS):
        doomed = set(chance.sample(range(AGENTS), 3))
        threads = [
            threading.Thread(target=live, args=(agent, turn), kwargs={"dies": agent in doomed})
            for agent in range(AGENTS)
        ]
        for thread in threads:
            thread.start()
        for _ in range(2):
            threads[chance.randrange(AGENTS)].join(chance.uniform(0.2, 1.5))
            with suppress(FileNotFoundError, ProcessLookupError, ValueError):
                os.kill(machine.owner(), signal.SIGKILL)
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads)
    assert failures == []
    assert len(acknowledged) >= ROUNDS * (AGENTS - 3) * WRITES

    readers = [RawClient(machine, "--tools", "agent") for _ in range(AGENTS)]
    for reader in readers:
        reader.initialize()
        found = reader.call("list_memories", limit=1000)["structuredContent"]["items"]
        seen = [item["text"] for item in found]
        assert set(acknowledged) <= set(seen) <= attempted
        assert len(seen) == len(set(seen)), "nothing is stored twice"
        assert reader.close() == (0, b"")
    wait_for(lambda: not machine.processes(), "everybody to leave")
    assert machine.json("doctor")["ok"]
