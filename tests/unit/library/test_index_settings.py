"""No setting that an index cannot be made with is ever stored: it would be met again at every opening."""

import math
from pathlib import Path
from typing import Any

import pytest

import kektor
from kektor.contract import convert
from kektor.engine.records import DEFAULT_LAYERS
from kektor.memory.requests import ConfigureIndexRequest
from kektor.text import languages
from tests.support.embedders import HashingEmbedder

MANY = {f"layer-{number}": {} for number in range(1001)}

REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({"text": {"language": name}}, "text.language") for name in ("klingon", "ENGLISH", "", "english\n", "\ud800")),
    *(({"text": {"k1": value}}, "text.k1") for value in (-1, 11, math.nan, math.inf, -math.inf)),
    *(({"text": {"b": value}}, "text.b") for value in (-0.1, 5, math.nan, math.inf)),
    ({"text": {"stemmer": "x"}}, "text.stemmer"),
    *(({"dim": value}, "dim") for value in (0, -3, 65_537, 2**70, True, 3.5, "3")),
    *(({"m": value}, "m") for value in (1, 129, -1, 2**63)),
    *(({"ef_construction": value}, "ef_construction") for value in (7, 2001, -1, 2**63)),
    *(({"metric": value}, "metric") for value in ("hamming", "Cosine", "")),
    *(({"precision": value}, "precision") for value in ("f64", "")),
    *(({"name": value}, "name") for value in ("", "a/b", "..", "x" * 65, "\ud800")),
    *(({"policy": {"evidence": value}}, "policy.evidence") for value in ("none", "")),
    ({"policy": {"agent_writes": "ask"}}, "policy.agent_writes"),
    ({"policy": {"write": "maybe"}}, "policy.write"),
    *(({"policy": {"single_valued": [value]}}, "policy.single_valued[0]") for value in ("", " ", "x" * 101, "\ud800")),
    *(
        ({"policy": {"retention": {"semantic": {"days": value}}}}, "policy.retention.semantic.days")
        for value in (0, -1, 36_501, math.nan, math.inf)
    ),
    ({"policy": {"retention": {"semantic": {"days": 1, "mode": "burn"}}}}, "policy.retention.semantic.mode"),
    ({"policy": {"retention": {"nowhere": {"days": 1}}}}, "policy.retention.nowhere"),
    *(
        ({"layers": {"work": {"half_life_days": value}}}, "layers.work.half_life_days")
        for value in (0, -1, 36_501, math.nan, math.inf)
    ),
    ({"layers": {"work": {"decay": "linear"}}}, "layers.work.decay"),
    *(({"layers": {"work": {"weight": value}}}, "layers.work.weight") for value in (-1, 101, math.nan, math.inf)),
    *(({"layers": {name: {}}}, "layers") for name in ("", " ", "x" * 65, "\ud800")),
    ({"layers": MANY}, "layers"),
]


def configure(db: kektor.Database, changes: dict[str, Any]) -> None:
    db.operations.configure_index("zz", convert(ConfigureIndexRequest, changes), db.principal("zz"))


@pytest.mark.parametrize(("settings", "field"), REFUSED, ids=lambda value: repr(value)[:60])
def test_a_setting_that_no_index_can_have_is_refused_by_name(settings: dict[str, Any], field: str) -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        before = db.engine.lsn  # type: ignore[attr-defined]
        with pytest.raises(kektor.Invalid) as refused:
            db.create_index(**{"name": "zz", "dim": 3, **settings})
        assert refused.value.field is not None
        assert refused.value.field.startswith(field)
        assert db.indexes() == []
        assert db.engine.lsn == before  # type: ignore[attr-defined]


def test_a_directory_opens_again_after_every_refused_setting(tmp_path: Path) -> None:
    with kektor.open(tmp_path, embedder=HashingEmbedder()) as db:
        db.create_index("kept", dim=3, text={"language": "german", "k1": 0, "b": 1})
        for settings, _ in REFUSED:
            with pytest.raises(kektor.Invalid):
                db.create_index(**{"name": "zz", "dim": 3, **settings})
        db.memory("kept").remember("Written after all of them", id="after")
    with kektor.open(tmp_path, embedder=HashingEmbedder()) as db:
        assert [settings.name for settings in db.indexes()] == ["kept"]
        assert db.memory("kept").get("after").text == "Written after all of them"


@pytest.mark.parametrize(("settings", "field"), [case for case in REFUSED if case[0].keys() <= {"policy", "layers"}])
def test_configuring_refuses_what_creating_refuses(settings: dict[str, Any], field: str) -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        db.create_index("zz", dim=3)
        before = db.indexes()
        with pytest.raises(kektor.Invalid) as refused:
            configure(db, settings)
        assert refused.value.field is not None
        assert refused.value.field.startswith(field)
        assert db.indexes() == before


def test_layers_count_together_with_those_there_are() -> None:
    room = 1000 - len(DEFAULT_LAYERS)
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        db.create_index("zz", dim=3, layers=dict(list(MANY.items())[:room]))
        with pytest.raises(kektor.Invalid, match="1,001 layers"):
            configure(db, {"layers": {"one-more": {}}})


def test_every_language_of_the_text_index_is_taken() -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        for language in languages():
            db.create_index(language, dim=3, text={"language": language})
        assert {settings.text.language for settings in db.indexes()} == set(languages())
