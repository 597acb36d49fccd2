"""The pages say what is so: examples are run, outputs compared, tables checked, links followed."""

import contextlib
import doctest
import io
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kektor
from kektor.engine.records import Moment, State, Status, Trust
from kektor.engine.view import View

ROOT = Path(__file__).parents[2]
RUN = [
    "README.md",
    "docs/architecture.md",
    "docs/development.md",
    "docs/engine.md",
    "docs/forgetting.md",
    "docs/graph.md",
    "docs/memory.md",
    "docs/plans.md",
    "docs/recall.md",
    "docs/storage.md",
]
"""Pages whose examples are run here; those of the others are run beside what they describe."""
PAGES = sorted(
    path.relative_to(ROOT).as_posix() for folder in (".", "docs", "benchmarks") for path in (ROOT / folder).glob("*.md")
)
LANGUAGES = {"python", "text", "console", "sh", "json", "toml"}
"""A block in another would be an example that nothing runs or reads."""


class Block(NamedTuple):
    """A fenced block: its language, its text, and where it stands."""

    language: str
    text: str
    line: int


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> list[Block]:
    text = read(page)
    found = re.finditer(r"^```(\S*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [Block(match[1], match[2], text.count("\n", 0, match.start()) + 2) for match in found]


def section(page: str, title: str) -> str:
    """The text under a heading, up to the next one."""
    _, _, rest = read(page).partition(f"\n## {title}\n")
    assert rest, f"{page} has no section {title!r}"
    return rest.partition("\n## ")[0]


def rows(table: str) -> list[list[str]]:
    """The cells of a Markdown table, its heading first, the rule below it left out."""
    lines = [line.strip() for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not set(line) <= set("|-: ")]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What a page's examples share: an empty folder to be in, and the names they define."""
    monkeypatch.chdir(tmp_path)
    shared: dict[str, Any] = {"__name__": "page"}
    yield shared
    for value in shared.values():
        if isinstance(value, kektor.Database):
            value.close()


@pytest.mark.parametrize("page", RUN)
def test_every_example_runs_and_prints_what_the_page_says(page: str, names: dict[str, Any]) -> None:
    found = blocks(page)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language != "python":
            continue
        if block.text.startswith(">>> "):
            run_session(page, block, names)
        else:
            told = after.text if after is not None and after.language == "text" else ""
            printed = run_script(page, block, names)
            assert doctest.OutputChecker().check_output(told, printed, doctest.ELLIPSIS), (
                f"{page}, line {block.line}: {printed}"
            )


def run_session(page: str, block: Block, names: dict[str, Any]) -> None:
    """An example as it would be typed; every answer is compared, and `...` in one stands for an id."""
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(block.text, {}, page, page, block.line - 1)
    test.globs = names
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append, clear_globs=False)
    assert not result.failed, "".join(report)


def run_script(page: str, block: Block, names: dict[str, Any]) -> str:
    """An example as it would stand in a file; returns what it printed."""
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, page, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


@pytest.mark.parametrize("page", RUN)
def test_every_block_has_a_language_that_something_reads(page: str) -> None:
    assert [(block.language, block.line) for block in blocks(page) if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_something(page: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", read(page), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), f"{page} links to {target}"
        if anchor:
            assert anchor in anchors(file.read_text("utf-8")), f"{page} links to {target}"


def anchors(page: str) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_of_the_docs_is_listed() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", read("docs/README.md")))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= listed


def test_the_tree_names_every_package_and_nothing_that_is_not_there() -> None:
    named: set[str] = set()
    base = ""
    for first, _ in rows(section("docs/architecture.md", "The tree"))[1:]:
        paths = re.findall(r"`( *)([^`]+)`", first)
        for indent, path in paths:
            named.add((base if indent or paths[0][0] else "") + path.rstrip("/"))
        if not paths[0][0]:
            base = paths[0][1]
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "kektor").glob("*/__init__.py")}
    assert packages <= named


def test_the_first_page_stays_short() -> None:
    assert read("README.md").count("\n") <= 150


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_on_a_page_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    named = re.findall(r"`make ([a-z-]+)", read(page))
    named += [
        word for b in blocks(page) if b.language == "console" for word in re.findall(r"^\$ make ([a-z-]+)", b.text)
    ]
    assert set(named) <= targets


