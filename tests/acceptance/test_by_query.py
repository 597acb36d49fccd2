"""forget.by_query: what is meant goes, its neighbours stay; cases of ten kinds in `by_query/`, one file a kind."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kektor
from tests.support.embedders import HashingEmbedder

KINDS = sorted((Path(__file__).parent / "by_query").glob("*.toml"))
ENOUGH = 0.9


class Case(NamedTuple):
    """What is there, what is asked to be forgotten, and what is there after."""

    query: str
    memories: list[Any]
    after: list[str]


def cases(path: Path) -> list[Case]:
    return [Case(**each) for each in tomllib.loads(path.read_text("utf-8"))["case"]]


@pytest.fixture(scope="module")
def database() -> Iterator[kektor.Database]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as opened:
        yield opened


def test_forget_by_query_has_cases_of_ten_kinds() -> None:
    assert len(KINDS) == 10
    assert sum(len(cases(path)) for path in KINDS) >= 120
    for path in KINDS:
        for case in cases(path):
            heads = [each if isinstance(each, str) else each[-1] for each in case.memories]
            assert sorted(heads) != sorted(case.after), f"{path.stem}: {case.query} forgets nothing"


@pytest.mark.promise("forget.by_query")
@pytest.mark.door("library")
@pytest.mark.parametrize("kind", KINDS, ids=lambda path: path.stem)
def test_forget_by_query(kind: Path, database: kektor.Database, capsys: pytest.CaptureFixture[str]) -> None:
    """The preview is what is then done, and is right in nine cases of ten and more, of each kind."""
    failed = []
    told = cases(kind)
    for number, case in enumerate(told):
        mem = database.memory(user=f"{kind.stem}-{number}")
        for memory in case.memories:
            versions = [memory] if isinstance(memory, str) else memory
            held = mem.remember(versions[0]).id
            for text in versions[1:]:
                held = mem.evolve(str(held), text).id
        shown = mem.forget(query=case.query, mode="erase")
        done = mem.forget(preview=shown.preview)
        assert (done.matched, done.derived, done.copies) == (shown.matched, shown.derived, shown.copies)
        left = sorted(memory.text for memory in mem.list(include=["superseded"]).items)
        if left != sorted(case.after):
            failed.append(f"{case.query!r} left {left}, not {sorted(case.after)}")
    score = 1 - len(failed) / len(told)
    with capsys.disabled():
        print(f"\nforget.by_query {kind.stem}: {len(told) - len(failed)} of {len(told)}", *failed, sep="\n  ")
    assert score >= ENOUGH, failed
