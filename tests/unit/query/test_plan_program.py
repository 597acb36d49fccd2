"""A plan is refused whole, with every mistake in it told by its place."""

from typing import Any

import pytest

from kektor.errors import Invalid
from kektor.query.plan import read_plan

GOOD: dict[str, Any] = {
    "stages": [
        {
            "name": "trip",
            "match": {"any": "trip journey", "all": ["boat"], "phrase": "to the sea", "prefix": ["lis"]},
            "near": "travelling",
            "who": ["Dana"],
            "claim": {"subject": "Dana", "predicate": "lives in", "object": "Lisbon"},
            "kinds": ["memory", "source"],
            "layers": ["episodic"],
            "tags": ["travel"],
            "time": {"axis": "valid", "since": "2024", "until": "2024-06"},
            "filter": "metadata.price > 3",
            "status": "any",
            "pipe": [{"sort": {"by": "time", "desc": True}}, {"head": 3}, {"count": True}, {"group": "month"}],
        },
        {
            "name": "around",
            "traverse": {"from": "$trip.ids", "rels": ["near"], "direction": "out", "depth": 2},
            "sessions": "$trip.sessions",
            "time": {"since": "$trip.date"},
        },
    ],
    "answer": ["trip", "around"],
}


def test_a_plan_with_everything_is_read() -> None:
    plan = read_plan(GOOD)
    assert [stage.name for stage in plan.stages] == ["trip", "around"]
    assert plan.answer == ("trip", "around")
    assert str(plan.stages[1].ids or plan.stages[1].sessions) == "$trip.sessions"


def stage(**parts: Any) -> dict[str, Any]:
    return {"stages": [{"name": "a", "match": "x", **parts}]}