def test_every_make_target_is_explained() -> None:
    told = set(re.findall(r"`make ([a-z-]+)", section("docs/development.md", "Commands")))
    assert told == set(re.findall(r"^([a-z-]+):.*?## ", read("Makefile"), re.MULTILINE))


def test_every_dependency_is_explained_and_nothing_else() -> None:
    pyproject = tomllib.loads(read("pyproject.toml"))
    native = tomllib.loads(read("native/pyproject.toml"))
    cargo = tomllib.loads(read("native/Cargo.toml"))
    required = [
        *pyproject["project"]["dependencies"],
        *(name for extra in pyproject["project"]["optional-dependencies"].values() for name in extra),
        *pyproject["build-system"]["requires"],
        *native["build-system"]["requires"],
        *native["project"]["dependencies"],
    ]
    python = {re.split(r"[^A-Za-z0-9_.-]", line)[0].lower() for line in required} - {"kektor-native"}
    rust = {*cargo["dependencies"], *cargo["dev-dependencies"]}
    page = "docs/dependencies.md"
    sections = [title for title in re.findall(r"^## (.+)$", read(page), re.MULTILINE) if "|" in section(page, title)]
    told = {title: {row[0].strip("`").lower() for row in rows(section(page, title))[1:]} for title in sections}
    in_rust = {title for title in sections if "Rust" in title}
    assert set().union(*(told[title] for title in in_rust)) == rust
    assert set().union(*(told[title] for title in sections if title not in in_rust)) == python


_DAY = 24 * 3600 * 1_000_000
_NOW = 1000 * _DAY
_PAST, _FUTURE = Moment(_NOW - 100 * _DAY), Moment(_NOW + 100 * _DAY)
_ENDED = Moment(_NOW - 50 * _DAY)
_INSIDE = _NOW - 70 * _DAY
_STATES = {
    "holds now": State(0, valid_from=_PAST),
    "will hold": State(0, valid_from=_FUTURE),
    "has ended": State(0, valid_from=_PAST, valid_to=_ENDED),
    "evolved": State(0, Status.SUPERSEDED, valid_from=_PAST, valid_to=_ENDED),
    "corrected": State(0, Status.SUPERSEDED, Trust.REJECTED, valid_from=_PAST),
    "retracted": State(0, trust=Trust.REJECTED, valid_from=_PAST),
    "proposed": State(0, trust=Trust.PROPOSED, valid_from=_PAST),
    "contested": State(0, trust=Trust.CONTESTED, valid_from=_PAST),
    "archived": State(0, Status.ARCHIVED, valid_from=_PAST),
}


def view_of(heading: str) -> View:
    """The View that a column of the table is about."""
    view: dict[str, Any] = {"index": "default", "scopes": (), "now": _NOW}
    if heading == "`as_of` inside":
        view["as_of"] = _INSIDE
    elif heading == "`history`":
        view["history"] = True
    elif heading != "default":
        view["include"] = frozenset({heading.strip("+ `")})
    return View(**view)


def test_the_table_of_views_is_what_a_view_admits() -> None:
    heading, *table = rows(section("docs/engine.md", "What a View shows"))
    assert [row[0].split(":")[0] for row in table] == list(_STATES)
    for row in table:
        state = _STATES[row[0].split(":")[0]]
        for column, cell in zip(heading[1:], row[1:], strict=True):
            view = view_of(column)
            if view.as_of is not None and state.valid_from == _FUTURE:
                view = View(index=view.index, scopes=(), now=_NOW, as_of=_FUTURE.at)
            assert view.admits_state(state) == (cell == "yes"), f"{row[0]}, {column}"


def test_the_container_copies_only_what_is_here() -> None:
    """A COPY of what is missing or ignored breaks the build, which nothing here runs."""
    lines = [line for line in read("Dockerfile").splitlines() if line.startswith("COPY ")]
    wanted = {path for line in lines for path in line.split()[1:-1]}
    assert {path for path in wanted if not (ROOT / path).exists()} == set()
    assert wanted == set(re.findall(r"^!(.+)$", read(".dockerignore"), re.MULTILINE))
