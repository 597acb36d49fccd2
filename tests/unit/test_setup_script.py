"""`scripts/setup` says what is missing before it begins to build."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_setup(folder: Path, rustc: str) -> subprocess.CompletedProcess[str]:
    """The script in a folder of its own, with a Rust compiler that says `rustc` of itself and a cargo that builds
    nothing."""
    (folder / "scripts").mkdir()
    (folder / "native").mkdir()
    shutil.copy(ROOT / "scripts/setup", folder / "scripts/setup")
    shutil.copy(ROOT / "native/Cargo.toml", folder / "native/Cargo.toml")
    tools = folder / "tools"
    tools.mkdir()
    for name, line in (("rustc", f"echo '{rustc}'"), ("cargo", "exit 1"), ("python3", "exit 0")):
        (tools / name).write_text(f"#!/bin/sh\n{line}\n")
        (tools / name).chmod(0o755)
    path = f"{tools}:/usr/bin:/bin"
    return subprocess.run([folder / "scripts/setup"], env={"PATH": path}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("version", ["1.85.0", "1.9.0", "1.89.0-nightly"])
def test_an_old_rust_is_refused_with_the_way_to_a_newer_one(tmp_path: Path, version: str) -> None:
    done = run_setup(tmp_path, f"rustc {version} (0123456789 2025-01-01)")
    assert done.returncode == 1
    assert f"needs Rust 1.90 or newer, and found {version}" in done.stderr
    assert "rustup update stable" in done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("version", ["1.90.0", "1.95.0", "1.100.1-nightly", "2.0.0"])
def test_a_newer_one_is_taken(tmp_path: Path, version: str) -> None:
    done = run_setup(tmp_path, f"rustc {version} (0123456789 2027-01-01)")
    assert "needs Rust" not in done.stderr
