"""What a plan may be: every mistake in it is told, each by its own message and place."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from kektor import times
from kektor.engine.edges import check_edge_filter
from kektor.engine.filters import Filter, nearest_of
from kektor.engine.records import Kind
from kektor.errors import Invalid, KektorError
from kektor.query.parser import parse_filter

__all__ = [
    "MOST_STAGES",
    "Axis",
    "Claim",
    "Match",
    "Operation",
    "Plan",
    "Reference",
    "Span",
    "Stage",
    "Walk",
    "read_plan",
]

MOST_STAGES: Final = 6
MOST_VALUES: Final = 20
MOST_OPERATIONS: Final = 6
LONGEST_TEXT: Final = 1000

Axis = Literal["occurred", "valid", "recorded"]
"""Which time of a memory a span is about: when it happened (else when it began to hold, else when it was recorded),
when it held, or when the database came to know it."""


class Reference(Struct, frozen=True):
    """What an earlier stage found: `$name.ids`, `$name.id` (of its first row), `$name.sessions` or `$name.date`."""

    stage: str
    part: Literal["ids", "id", "sessions", "date"]

    def __str__(self) -> str:
        return f"${self.stage}.{self.part}"


class Match(Struct, frozen=True):
    """Words: `any` rank, `all` must each occur, `phrase` occurs as it stands, a word begins with each `prefix`."""

    any: str = ""
    all: tuple[str, ...] = ()
    phrase: str = ""
    prefix: tuple[str, ...] = ()


class Claim(Struct, frozen=True):
    """Parts of a claim, compared without regard to case, accents and punctuation."""

    subject: str = ""
    predicate: str = ""
    object: str = ""


class Span(Struct, frozen=True):
    """A stretch of time on an axis: from the start of `since` up to the end of `until`."""

    axis: Axis = "occurred"
    since: times.Extent | Reference | None = None
    until: times.Extent | Reference | None = None


class Walk(Struct, frozen=True):
    """What is reached from some nodes; the nodes themselves are not rows."""

    start: tuple[str, ...] | Reference
    rels: tuple[str, ...] | None = None
    direction: Literal["out", "in", "both"] = "both"
    depth: int = 1
    edge_filter: Filter | None = None


class Operation(Struct, frozen=True):
    """One step over the rows: `sort` (by, desc), `head` and `tail` (n), `count`, `group` (by)."""

    kind: Literal["sort", "head", "tail", "count", "group"]
    by: str = ""
    desc: bool = False
    n: int = 0


class Stage(Struct, frozen=True):
    """One search and what is done with its rows."""

    name: str
    match: Match | None = None
    near: str = ""
    who: tuple[str, ...] = ()
    claim: Claim | None = None
    kinds: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] | Reference | None = None
    sessions: tuple[str, ...] | Reference | None = None
    time: Span | None = None
    filter: Filter | None = None
    traverse: Walk | None = None
    status: Literal["current", "superseded", "any"] = "current"
    pipe: tuple[Operation, ...] = ()


class Plan(Struct, frozen=True):
    """Stages in their order, and those whose rows are the answer."""

    stages: tuple[Stage, ...]
    answer: tuple[str, ...]


def read_plan(source: object, *, tz: str = "UTC", now: int | None = None) -> Plan:
    """The plan that a caller wrote.

    Raises `Invalid` with field `plan`; `details.mistakes` holds every mistake as `{path, message}`.

    >>> read_plan({"stages": [{"name": "a", "match": "boiler", "pipe": [{"head": 3}]}]}).answer
    ('a',)
    """
    reader = _Reader(tz, now)
    plan = reader.plan(source)
    if reader.mistakes:
        first, *others = reader.mistakes
        more = f" (and {len(others)} more)" if others else ""
        raise Invalid(f"{first['path']}: {first['message']}{more}", field="plan", details={"mistakes": reader.mistakes})
    return plan


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_REFERENCE: Final = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)\.([a-z]+)")
_SORTS: Final = ("time", "recorded", "score", "id")
_GROUPS: Final = (
    "day",
    "month",
    "year",
    "session",
    "speaker",
    "kind",
    "layer",
    "tag",
    "subject",
    "predicate",
    "object",
)
_DIRECTIONS: Final = ("out", "in", "both")


class _Reader:
    """Reads on after a mistake, so that all of them are told at once."""

    def __init__(self, tz: str, now: int | None) -> None:
        self._tz = tz
        self._now = now
        self._known: list[str] = []
        self.mistakes: list[dict[str, str]] = []

    def plan(self, source: object) -> Plan:
        given = self._object(source, "plan", ("stages", "answer"))
        stages = given.get("stages")
        if "stages" not in given or not isinstance(stages, list | tuple) or not 1 <= len(stages) <= MOST_STAGES:
            self._wrong("plan.stages", f"must be a list of 1 to {MOST_STAGES} stages")
            return Plan((), ())
        read = tuple(self._stage(stage, f"plan.stages[{at}]") for at, stage in enumerate(stages))
        answer = self._texts(given, "answer", "plan") if "answer" in given else ()
        for name in answer:
            if name not in self._known:
                self._unknown("plan.answer", "stage", name, self._known)
        return Plan(read, answer or (read[-1].name,))

    def _stage(self, source: object, path: str) -> Stage:
        given = self._object(source, path, Stage.__struct_fields__)
        name = given.get("name", f"stage{len(self._known) + 1}")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._wrong(f"{path}.name", "must be a name of letters, digits and _ that begins with no digit")
            name = f"stage{len(self._known) + 1}"
        elif name in self._known:
            self._wrong(f"{path}.name", f"{name!r} names an earlier stage")
        stage = Stage(
            name=name,
            match=self._match(given, path),
            near=self._text(given, "near", path),
            who=self._texts(given, "who", path),
            claim=self._claim(given, path),
            kinds=self._chosen(given, "kinds", path, [kind.value for kind in Kind]),
            layers=self._texts(given, "layers", path),
            tags=self._texts(given, "tags", path),
            ids=self._named(given, "ids", path, ("ids", "id")),
            sessions=self._named(given, "sessions", path, ("sessions",)),
            time=self._time(given, path),
            filter=self._filter(given, "filter", path),
            traverse=self._walk(given, path),
            status=self._choice(given, "status", path, ("current", "superseded", "any"), "current"),
            pipe=self._pipe(given, path),
        )
        if stage == Stage(name=name, status=stage.status, pipe=stage.pipe) and not any(
            entry["path"].startswith(path) for entry in self.mistakes
        ):
            self._wrong(path, "asks for nothing: give match, near, who, claim, ids, time, filter, traverse, …")
        self._known.append(name)
        return stage

    def _match(self, given: Mapping[str, Any], path: str) -> Match | None:
        if "match" not in given:
            return None
        here = f"{path}.match"
        if isinstance(given["match"], str):
            return Match(any=self._text(given, "match", path))
        parts = self._object(given["match"], here, Match.__struct_fields__)
        found = Match(
            self._text(parts, "any", here),
            self._texts(parts, "all", here),
            self._text(parts, "phrase", here),
            self._texts(parts, "prefix", here),
        )
        for prefix in found.prefix:
            if len(prefix) < 2 or not prefix.isalnum():
                self._wrong(
                    f"{here}.prefix", f"{prefix[:40]!r} is no beginning of a word: at least two letters or digits"
                )
        if found == Match() and not parts:
            self._wrong(here, "asks for nothing: give any, all, phrase or prefix")
        return found

    def _claim(self, given: Mapping[str, Any], path: str) -> Claim | None:
        if "claim" not in given:
            return None
        here = f"{path}.claim"
        parts = self._object(given["claim"], here, Claim.__struct_fields__)
        if not parts:
            self._wrong(here, "asks for nothing: give subject, predicate or object")
        return Claim(*(self._text(parts, name, here) for name in Claim.__struct_fields__))

    def _time(self, given: Mapping[str, Any], path: str) -> Span | None:
        if "time" not in given:
            return None
        here = f"{path}.time"
        parts = self._object(given["time"], here, ("axis", "since", "until"))
        axis: Axis = self._choice(parts, "axis", here, ("occurred", "valid", "recorded"), "occurred")
        since, until = (self._moment(parts, name, here) for name in ("since", "until"))
        if since is None and until is None:
            self._wrong(here, "bounds nothing: give since or until")
        if isinstance(since, times.Extent) and isinstance(until, times.Extent) and until.end <= since.start:
            self._wrong(f"{here}.until", f"{until.words} is before {since.words}")
        return Span(axis, since, until)

    def _moment(self, given: Mapping[str, Any], name: str, path: str) -> times.Extent | Reference | None:
        if name not in given:
            return None
        value = given[name]
        if isinstance(value, str) and value.startswith("$"):
            return self._reference(value, f"{path}.{name}", ("date",))
        try:
            return times.parse(value, field=f"{path}.{name}", tz=self._tz)
        except Invalid as error:
            self._wrong(f"{path}.{name}", error.message.removeprefix(f"{path}.{name}").removeprefix(":").strip())
            return None

    def _walk(self, given: Mapping[str, Any], path: str) -> Walk | None:
        if "traverse" not in given:
            return None
        here = f"{path}.traverse"
        parts = self._object(given["traverse"], here, ("from", "rels", "direction", "depth", "edge_filter"))
        start = self._named(parts, "from", here, ("ids", "id"))
        if start is None and "from" not in parts:
            self._wrong(f"{here}.from", "is missing: the ids where the walk begins, or $stage.ids")
        depth = parts.get("depth", 1)
        if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= 8:
            self._wrong(f"{here}.depth", "must be a whole number from 1 to 8")
            depth = 1
        edge_filter = self._filter(parts, "edge_filter", here)
        if edge_filter is not None:
            try:
                check_edge_filter(edge_filter)
            except Invalid as error:
                self._wrong(f"{here}.edge_filter", error.message.removeprefix("edge_filter: "))
        return Walk(
            start=start or (),
            rels=self._texts(parts, "rels", here) or None,
            direction=self._choice(parts, "direction", here, _DIRECTIONS, "both"),
            depth=depth,
            edge_filter=edge_filter,
        )

    def _pipe(self, given: Mapping[str, Any], path: str) -> tuple[Operation, ...]:
        if "pipe" not in given:
            return ()
        steps = given["pipe"]
        if not isinstance(steps, list | tuple) or not 1 <= len(steps) <= MOST_OPERATIONS:
            self._wrong(f"{path}.pipe", f"must be a list of 1 to {MOST_OPERATIONS} steps such as {{'head': 3}}")
            return ()
        read = [self._operation(step, f"{path}.pipe[{at}]") for at, step in enumerate(steps)]
        return tuple(step for step in read if step is not None)

    def _operation(self, source: object, path: str) -> Operation | None:
        kinds: tuple[str, ...] = ("sort", "head", "tail", "count", "group")
        given = self._object(source, path, kinds)
        if len(given) != 1:
            if given or isinstance(source, Mapping):
                self._wrong(path, f"must have exactly one of {', '.join(kinds)}")
            return None
        kind, value = next(iter(given.items()))
        here = f"{path}.{kind}"
        match kind:
            case "head" | "tail":
                if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000:
                    self._wrong(here, "must be a whole number from 1 to 1,000")
                    return None
                return Operation("head" if kind == "head" else "tail", n=value)
            case "count":
                if value is not True:
                    self._wrong(here, "must be true")
                return Operation("count")
            case "group":
                by = value.get("by") if isinstance(value, Mapping) else value
                if isinstance(value, Mapping):
                    self._object(value, here, ("by",))
                return Operation("group", by=self._by(by, here, _GROUPS))
            case _:
                parts = self._object({"by": value} if isinstance(value, str) else value, here, ("by", "desc"))
                desc = parts.get("desc", False)
                if not isinstance(desc, bool):
                    self._wrong(f"{here}.desc", "must be true or false")
                return Operation("sort", by=self._by(parts.get("by"), f"{here}.by", _SORTS), desc=desc is True)

    def _by(self, value: object, path: str, known: Sequence[str]) -> str:
        if isinstance(value, str) and (value in known or re.fullmatch(r"metadata(\.[\w-]{1,64}){1,8}", value)):
            return value
        if isinstance(value, str):
            self._unknown(path, "key", value, known, "or metadata.<key>")
        else:
            self._wrong(path, f"must be one of {', '.join(known)} or metadata.<key>")
        return known[0]

    def _filter(self, given: Mapping[str, Any], name: str, path: str) -> Filter | None:
        if name not in given:
            return None
        try:
            return parse_filter(given[name], tz=self._tz, now=self._now)
        except KektorError as error:
            self._wrong(f"{path}.{name}", error.message.removeprefix("filter").lstrip(":, "))
            return None

    def _named(
        self, given: Mapping[str, Any], name: str, path: str, parts: tuple[str, ...]
    ) -> tuple[str, ...] | Reference | None:
        if name not in given:
            return None
        if isinstance(given[name], str) and given[name].startswith("$"):
            return self._reference(given[name], f"{path}.{name}", parts)
        return self._texts(given, name, path)

    def _reference(self, value: str, path: str, parts: tuple[str, ...]) -> Reference | None:
        found = _REFERENCE.fullmatch(value)
        if found is None or found[2] not in parts:
            self._wrong(path, f"takes {' or '.join(f'$stage.{part}' for part in parts)}, not {value[:60]!r}")
            return None
        if found[1] not in self._known:
            self._unknown(path, "earlier stage", found[1], self._known)
            return None
        part: Any = found[2]
        return Reference(found[1], part)

    def _chosen(self, given: Mapping[str, Any], name: str, path: str, known: Sequence[str]) -> tuple[str, ...]:
        values = self._texts(given, name, path)
        for value in values:
            if value not in known:
                self._unknown(f"{path}.{name}", "kind", value, known)
        return values

    def _choice(self, given: Mapping[str, Any], name: str, path: str, known: Sequence[str], default: str) -> Any:
        value = given.get(name, default)
        if value not in known:
            self._wrong(f"{path}.{name}", f"must be one of {', '.join(known)}, not {str(value)[:40]!r}")
            return default
        return value

    def _texts(self, given: Mapping[str, Any], name: str, path: str) -> tuple[str, ...]:
        if name not in given:
            return ()
        values = given[name]
        if not isinstance(values, list | tuple) or not 1 <= len(values) <= MOST_VALUES:
            self._wrong(f"{path}.{name}", f"must be a list of 1 to {MOST_VALUES} texts")
            return ()
        return tuple(self._one(value, f"{path}.{name}[{at}]") for at, value in enumerate(values))

    def _text(self, given: Mapping[str, Any], name: str, path: str) -> str:
        return self._one(given[name], f"{path}.{name}") if name in given else ""

    def _one(self, value: object, path: str) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT:
            self._wrong(path, f"must be text of 1 to {LONGEST_TEXT:,} characters")
            return ""
        return value

    def _object(self, source: object, path: str, known: Sequence[str]) -> dict[str, Any]:
        if not isinstance(source, Mapping):
            self._wrong(path, f"must be an object with {', '.join(known)}")
            return {}
        for name in source:
            if name not in known:
                self._unknown(path, "field", str(name), known)
        return {name: value for name, value in source.items() if name in known}

    def _unknown(self, path: str, what: str, name: str, known: Sequence[str], also: str = "") -> None:
        near = nearest_of(name, known)
        hint = f"; did you mean {near!r}?" if near else ""
        listed = f": there is {', '.join(known)}{' ' if also else ''}{also}" if known else ": there is none"
        self._wrong(path, f"there is no {what} {name[:40]!r}{hint or listed}")

    def _wrong(self, path: str, message: str) -> None:
        self.mistakes.append({"path": path, "message": message})
