"""What a plan finds, what it gives up for an answer, and what it never gives up."""

from collections.abc import Iterator
from typing import Any

import pytest

import kektor
from kektor.handles import MemoryHandle
from kektor.memory.objects import Recall
from tests.support.embedders import HashingEmbedder

TOLD = [
    ("lisbon", "Dana took the train to Lisbon", "2024-05-03", ["travel"], "Dana"),
    ("porto", "Dana flew to Porto for a conference", "2024-08-20", ["travel", "work"], "Dana"),
    ("oslo", "Erik sailed to Oslo", "2023-07-01", ["travel"], "Erik"),
    ("boiler", "The boiler was repaired by Erik", "2024-05-20", ["house"], "Erik"),
    ("roof", "The roof leaks above Dana's desk", "2024-09-02", ["house"], "Dana"),
]


@pytest.fixture(scope="module")
def mem() -> Iterator[MemoryHandle]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        memory = db.memory(user="alice")
        for name, text, day, tags, speaker in TOLD:
            memory.remember(text, id=name, occurred_at=day, tags=tags, metadata={"speaker": speaker, "cost": len(text)})
        memory.remember("Frank lives in Berlin", id="berlin", claim=("Frank", "lives in", "Berlin"), valid_from="2020")
        memory.evolve("berlin", "Frank lives in Madrid", claim=("Frank", "lives in", "Madrid"), valid_from="2024-02")
        memory.link("lisbon", "led_to", "porto", weight=2.0)
        memory.link("porto", "led_to", "roof", weight=0.5)
        db.memory(user="bob").remember("Dana took the ferry to Dover", id="dover", tags=["travel"])
        yield memory


def run(mem: MemoryHandle, *stages: dict[str, Any], **fields: Any) -> Recall:
    plan = {"stages": list(stages)}
    if "answer" in fields:
        plan["answer"] = fields.pop("answer")
    return mem.recall("a question", mode="plan", plan=plan, k=50, budget_tokens=20_000, **fields)


def ids(found: Recall) -> list[str]:
    return [hit.memory.id for hit in found.hits]


BY_TIME = {"sort": {"by": "time"}}


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ({"match": "train", "pipe": [BY_TIME]}, ["lisbon"]),
        ({"match": {"phrase": "to Porto"}}, ["porto"]),
        ({"match": {"all": ["Dana", "train"]}}, ["lisbon"]),
        ({"match": {"prefix": ["confer"]}}, ["porto"]),
        ({"tags": ["travel"], "pipe": [BY_TIME]}, ["oslo", "lisbon", "porto"]),
        ({"tags": ["travel"], "pipe": [{"sort": {"by": "time", "desc": True}}, {"head": 1}]}, ["porto"]),
        ({"tags": ["travel"], "pipe": [BY_TIME, {"tail": 2}]}, ["lisbon", "porto"]),
        ({"who": ["erik"], "pipe": [BY_TIME]}, ["oslo", "boiler"]),
        ({"who": ["Dana", "Erik"], "tags": ["house"], "pipe": [BY_TIME]}, ["boiler", "roof"]),
        ({"time": {"since": "2024-05", "until": "2024-05"}, "pipe": [BY_TIME]}, ["lisbon", "boiler"]),
        ({"time": {"until": "2023"}}, ["oslo"]),
        ({"filter": "tags CONTAINS 'work'"}, ["porto"]),
        ({"ids": ["roof", "nobody"]}, ["roof"]),
        ({"traverse": {"from": ["lisbon"], "depth": 2}, "pipe": [BY_TIME]}, ["porto", "roof"]),
        ({"traverse": {"from": ["lisbon"], "depth": 2, "edge_filter": "weight > 1"}}, ["porto"]),
        ({"traverse": {"from": ["porto"], "direction": "in"}}, ["lisbon"]),
        ({"tags": ["travel"], "pipe": [{"sort": {"by": "metadata.cost"}}]}, ["oslo", "lisbon", "porto"]),
    ],
)
def test_a_stage_finds_what_it_says(mem: MemoryHandle, stage: dict[str, Any], expected: list[str]) -> None:
    found = run(mem, stage)
    assert ids(found) == expected
    assert found.status == "ok"
    assert found.plan is not None
    assert found.plan.relaxed == []
    assert all(name in found.context for name in expected)


def test_stages_go_on_from_what_earlier_ones_found(mem: MemoryHandle) -> None:
    event = {"name": "event", "match": "boiler repaired", "pipe": [{"head": 1}]}
    after = {"name": "after", "who": ["Dana"], "time": {"since": "$event.date"}, "pipe": [BY_TIME]}
    before = {"name": "before", "who": ["Dana"], "time": {"until": "$event.date"}}
    assert ids(run(mem, event, after)) == ["porto", "roof"]
    assert ids(run(mem, event, before)) == ["lisbon"]
    walk = {"name": "walk", "traverse": {"from": "$event.ids"}}
    assert ids(run(mem, {"name": "event", "match": "Lisbon"}, walk)) == ["porto"]
    assert ids(run(mem, event, after, answer=["event", "after"])) == ["boiler", "porto", "roof"]


