"""Doctor finds what was damaged, names it, and leaves the directory as it was."""

import hashlib
from pathlib import Path

from tests.support.doors import Machine


def damage(path: Path) -> None:
    """Flip one bit in the middle of a file, behind the back of its hard links' owners."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def digests(folder: Path) -> dict[str, str]:
    """Every file of the checkpoints."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "checkpoints" in path.parts
    }


def test_a_damaged_checkpoint_is_found_and_nothing_is_written(machine: Machine) -> None:
    for number in range(3):
        machine.run("remember", f"Fact number {number}")
    assert machine.json("doctor") == {"ok": True, "findings": []}
    newest = max((machine.data / "checkpoints").iterdir())
    victim = max((path for path in newest.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    damage(victim)
    before = digests(machine.data)
    report = machine.json("doctor", code=1)
    assert not report["ok"]
    assert all(finding.keys() == {"severity", "where", "what", "lost", "action"} for finding in report["findings"])
    assert any(newest.name in finding["where"] for finding in report["findings"]), report
    assert digests(machine.data) == before
    text = machine.run("doctor", code=1).stdout
    assert newest.name in text
    assert "lost:" in text


def test_a_directory_that_cannot_be_opened_at_all_is_a_finding(machine: Machine) -> None:
    machine.run("remember", "Fact")
    (machine.data / "keys" / "digest.key").write_bytes(b"short")
    report = machine.json("doctor", code=1)
    assert "digest.key" in report["findings"][0]["what"]


def test_doctor_asks_the_daemon_that_owns_the_directory(machine: Machine) -> None:
    machine.run("remember", "Fact")
    with machine.server("serve", "--port", "0"):
        assert machine.json("doctor")["ok"]
        newest = max((machine.data / "checkpoints").iterdir())
        damage(max((path for path in newest.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size))
        assert not machine.json("doctor", code=1)["ok"]


def test_where_there_is_nothing_doctor_could_not_look(machine: Machine) -> None:
    machine.json("doctor", code=2)
    (machine.root / "empty").mkdir()
    machine.json("doctor", "--data", str(machine.root / "empty"), code=2)
