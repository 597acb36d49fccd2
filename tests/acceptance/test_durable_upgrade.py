"""durable.upgrade: data of every format version there was opens, and says what it said."""

import json
from pathlib import Path

import pytest

import kektor
from kektor.storage.checkpoint import FORMAT
from kektor_server.daemon.doctor import examine
from tests.support.embedders import HashingEmbedder
from tests.support.format_fixture import told_by, unpack

FORMATS = sorted((Path(__file__).parents[1] / "fixtures" / "formats").glob("*.tar.gz"))


@pytest.mark.door("library")
@pytest.mark.promise("durable.upgrade")
def test_durable_upgrade_has_every_format() -> None:
    """A new format version comes with data of it."""
    assert {int(path.name.split(".")[0]) for path in FORMATS} == set(range(1, FORMAT + 1))


@pytest.mark.door("library")
@pytest.mark.parametrize("archive", FORMATS, ids=lambda path: path.name)
def test_durable_upgrade(archive: Path, tmp_path: Path) -> None:
    """It opens, tells all that was stored, is written to, and opens again."""
    expected = unpack(archive, tmp_path)
    for added in range(2):
        with kektor.open(tmp_path / "data", embedder=HashingEmbedder()) as db:
            told = json.loads(json.dumps(told_by(db)))
            told["events"] = told["events"][: len(expected["events"])]
            told["memories"] = told["memories"][: len(expected["memories"])]
            assert told == expected
            assert examine(db.engine).findings == []
            assert db.verify_audit().ok
            db.memory(user="ann").remember(f"Something new: {added}")
            db.checkpoint()
