"""Scenarios told in text files, played through any door.

A file names its promises and tells one or more scenarios in `given`, `when` and `then`; `_LINES` lists the sentences
that a line may be. Quoted texts stand for themselves, names such as `home` for the ids that earlier lines gave them.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.callers import Caller, Refused
from tests.support.stage import Stage, known_ids, texts_of, tried

__all__ = ["Scenario", "play", "read_scenarios"]


class Scenario(NamedTuple):
    """One story: its lines, each with whether it is checked as an outcome and where it stands."""

    file: str
    title: str
    promises: tuple[str, ...]
    lines: tuple[tuple[str, bool, int], ...]

    @property
    def name(self) -> str:
        return f"{Path(self.file).stem}: {self.title}"


def read_scenarios(folder: Path) -> list[Scenario]:
    """Every scenario of every file; ValueError for a line that means nothing, or a story that finds nothing."""
    return [scenario for path in sorted(folder.glob("*.txt")) for scenario in _read(path)]


def play(scenario: Scenario, stage: Stage) -> None:
    """Do what it tells, and check what it says. What the door cannot be asked is put down as pending."""
    story = _Story(stage)
    for line, outcome, number in scenario.lines:
        do, found = _meaning(line)
        try:
            if outcome:
                with stage.pending.part():
                    do(story, **found)
            else:
                do(story, **found)
        except (AssertionError, Refused) as failed:
            failed.add_note(f"{scenario.file}, line {number}: {line}")
            raise


def _read(path: Path) -> Iterator[Scenario]:
    promises: tuple[str, ...] = ()
    told: list[tuple[str, list[tuple[str, bool, int]]]] = []
    outcome = False
    for number, raw in enumerate(path.read_text().splitlines(), start=1):
        line = raw.partition("  #")[0].strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("promises:"):
            promises = tuple(name.strip() for name in line.removeprefix("promises:").split(","))
        elif line.startswith("scenario:"):
            told.append((line.removeprefix("scenario:").strip(), []))
        elif line in ("given", "when", "then"):
            outcome = line == "then"
        else:
            _meaning(line)
            told[-1][1].append((line, outcome, number))
    for title, lines in told:
        if not any(outcome for _, outcome, _ in lines):
            raise ValueError(f"{path.name}: {title!r} says nothing of the outcome")
        if not any(" finds " in line for line, _, _ in lines):
            raise ValueError(f"{path.name}: {title!r} finds nothing, so that an empty database would pass")
        yield Scenario(path.name, title, promises, tuple(lines))


class _Story:
    """A scenario under way: who is there, and what the names stand for."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.ids: dict[str, str] = {}
        self.moments: dict[str, str] = {}
        self.conversations: dict[str, list[dict[str, Any]]] = {}

    def caller(self, who: str | None) -> Caller:
        return self.stage.caller(who or "alice")

    def prepared(self, who: str | None) -> Caller:
        return self.stage.preparing(who or "alice")


# What a line may be. `who` is a user, `name` a name given to an id; a line without a user is alice's.

_WORDS = r'"(?P<{0}>[^"]*)"'
_TIMES = r"(?: as of (?P<as_of>[\d-]+))?(?: as known (?P<known>\w+))?"
_ASKER = r"(?:(?P<who>\w+) )?"


def _remembers(story: _Story, who: str, text: str, name: str, start: str | None, end: str | None, tags: str | None,
               quoting: str | None) -> None:  # fmt: skip
    """`alice remembers "…" as home [from 2014] [to 2024] [tagged crm] [quoting source]`."""
    fields: dict[str, Any] = {}
    if start:
        fields["valid_from"] = start
    if end:
        fields["valid_to"] = end
    if tags:
        fields["tags"] = [tags]
    caller = story.caller(who)
    if quoting:
        fields["evidence"] = [{"source": story.ids[quoting], "quote": text}]
        caller = story.prepared(who)
    receipt = caller.remember(text, **fields)
    assert receipt["outcome"] == "created", receipt
    story.ids[name] = receipt["id"]


def _says_again(story: _Story, who: str, text: str, outcome: str, name: str | None) -> None:
    """`alice remembering "…" again is a duplicate of home`, or `is blocked`."""
    answer = tried(lambda: story.caller(who).remember(text))
    if outcome == "blocked":
        assert isinstance(answer, Refused), f"it was stored: {answer}"
        assert answer.code == "blocked", answer
        assert answer.details["tombstone"]
        return
    assert not isinstance(answer, Refused), answer
    assert (answer["outcome"], answer["of"]) == ("duplicate", story.ids[str(name)]), answer


def _replaces(story: _Story, who: str, how: str, name: str, text: str, new: str, start: str | None) -> None:
    """`alice evolves home to "…" as lisbon [from 2024-03-01]`, `alice corrects …`."""
    fields = {"valid_from": start} if start else {}
    caller = story.caller(who)
    operation = caller.evolve if how == "evolves" else caller.correct
    receipt = operation(story.ids[name], text, **fields)
    assert receipt["outcome"] == "superseded", receipt
    story.ids[new] = receipt["id"]


