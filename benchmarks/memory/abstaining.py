"""Does recall know when it has no answer?

Three figures, over the development dialogues: how well the margin of the premise gate tells questions about the wrong
person (category 5) from those about the right one (category 4) as the area under the curve, with the share of false
alarms; and how many of two hundred nonsense questions got an answer.

    KEKTOR_BENCH_DATA=… python benchmarks/memory/abstaining.py [--out benchmarks/memory/results]
"""

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from dialogues import ADVERSARIAL, Dialogue, ingest, load
from rich.progress import track

import kektor

_NAMES = (
    "Zebulon", "Katarzyna", "Oluwaseun", "Xiomara", "Bartholomew",
    "Thaddeus", "Ignatius", "Persephone", "Wolfgang", "Anneliese",
)  # fmt: skip
_ABOUT = (
    "Where does {} live?", "What is {} allergic to?", "When did {} move to the coast?", "Who is the sister of {}?",
    "What did {} buy for the wedding?", "Which instrument does {} play?", "How old is the dog of {}?",
    "Why did {} leave the band?", "What does {} do for a living?", "How many children does {} have?",
)  # fmt: skip
_TOPICS = (
    "calibrate a mass spectrometer", "file a patent in Luxembourg", "solder a ball grid array",
    "prove the four colour theorem", "compile a Linux kernel", "balance a chemical equation",
    "hedge a currency option", "rebuild a carburettor", "navigate by sextant", "tan a reindeer hide",
)  # fmt: skip
_ASKING = ("How do I {}?", "Explain how to {}", "What tools do I need to {}?", "Is it legal to {} on a Sunday?")


def nonsense(count: int = 200, seed: int = 11) -> list[str]:
    """Questions about people nobody mentioned, on topics nobody touched, and of words that are none."""
    drawn = random.Random(seed)
    strangers = [template.format(name) for name in _NAMES for template in _ABOUT]
    topics = [template.format(topic) for topic in _TOPICS for template in _ASKING]
    letters = "bcdfghjklmnpqrstvwxz"
    made_up = [
        " ".join("".join(drawn.choices(letters, k=drawn.randint(4, 9))) for _ in range(drawn.randint(2, 5))) + "?"
        for _ in range(count - len(strangers) - len(topics))
    ]
    return strangers + topics + made_up


def asked(db: kektor.Database, dialogue: Dialogue) -> list[dict[str, Any]]:
    memory = db.memory("locomo", project=dialogue.name)
    rows = []
    for question in [*(one for one in dialogue.questions if one.category == 4), *dialogue.adversarial]:
        found = memory.recall(question.text, explain=True)
        premise = found.premise
        rows.append(
            {
                "wrong": question.category == ADVERSARIAL,
                "margin": found.trace["premise"]["margin"],
                "at_risk": premise.at_risk,
                "named": bool(premise.wrong_subject),
                "unknown": bool(premise.unknown),
            }
        )
    return rows


def area(rows: list[dict[str, Any]]) -> float:
    """The chance that a question about the wrong person has the larger margin; ties count half."""
    wrong = np.array([row["margin"] for row in rows if row["wrong"]])
    right = np.array([row["margin"] for row in rows if not row["wrong"]])
    return float(((wrong[:, None] > right).mean() + (wrong[:, None] >= right).mean()) / 2)


def share(rows: list[dict[str, Any]], sign: str, *, wrong: bool) -> float:
    taken = [row[sign] for row in rows if row["wrong"] is wrong]
    return round(100 * sum(taken) / len(taken), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="folder for the result file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    answered = []
    with tempfile.TemporaryDirectory() as folder, kektor.open(folder) as db:
        for dialogue in track(load(), "ingesting and asking"):
            ingest(db, dialogue)
            rows += asked(db, dialogue)
        everything = db.memory("locomo")
        answered = [question for question in track(nonsense(), "nonsense") if everything.recall(question).hits]
    result = {
        "questions": {
            "about the right person": sum(not r["wrong"] for r in rows),
            "wrong": sum(r["wrong"] for r in rows),
        },
        "area under the curve": round(area(rows), 3),
        "doubted %": {"right": share(rows, "at_risk", wrong=False), "wrong": share(rows, "at_risk", wrong=True)},
        "named another %": {"right": share(rows, "named", wrong=False), "wrong": share(rows, "named", wrong=True)},
        "name unknown %": {"right": share(rows, "unknown", wrong=False), "wrong": share(rows, "unknown", wrong=True)},
        "nonsense answered of 200": len(answered),
    }
    print(json.dumps(result, indent=2))
    print(*answered, sep="\n")
    if options.out is not None:
        (options.out / "abstaining.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