def test_a_stage_that_has_nothing_to_go_on_from_is_skipped_and_says_so(mem: MemoryHandle) -> None:
    found = run(mem, {"name": "event", "match": "zeppelin"}, {"name": "after", "who": ["Dana"], "ids": "$event.ids"})
    assert (found.status, ids(found)) == ("no_match", [])
    assert found.plan is not None
    assert "'event' found nothing" in str(found.plan.stages[1].skipped)


def test_counts_and_groups(mem: MemoryHandle) -> None:
    found = run(mem, {"tags": ["travel"], "pipe": [{"count": True}, {"group": "year"}, {"group": "tag"}]})
    assert found.plan is not None
    count, years, tags = found.plan.aggregates
    assert (count.count, sorted(count.ids), count.at_least) == (3, ["lisbon", "oslo", "porto"], False)
    assert [(group.key, group.count) for group in years.groups] == [("2024", 2), ("2023", 1)]
    assert [(group.key, group.count) for group in tags.groups] == [("travel", 3), ("work", 1)]


def test_what_held_then_is_asked_on_the_axis_of_validity(mem: MemoryHandle) -> None:
    stage = {"claim": {"subject": "frank", "predicate": "LIVES IN"}}
    (now,) = run(mem, stage).hits
    assert now.memory.text == "Frank lives in Madrid"
    (then,) = run(mem, {**stage, "time": {"axis": "valid", "until": "2022"}}).hits
    assert then.memory.text == "Frank lives in Berlin"
    both = run(mem, {**stage, "status": "any"})
    assert {hit.memory.text for hit in both.hits} == {"Frank lives in Madrid", "Frank lives in Berlin"}
    (old,) = run(mem, {**stage, "status": "superseded"}).hits
    assert old.memory.status == "superseded"


def test_soft_parts_are_given_up_in_order_and_told(mem: MemoryHandle) -> None:
    stage = {"name": "a", "match": {"any": "train", "phrase": "train towards Lisbon"}, "tags": ["work"]}
    found = run(mem, stage)
    assert ids(found)[0] == "lisbon"
    assert found.status == "weak"
    assert found.plan is not None
    assert [(step.dropped, step.value, step.answered) for step in found.plan.relaxed] == [
        ("phrase", "train towards Lisbon", False),
        ("tags", ["work"], True),
    ]


def test_a_hard_part_is_never_given_up_for_an_answer_but_shown_as_a_near_miss(mem: MemoryHandle) -> None:
    found = run(mem, {"name": "a", "match": "train", "time": {"since": "2025"}})
    assert (found.status, ids(found), found.context) == ("no_match", [], "")
    assert [(miss.id, miss.why) for miss in found.near_misses] == [("lisbon", "only without time of stage 'a'")]
    found = run(mem, {"name": "a", "match": "train", "who": ["Erik"]})
    assert (found.status, ids(found)) == ("no_match", [])
    assert [(miss.id, miss.why) for miss in found.near_misses] == [("lisbon", "only without who of stage 'a'")]


def test_without_its_content_a_stage_abstains(mem: MemoryHandle) -> None:
    """Dana's other memories are no answer to a question about a zeppelin."""
    found = run(mem, {"name": "a", "match": "zeppelin", "who": ["Dana"]})
    assert (found.status, ids(found), found.near_misses) == ("no_match", [], [])
    assert found.plan is not None
    assert [(step.dropped, step.answered) for step in found.plan.relaxed] == [("match", False)]


def test_unknown_names_are_told(mem: MemoryHandle) -> None:
    found = run(mem, {"name": "a", "match": "train", "who": ["Quentin"], "tags": ["travle"]})
    assert (found.status, ids(found)) == ("no_match", [])
    assert found.plan is not None
    assert [(name.field, name.value) for name in found.plan.unresolved] == [("who", "Quentin"), ("tags", "travle")]
    assert (found.premise.at_risk, found.premise.unknown) == (True, ["Quentin"])
    with pytest.raises(kektor.Invalid, match="no stored metadata key is called 'spaeker'; did you mean"):
        run(mem, {"filter": "spaeker = 'Dana'"})


def test_a_plan_sees_only_what_its_caller_sees(mem: MemoryHandle) -> None:
    assert "dover" not in ids(run(mem, {"match": "ferry Dana train"}))
    assert ids(run(mem, {"ids": ["dover"]})) == []
    assert run(mem, {"traverse": {"from": ["dover"]}}).hits == []


def test_a_plan_needs_its_mode(mem: MemoryHandle) -> None:
    with pytest.raises(kektor.Invalid, match="mode 'plan'"):
        mem.recall("x", plan={"stages": [{"match": "x"}]})


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What was the latest trip of Dana?", None),
        ("Where did Dana go in May 2024?", ["lisbon"]),
        ("Where did Dana go after 20 May 2024?", ["porto", "roof"]),
        ("What happened to the roof before 2024?", []),
        ("What did Dana do after Erik repaired the boiler?", ["porto", "roof"]),
    ],
)
def test_questions_become_plans_by_rules(mem: MemoryHandle, question: str, expected: list[str] | None) -> None:
    found = mem.recall(question, mode="plan", k=10)
    assert found.plan is not None
    if expected is not None:
        assert set(ids(found)) == set(expected)


def test_a_question_in_which_no_rule_helps_is_recalled_as_ever(mem: MemoryHandle) -> None:
    found = mem.recall("who repaired the boiler?", mode="plan")
    assert found.plan is None
    assert ids(found)[0] == "boiler"
