"""What the rules make of a question."""

from typing import Any

import pytest

from kektor.query.plan import compile_question, read_plan

NOW = 1_718_000_000_000_000  # 10 June 2024


def only_stage(question: str) -> dict[str, Any]:
    program = compile_question(question, now=NOW)
    assert program is not None, question
    read_plan(program)
    (stage,) = program["stages"]
    stage.pop("name")
    return stage


def during(since: str, until: str | None = None) -> dict[str, str]:
    return {"since": since, "until": until or since}


LATE = [{"sort": {"by": "time", "desc": True}}, {"head": 1}]
EARLY = [{"sort": {"by": "time", "desc": False}}, {"head": 1}]


@pytest.mark.parametrize(
    ("question", "stage"),
    [
        ("What did Dana buy in May 2024?", {"match": "buy", "who": ["Dana"], "time": during("2024-05")}),
        ("What did Dana buy on 7 May 2024?", {"match": "buy", "who": ["Dana"], "time": during("2024-05-07")}),
        ("What did Dana buy on May 7th, 2024?", {"match": "buy", "who": ["Dana"], "time": during("2024-05-07")}),
        ("What was sold in 2023?", {"match": "sold", "time": during("2023")}),
        ("What was sold last year?", {"match": "sold", "time": during("2023")}),
        ("What was sold last month?", {"match": "sold", "time": during("2024-05")}),
        ("What was sold yesterday?", {"match": "sold", "time": during("2024-06-09")}),
        ("What was sold since 2023-05?", {"match": "sold", "time": {"since": "2023-05"}}),
        ("What was sold after 2023?", {"match": "sold", "time": {"since": "2024-01-01T00:00:00Z"}}),
        ("What was sold before March 2023?", {"match": "sold", "time": {"until": "2023-02-28T23:59:59.999999Z"}}),
        ("What was sold between May 2022 and 2023-07-04?", {"match": "sold", "time": during("2022-05", "2023-07-04")}),
        ("What is the latest version of Kektor?", {"match": "version", "who": ["Kektor"], "pipe": LATE}),
        ("When did Dana first visit Lisbon?", {"match": "visit", "who": ["Dana", "Lisbon"], "pipe": EARLY}),
        (
            "What are the last three trips of Dana Smith?",
            {"match": "trips", "who": ["Dana Smith"], "pipe": [LATE[0], {"head": 3}]},
        ),
        (
            "How many trips did Dana take in 2024?",
            {"match": "trips take", "who": ["Dana"], "time": during("2024"), "pipe": [{"count": True}]},
        ),
    ],
)
def test_a_question_of_one_stage(question: str, stage: dict[str, Any]) -> None:
    assert only_stage(question) == stage


def test_before_and_after_something_are_two_stages() -> None:
    program = compile_question("Where did Dana live before she moved to Lisbon?", now=NOW)
    assert program == {
        "stages": [
            {"name": "event", "match": "moved", "who": ["Lisbon"], "pipe": [{"head": 1}]},
            {"name": "found", "match": "live", "who": ["Dana"], "time": {"until": "$event.date"}},
        ]
    }
    read_plan(program)


@pytest.mark.parametrize(
    "question",
    [
        "Where does Dana live?",
        "What is the first name of the manager?",
        "Who is in room 2024?",
        "wer wohnt in Berlin?",
        "東京はどこですか",
        "",
        "???",
        "What happened on 31 February 2024?",
    ],
)
def test_where_the_rules_find_only_words_there_is_no_plan(question: str) -> None:
    assert compile_question(question, now=NOW) is None
