"""The pages for users say what is so: every example on them is run."""

import doctest
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kektor import times
from kektor.engine import filters
from kektor.engine.filters import MEMORY_FIELDS, check_bare, lookup_in, matches
from kektor.query import parse_filter, parser, syntax

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def run(page: str, names: dict[str, Any]) -> int:
    """Run the examples of a page as one session; how many there were."""
    examples = "\n".join(blocks(page, "python"))
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(examples, names, "page", None, 0)
    result = doctest.DocTestRunner().run(test, out=report.append)
    assert not result.failed, "".join(report)
    return result.attempted


def memories(page: str) -> list[dict[str, Any]]:
    stored: list[dict[str, Any]] = json.loads(blocks(page, "json")[0])
    for memory in stored:
        if "occurred_at" in memory:
            memory["occurred_at"] = times.parse(memory["occurred_at"], field="occurred_at").start
    return stored


def test_the_page_on_filters_runs() -> None:
    page = (DOCS / "filters.md").read_text("utf-8")
    stored = memories(page)
    keys = {key for memory in stored for key in memory["metadata"]}

    def find(source: Any) -> list[str]:
        expression = parse_filter(source)
        assert expression is not None
        check_bare(expression, keys)
        return [memory["id"] for memory in stored if matches(expression, lookup_in(memory))]

    assert run(page, {"find": find}) > 15
    assert parse_filter(blocks(page, "text")[0]) is not None


def test_the_page_on_filters_names_every_field_and_every_limit() -> None:
    page = (DOCS / "filters.md").read_text("utf-8")
    table = page[page.index("## Fields") : page.index("## Types")]
    assert [name for name in MEMORY_FIELDS if f"`{name}`" not in table] == []
    for limit in (syntax.MAX_CONDITIONS, syntax.MAX_VALUES, syntax.MAX_DEPTH, syntax.MAX_CHARACTERS):
        assert f"{limit:,}" in page


def test_the_page_on_times_runs() -> None:
    assert run((DOCS / "times.md").read_text("utf-8"), {}) > 15


@pytest.mark.parametrize("module", [times, filters, parser, syntax], ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_run(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