BAD: list[tuple[Any, str, str]] = [
    ([], "plan", "must be an object with stages, answer"),
    ({}, "plan.stages", "must be a list of 1 to 6 stages"),
    ({"stages": []}, "plan.stages", "must be a list of 1 to 6 stages"),
    ({"stages": [{"match": "x"}] * 7}, "plan.stages", "must be a list of 1 to 6 stages"),
    ({"stages": [5]}, "plan.stages[0]", "must be an object with"),
    ({"stages": [{"match": "x"}], "steps": 1}, "plan", "there is no field 'steps'; did you mean 'stages'?"),
    (stage(macth="x"), "plan.stages[0]", "there is no field 'macth'; did you mean 'match'?"),
    ({"stages": [{"name": "a"}]}, "plan.stages[0]", "asks for nothing"),
    (stage(name="1st"), "plan.stages[0].name", "must be a name of letters"),
    ({"stages": [{"name": "a", "match": "x"}] * 2}, "plan.stages[1].name", "'a' names an earlier stage"),
    ({"stages": [{"name": "a", "match": "x"}], "answer": ["b"]}, "plan.answer", "there is no stage 'b'"),
    (stage(match=""), "plan.stages[0].match", "must be text of 1 to 1,000 characters"),
    (stage(match={}), "plan.stages[0].match", "asks for nothing"),
    (stage(match={"none": ["x"]}), "plan.stages[0].match", "there is no field 'none'"),
    (stage(match={"prefix": ["a"]}), "plan.stages[0].match.prefix", "is no beginning of a word"),
    (stage(match={"all": "x"}), "plan.stages[0].match.all", "must be a list of 1 to 20 texts"),
    (stage(who="Dana"), "plan.stages[0].who", "must be a list of 1 to 20 texts"),
    (stage(who=[]), "plan.stages[0].who", "must be a list of 1 to 20 texts"),
    (stage(who=["a"] * 21), "plan.stages[0].who", "must be a list of 1 to 20 texts"),
    (stage(who=[7]), "plan.stages[0].who[0]", "must be text"),
    (stage(claim={}), "plan.stages[0].claim", "asks for nothing"),
    (stage(claim={"verb": "x"}), "plan.stages[0].claim", "there is no field 'verb'"),
    (stage(kinds=["memories"]), "plan.stages[0].kinds", "there is no kind 'memories'; did you mean 'memory'?"),
    (stage(status="old"), "plan.stages[0].status", "must be one of current, superseded, any"),
    (stage(time={}), "plan.stages[0].time", "bounds nothing"),
    (stage(time={"since": "soon"}), "plan.stages[0].time.since", "soon"),
    (stage(time={"since": "2024", "until": "2023"}), "plan.stages[0].time.until", "2023 is before 2024"),
    (stage(time={"axis": "said", "since": "2024"}), "plan.stages[0].time.axis", "must be one of occurred"),
    (stage(time={"since": "$b.date"}), "plan.stages[0].time.since", "there is no earlier stage 'b'"),
    (stage(time={"since": "$a.date"}), "plan.stages[0].time.since", "there is no earlier stage 'a'"),
    (stage(ids="$a.date"), "plan.stages[0].ids", "takes $stage.ids or $stage.id"),
    (stage(ids="m1"), "plan.stages[0].ids", "must be a list"),
    (stage(traverse={}), "plan.stages[0].traverse.from", "is missing"),
    (stage(traverse={"from": ["a"], "depth": True}), "plan.stages[0].traverse.depth", "from 1 to 8"),
    (stage(traverse={"from": ["a"], "direction": "up"}), "plan.stages[0].traverse.direction", "must be one of"),
    (stage(traverse={"from": ["a"], "edge_filter": "tags = 1"}), "plan.stages[0].traverse.edge_filter", "tags"),
    (stage(filter="layer ="), "plan.stages[0].filter", "character 8: it ends where"),
    (stage(filter=3), "plan.stages[0].filter", "must be text or an object"),
    (stage(pipe={"head": 1}), "plan.stages[0].pipe", "must be a list of 1 to 6 steps"),
    (stage(pipe=[]), "plan.stages[0].pipe", "must be a list of 1 to 6 steps"),
    (stage(pipe=[{"head": 0}]), "plan.stages[0].pipe[0].head", "must be a whole number from 1"),
    (stage(pipe=[{"head": True}]), "plan.stages[0].pipe[0].head", "must be a whole number from 1"),
    (stage(pipe=[{"tail": "2"}]), "plan.stages[0].pipe[0].tail", "must be a whole number from 1"),
    (stage(pipe=[{"count": 1}]), "plan.stages[0].pipe[0].count", "must be true"),
    (stage(pipe=[{"count": True, "head": 1}]), "plan.stages[0].pipe[0]", "must have exactly one of"),
    (stage(pipe=[{"limit": 1}]), "plan.stages[0].pipe[0]", "there is no field 'limit'"),
    (stage(pipe=[{"sort": "tiem"}]), "plan.stages[0].pipe[0].sort.by", "did you mean 'time'?"),
    (stage(pipe=[{"sort": {"by": "time", "desc": "no"}}]), "plan.stages[0].pipe[0].sort.desc", "must be true or false"),
    (stage(pipe=[{"sort": {}}]), "plan.stages[0].pipe[0].sort.by", "must be one of"),
    (stage(pipe=[{"group": "weekday"}]), "plan.stages[0].pipe[0].group", "there is no key 'weekday'"),
]


@pytest.mark.parametrize(("source", "path", "message"), BAD, ids=lambda value: str(value)[:40])
def test_a_mistake_is_told_at_its_place(source: Any, path: str, message: str) -> None:
    with pytest.raises(Invalid) as error:
        read_plan(source)
    assert error.value.field == "plan"
    (mistake, *_) = error.value.details["mistakes"]
    assert mistake["path"] == path
    assert message in mistake["message"]
    assert str(error.value).startswith(f"{path}: ")


def test_all_mistakes_are_told_at_once_one_message_each() -> None:
    source = {"stages": [{"name": "a", "who": [], "kinds": ["x"], "pipe": [{"head": 0}]}, {"ids": "$c.ids"}]}
    with pytest.raises(Invalid, match="and 3 more") as error:
        read_plan(source)
    assert [mistake["path"] for mistake in error.value.details["mistakes"]] == [
        "plan.stages[0].who",
        "plan.stages[0].kinds",
        "plan.stages[0].pipe[0].head",
        "plan.stages[1].ids",
    ]