def _changes(story: _Story, who: str, how: str, name: str) -> None:
    """`alice retracts home`, `archives`, `restores`, `erases`."""
    caller, node_id = story.caller(who), story.ids[name]
    if how == "erases":
        caller.erase(node_id)
    elif how == "restores":
        story.prepared(who).restore(node_id)
    else:
        getattr(caller, how.removesuffix("s"))(node_id)


def _links(story: _Story, who: str, name: str, rel: str, other: str) -> None:
    """`alice links home near work`."""
    story.caller(who).link(story.ids[name], rel, story.ids[other])


def _conversation(story: _Story, who: str, session: str) -> None:
    """`alice has the conversation "monday"`; the lines `user: "…"` after it are its messages."""
    story.conversations[session] = []


def _message(story: _Story, role: str, text: str, name: str | None) -> None:
    """`user: "…" [as name]`: the next message of the last conversation."""
    last = list(story.conversations)[-1]
    message = {"role": role, "content": text, "at": f"2026-05-04T10:{len(story.conversations[last]):02d}:00Z"}
    story.conversations[last].append(message)
    receipt = story.prepared(None).ingest(last, [message])
    if name:
        story.ids[name] = receipt["ids"][0]


def _ingested_again(story: _Story, session: str) -> None:
    """`the conversation "monday" is ingested again`."""
    story.prepared(None).ingest(session, story.conversations[session])


def _noted(story: _Story, moment: str) -> None:
    """`the time is noted as before`."""
    story.moments[moment] = story.stage.now()


def _happens(story: _Story, what: str) -> None:
    """`a restart` or `a checkpoint`."""
    (story.stage.restart if what == "restart" else story.stage.settle)()


def _asking(story: _Story, who: str | None, question: str, found: str, absent: str | None, as_of: str | None,
            known: str | None, options: str | None) -> None:  # fmt: skip
    """`[bob ]asking "…" [as of 2020] [as known before] [within 120 tokens] finds "…", "…" [and not "…", "…"]`."""
    fields = _times(story, as_of, known)
    if options:
        fields["budget_tokens"] = int(options)
    recall = story.caller(who).recall(question, **fields)
    context = recall["context"]
    for text in _quoted(found):
        assert text in context, f"{text!r} is not in {context!r}"
    for text in _quoted(absent):
        assert text not in context, f"{text!r} is in {context!r}"


def _misses(story: _Story, who: str | None, question: str, absent: str, as_of: str | None, known: str | None) -> None:
    """`[bob ]asking "…" [as of 2013] does not find "…"`, where another line of the scenario does find something."""
    context = story.caller(who).recall(question, **_times(story, as_of, known))["context"]
    for text in _quoted(absent):
        assert text not in context, f"{text!r} is in {context!r}"


def _resolves(story: _Story, who: str | None, question: str, name: str, origin: str) -> None:
    """`asking "…" with a tiny budget gives lisbon, resolved from home`."""
    recall = story.caller(who).recall(question, k=1, budget_tokens=120)
    (hit,) = recall["hits"]
    assert hit["memory"]["id"] == story.ids[name]
    assert hit["resolved_from"] == story.ids[origin]


def _labelled(story: _Story, who: str | None, question: str, name: str, label: str) -> None:
    """`asking "…" gives home labelled "until 2024-03-01"`."""
    recall = story.caller(who).recall(question)
    labels = {hit["memory"]["id"]: hit["memory"]["validity"]["label"] for hit in recall["hits"]}
    assert labels.get(story.ids[name]) == label, labels
    assert f" {label} " in recall["context"]


def _listing(story: _Story, who: str | None, found: str, absent: str | None, as_of: str | None,
             known: str | None) -> None:  # fmt: skip
    """`[bob's ]list [as of 2020] [as known before] has "…" [and not "…"]`."""
    texts = texts_of(story.caller(who).list(limit=1000, **_times(story, as_of, known)))
    for text in _quoted(found):
        assert text in texts, texts
    for text in _quoted(absent):
        assert text not in texts, texts


def _history(story: _Story, name: str, texts: str) -> None:
    """`the history of lisbon is "…", "…"`."""
    assert texts_of(story.caller(None).history(story.ids[name])) == _quoted(texts)


def _state(story: _Story, name: str, state: str) -> None:
    """`home is superseded`, `current`, `archived`, `rejected`."""
    memory = story.caller(None).get(story.ids[name])
    assert state in (memory["status"], memory["trust"]), (memory["status"], memory["trust"])


