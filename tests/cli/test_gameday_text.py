"""The state of a day as people read it."""

from __future__ import annotations

from chaos.cli.gameday.text import render, to_document
from chaos.cli.output import to_json
from chaos.gameday.state import Approval, DayRun, DayState, Halt, RunKey, RunStatus, Waiting

HASH = "a" * 64
STATE = DayState(
    day="mon",
    gameday="weekly",
    plan_hash=HASH,
    seed=7,
    created=1_790_000_000.0,
    order="by-entry",
    parallel=1,
    holder="me@here",
    epoch=3,
    runs=(
        DayRun(
            *(RunKey("cut", "", 1), 1, "stop", RunStatus.DONE, "cut-1a2b3c", True, 1, "interrupted", "pager\x1b[2J"),
            *(1_790_000_000.0, 1_790_000_061.5),
        ),
        DayRun(RunKey("drain", "", 1), 2, "stop"),
    ),
    halts=(Halt("ada", 1_790_000_100.0, "pager", "bob", 1_790_000_200.0, "over"), Halt("eve", 1_790_000_300.0, "")),
    approvals=(
        Approval("ada", 1_790_000_000.0, HASH, "cut", "ada@desk"),
        Approval("eve", 1_790_000_000.0, "b" * 64),
    ),
    waiting=Waiting("the window", "freeze", 1_790_000_300.0, 1_790_000_400.0),
)


def test_a_day_in_words() -> None:
    assert list(render(STATE)) == [
        "day mon of weekly halted: 1 interrupted, 1 pending",
        f"plan {HASH}, seed 7",
        "entry      status       begun                 took  run         reason",
        "cut (1)    interrupted  2026-09-21T14:13:20Z  1m2s  cut-1a2b3c  pager\\x1b[2J",
        "drain (1)  pending",
        "halted 2026-09-21T14:15:00Z by ada: pager",
        "resumed 2026-09-21T14:16:40Z by bob: over",
        "halted 2026-09-21T14:18:20Z by eve",
        "approved 2026-09-21T14:13:20Z by ada (ada@desk): entry cut, plan aaaaaaaaaaaa",
        "approved 2026-09-21T14:13:20Z by eve: the day, plan bbbbbbbbbbbb, which does not count: of another plan",
        "waiting since 2026-09-21T14:18:20Z until 2026-09-21T14:20:00Z for the window: freeze",
    ]


def test_as_json() -> None:
    document = to_document(STATE)
    assert (document["status"], document["exit_code"], document["runs"][0]["verdict"]) == ("halted", 2, "interrupted")
    assert '"day": "mon"' in to_json(document)
