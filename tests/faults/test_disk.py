"""durable.disk_full: whatever call to the disk fails, the error is clear, nothing acknowledged is lost, it recovers."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.support.failing_disk import build, run_with

SECONDS = float(os.environ.get("KEKTOR_FAULT_SECONDS", "15"))


@pytest.mark.faults
@pytest.mark.timeout(120 + 10 * SECONDS)
def test_durable_disk_full(tmp_path: Path) -> None:
    """ENOSPC and EIO on every kind of call, the first, the second, …: as many as there is time for."""
    memory = Path("/dev/shm")  # where there is one, a round takes a tenth of the time
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path))
    library = build(tmp_path)
    try:
        told = run_with(library, "tests.support.disk_rounds", str(folder), str(SECONDS), timeout=100 + 10 * SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    counts = json.loads(told)
    assert counts["met"] >= 3, counts
    print(f"{counts['rounds']} rounds, {counts['met']} faults met, {counts['acknowledged']} acknowledged, 0 lost")
