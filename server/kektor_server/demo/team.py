"""The demo memory: a made-up team that builds a timetable for ferries, with something of everything."""

import kektor

__all__ = ["QUESTION", "fill"]

QUESTION = "Who owns the Henderson account?"

_FACTS = (
    ("Priya Raman leads the Lumen Harbor timetable project", {"id": "priya-lead", "tags": ["people"]}),
    (
        "Tomás Ortega runs the data pipeline that reads the ferry operators' feeds",
        {"id": "tomas-pipeline", "tags": ["people"]},
    ),
    (
        "Dana Whitfield owns the Henderson account",
        {"id": "henderson-owner", "tags": ["crm"], "valid_from": "2025-09-01"},
    ),
    ("Henderson renews its contract every March", {"tags": ["crm"]}),
    ("The staging server of Lumen Harbor listens on port 8443", {"tags": ["infra"]}),
    ("Priya prefers design notes of one page, with the decision in the first line", {"tags": ["preferences"]}),
    (
        "To roll back a timetable, publish the snapshot of the day before and purge the cache",
        {"layer": "procedural", "tags": ["runbook"]},
    ),
    (
        "The night feed of the Skarholm line was empty, and departures showed as cancelled for two hours",
        {"id": "skarholm-outage", "layer": "episodic", "occurred_at": "2026-02-11", "tags": ["incident"]},
    ),
    (
        "The team decided to keep stale departures visible, marked as unconfirmed",
        {"tags": ["decision"], "valid_from": "2026-02-12"},
    ),
)

_CONVERSATION = (
    ("user", "Priya", "2026-03-02T09:15:00Z", "Tomás, can you take the Skarholm feed over from Dana?"),
    (
        "user",
        "Tomás",
        "2026-03-02T09:16:00Z",
        "Yes. I would poll it every five minutes and alert after two empty answers.",
    ),
    ("user", "Dana", "2026-03-02T09:18:00Z", "Their contact is Ingrid Solheim, she answers within the hour."),
    (
        "assistant",
        "assistant",
        "2026-03-02T09:19:00Z",
        "Noted: polling every five minutes, alert after two empty answers, contact Ingrid Solheim.",
    ),
    ("user", "Priya", "2026-03-02T09:21:00Z", "Good. The board demo is on Thursday the 12th at ten."),
)


def fill(database: kektor.Database) -> None:
    """Save it all; takes about a second, most of it for loading the embedder."""
    memory = database.memory()
    for text, fields in _FACTS:
        memory.remember(text, **fields)
    memory.ingest_messages(
        [{"role": role, "speaker": speaker, "at": at, "content": said} for role, speaker, at, said in _CONVERSATION],
        session="skarholm-handover",
        title="Handing over the Skarholm feed",
    )
    memory.evolve("henderson-owner", "Tomás Ortega owns the Henderson account", valid_from="2026-03-01")
    memory.link("priya-lead", "works_with", "tomas-pipeline")
    memory.link("skarholm-outage", "led_to", "tomas-pipeline")
