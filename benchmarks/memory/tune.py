"""Fits the weights of recall's fusion, and says what each sign is worth.

Asks the questions of the development dialogues, takes the candidates that recall itself gathers, and fits the weights
of `kektor.memory.recall.fuse` to bring evidence before the rest (a softmax over the candidates of a question). Figures
are from leaving one dialogue out in turn: no dialogue is scored with weights that have seen it. At the end stand the
weights fitted on all, which are the library's defaults, and the same with each sign left out.

    KEKTOR_BENCH_DATA=… python benchmarks/memory/tune.py [--out benchmarks/memory/results]
"""

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dialogues import Dialogue, Question, ingest, load
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.optimize import minimize

import kektor
from kektor.memory.recall import pipeline
from kektor.memory.recall.candidates import Candidate, gather
from kektor.memory.recall.fuse import WEIGHTS, Weights, scores
from kektor.memory.recall.question import Question as Asked

SIGNS = Weights._fields
OWN = ("text", "vector")
CUTOFFS = (5, 10, 20)
TOKEN_BUDGET = 1500


class Row(NamedTuple):
    """One question with the candidates recall gathered for it."""

    dialogue: str
    category: int
    asked: Asked
    candidates: list[Candidate]
    evidence: NDArray[np.bool_]
    missing: int
    sizes: NDArray[np.float64]


def gathered(db: kektor.Database, dialogue: Dialogue) -> list[Row]:
    """What `recall` gathers for each question, taken where it hands the candidates on."""
    memory = db.memory("locomo", project=dialogue.name)
    taken: list[tuple[Asked, list[Candidate]]] = []

    def keep(engine: Any, view: Any, asked: Asked, vectors: Any, *, depth: int) -> list[Candidate]:
        found = gather(engine, view, asked, vectors, depth=depth)
        taken.append((asked, [one for one in found if "message_id" in one.node.metadata]))
        return found

    pipeline.gather = keep
    try:
        for question in dialogue.questions:
            memory.recall(question.text)
    finally:
        pipeline.gather = gather
    return [_row(dialogue, question, *one) for question, one in zip(dialogue.questions, taken, strict=True)]


def _row(dialogue: Dialogue, question: Question, asked: Asked, candidates: list[Candidate]) -> Row:
    ids = [candidate.node.metadata["message_id"] for candidate in candidates]
    evidence = np.array([turn in question.evidence for turn in ids])
    sizes = np.array([len(f"{c.node.metadata['speaker']}: {c.node.text}") / 4 + 8 for c in candidates])
    return Row(
        dialogue.name,
        question.category,
        asked,
        candidates,
        evidence,
        len(question.evidence) - int(evidence.sum()),
        sizes,
    )


def features(row: Row, own: Weights, signs: Sequence[str]) -> NDArray[np.float64]:
    """(candidates, signs): what each sign would add at a weight of one. What is lent depends on the own weights."""
    ones = Weights(**{name: getattr(own, name) if name in OWN else 1.0 for name in SIGNS})
    parts = scores(row.candidates, row.asked, ones)
    scale = [getattr(own, name) if name in OWN else 1.0 for name in signs]
    return np.array([[one.get(name, 0.0) for name in signs] for one in parts]) / np.array(scale)


def fit(rows: Sequence[Row], signs: Sequence[str], *, rounds: int = 3, penalty: float = 1e-3) -> dict[str, float]:
    """Weights of the signs; those of the others are nought. Scaled so that the cosine weighs two."""
    own = WEIGHTS
    weights = np.array([getattr(WEIGHTS, name) for name in signs]) * 2
    for _ in range(rounds):
        tables = [(features(row, own, signs), row.evidence) for row in rows if row.evidence.any()]
        found = minimize(_loss, weights, args=(tables, penalty), jac=True, method="L-BFGS-B", options={"maxiter": 60})
        weights = found.x
        named = dict(zip(signs, weights, strict=True))
        own = own._replace(**{name: max(named.get(name, 0.0), 1e-3) for name in OWN})
    scale = 2 / named["vector"] if named.get("vector", 0) > 0 else 1.0
    lent = ("beside", "near", "session")
    return {name: value if name in lent else value * scale for name, value in named.items()}


def _loss(
    weights: NDArray[np.float64], tables: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_]]], penalty: float
) -> tuple[float, NDArray[np.float64]]:
    """Each piece of evidence against everything that is none, and its gradient."""
    total, slope = 0.0, np.zeros_like(weights)
    for table, evidence in tables:
        worth = np.exp((line := table @ weights) - line.max())
        others = worth * ~evidence
        for at in np.flatnonzero(evidence):
            mass = others.sum() + worth[at]
            total -= math.log(worth[at] / mass)
            slope -= table[at] - (others @ table + worth[at] * table[at]) / mass
    return total / len(tables) + penalty * weights @ weights, slope / len(tables) + 2 * penalty * weights


def measure(row: Row, weights: dict[str, float]) -> dict[str, float]:
    used = Weights(**{name: weights.get(name, 0.0) for name in SIGNS})
    total = np.array([sum(parts.values()) for parts in scores(row.candidates, row.asked, used)])
    order = np.argsort(-total, kind="stable")
    hits, wanted = row.evidence[order], row.evidence.sum() + row.missing
    figures = {f"R@{k}": hits[:k].sum() / wanted for k in CUTOFFS}
    within = np.cumsum(row.sizes[order]) <= TOKEN_BUDGET
    return {**figures, f"R@{TOKEN_BUDGET}tok": (hits & within).sum() / wanted}


def left_out(rows: Sequence[Row], signs: Sequence[str]) -> dict[str, float]:
    """Mean figures with every dialogue scored by weights fitted on the others."""
    figures = []
    for name in dict.fromkeys(row.dialogue for row in rows):
        weights = fit([row for row in rows if row.dialogue != name], signs)
        figures += [(row.category, measure(row, weights)) for row in rows if row.dialogue == name]
    mean = {column: 100 * statistics.fmean(one[column] for _, one in figures) for column in figures[0][1]}
    hops = [one["R@20"] for category, one in figures if category == 1]
    return {
        column: round(value, 1) for column, value in {**mean, "multi-hop R@20": 100 * statistics.fmean(hops)}.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None, help="folder for the result file")
    options = parser.parse_args()
    console = Console()
    dialogues = load()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, kektor.open(folder) as db:
        for dialogue in track(dialogues, "ingesting and asking", console=console):
            ingest(db, dialogue)
            rows += gathered(db, dialogue)
        ablation = {"all signs": left_out(rows, SIGNS)}
        for sign in track(SIGNS, "leaving out", console=console):
            ablation[f"without {sign}"] = left_out(rows, [name for name in SIGNS if name != sign])
        fitted = fit(rows, SIGNS)
    table = Table(title="One dialogue left out in turn (%)")
    for name in ("", *ablation["all signs"]):
        table.add_column(name, justify="right" if name else "left")
    for name, figures in ablation.items():
        table.add_row(name, *(f"{value:.1f}" for value in figures.values()))
    console.print(table)
    console.print("fitted on all:", {name: round(value, 2) for name, value in fitted.items()})
    if options.out is not None:
        result = {"left_out": ablation, "fitted": {name: round(value, 3) for name, value in fitted.items()}}
        (options.out / "tune.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