def _unknown(story: _Story, who: str, name: str, other: str) -> None:
    """`bob does not know home, but work`: the first answers exactly as an id that was never given."""
    caller, node_id = story.caller(who), story.ids[name]
    caller.get(story.ids[other])
    refusals = []
    for asked in (node_id, "never-given"):
        try:
            caller.get(asked)
        except Refused as refused:
            refusals.append(refused.without(asked))
    assert len(refusals) == 2, f"{name} was shown"
    assert refusals[0] == refusals[1]
    assert refusals[0][0] == "not_found"


def _reaches(story: _Story, name: str, found: str, absent: str | None) -> None:
    """`from home the graph reaches work [and not school]`."""
    reached = {node["memory"]["id"] for node in story.caller(None).traverse(story.ids[name], depth=3)["nodes"]}
    for other in found.split(", "):
        assert story.ids[other] in reached, other
    for other in absent.split(", ") if absent else []:
        assert story.ids[other] not in reached, other


def _hits(story: _Story, who: str | None, question: str, names: str) -> None:
    """`asking "…" gives home, work`: these ids and no others, in any order."""
    recall = story.caller(who).recall(question)
    assert sorted(known_ids(recall)) == sorted(story.ids[name] for name in names.split(", "))


def _times(story: _Story, as_of: str | None, known: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if as_of:
        fields["as_of"] = as_of
    if known:
        fields["known_at"] = story.moments[known]
    return fields


def _quoted(texts: str | None) -> list[str]:
    return re.findall(r'"([^"]*)"', texts or "")


_Line = tuple[re.Pattern[str], Callable[..., None]]
_TEXTS = r'"[^"]*"(?:, "[^"]*")*'
_LINES: list[_Line] = [
    (re.compile(pattern), do)
    for pattern, do in (
        (rf'(?P<who>\w+) remembers {_WORDS.format("text")} as (?P<name>\w+)(?: from (?P<start>[\d-]+))?'
         r'(?: to (?P<end>[\d-]+))?(?: tagged (?P<tags>\w+))?(?: quoting (?P<quoting>\w+))?', _remembers),
        (rf'(?P<who>\w+) remembering {_WORDS.format("text")} again is (?:a )?(?P<outcome>blocked|duplicate)'
         r'(?: of (?P<name>\w+))?', _says_again),
        (rf'(?P<who>\w+) (?P<how>evolves|corrects) (?P<name>\w+) to {_WORDS.format("text")} as (?P<new>\w+)'
         r'(?: from (?P<start>[\d-]+))?', _replaces),
        (r"(?P<who>\w+) (?P<how>retracts|archives|restores|erases) (?P<name>\w+)", _changes),
        (r"(?P<who>\w+) links (?P<name>\w+) (?P<rel>\w+) (?P<other>\w+)", _links),
        (rf'(?P<who>alice) has the conversation {_WORDS.format("session")}', _conversation),
        (rf'(?P<role>user|assistant|tool): {_WORDS.format("text")}(?: as (?P<name>\w+))?', _message),
        (rf'the conversation {_WORDS.format("session")} is ingested again', _ingested_again),
        (r"the time is noted as (?P<moment>\w+)", _noted),
        (r"a (?P<what>restart|checkpoint)", _happens),
        (rf'{_ASKER}asking {_WORDS.format("question")}{_TIMES}(?: within (?P<options>\d+) tokens)? '
         rf'finds (?P<found>{_TEXTS})(?: and not (?P<absent>{_TEXTS}))?', _asking),
        (rf'{_ASKER}asking {_WORDS.format("question")}{_TIMES} does not find (?P<absent>{_TEXTS})', _misses),
        (rf'{_ASKER}asking {_WORDS.format("question")} with a tiny budget gives (?P<name>\w+), '
         r'resolved from (?P<origin>\w+)', _resolves),
        (rf'{_ASKER}asking {_WORDS.format("question")} gives (?P<name>\w+) labelled {_WORDS.format("label")}',
         _labelled),
        (rf'{_ASKER}asking {_WORDS.format("question")} gives (?P<names>\w+(?:, \w+)*)', _hits),
        (rf"(?:(?P<who>\w+)'s )?list{_TIMES} has (?P<found>{_TEXTS})(?: and not (?P<absent>{_TEXTS}))?", _listing),
        (rf"the history of (?P<name>\w+) is (?P<texts>{_TEXTS})", _history),
        (r"(?P<name>\w+) is (?P<state>current|superseded|archived|accepted|contested|rejected)", _state),
        (r"(?P<who>\w+) does not know (?P<name>\w+), but (?P<other>\w+)", _unknown),
        (r"from (?P<name>\w+) the graph reaches (?P<found>\w+(?:, \w+)*)(?: and not (?P<absent>\w+(?:, \w+)*))?",
         _reaches),
    )
]  # fmt: skip


def _meaning(line: str) -> tuple[Callable[..., None], dict[str, Any]]:
    for pattern, do in _LINES:
        if found := pattern.fullmatch(line):
            return do, found.groupdict()
    raise ValueError(f"no sentence of a scenario: {line}")
