"""A day over all its clusters; links to its reports."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chaos.core.errors import Exit
from chaos.core.result import ForeignFault, UndoResult
from chaos.core.verdict import Status
from chaos.gameday.events import EventKind, Undelivered
from chaos.gameday.state import Approval, Halt, PastWait, Waiting
from chaos.reports.day.contents import lessons, moments
from chaos.reports.day.view import ClusterRecord, is_run_directory, make_view
from chaos.reports.run import html
from tests.kit.recorded_days import BEGIN, PLAN, WINDOW, judged, pending, ran, record, result, skipped, view
from tests.kit.reported_runs import load

HELD, BAD = record(ran("a")), record(ran("a", "violated"), cluster="prod")


@pytest.mark.parametrize(
    ("records", "status", "code", "headline"),
    [
        ([HELD], "held", Exit.HELD, "1 held"),
        ([HELD, BAD], "violated", Exit.VIOLATED, "1 violated, 1 held of 2 runs; a on prod"),
        ([record(ran("a"), skipped("b", "gate"))], "inconclusive", Exit.INCONCLUSIVE, "1 held, 1 skipped of 2 runs"),
        ([record(skipped("a", "gate"))], "inconclusive", Exit.REFUSED, "1 skipped"),
        ([record(ran("a"), pending("b"))], "inconclusive", Exit.INCONCLUSIVE, "the day is running"),
        (
            [record(ran("a"), pending("b"), halts=(Halt("ada", BEGIN, "pager"),))],
            "inconclusive", Exit.INCONCLUSIVE, "1 held, 1 pending of 2 runs; the day is halted",
        ),
        ([HELD, record(pending("a"), cluster="prod")], "inconclusive", Exit.INCONCLUSIVE, "the day is running on prod"),
        ([record(ran("a"), ran("a", "violated", 2))], "violated", Exit.VIOLATED, "of 2 runs; a (2)"),
    ],
)  # fmt: skip
def test_status(records: list[ClusterRecord], status: str, code: Exit, headline: str) -> None:
    made = view(*records)
    assert (made.status, made.exit_code) == (status, code)
    assert headline in made.headline


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("drain/20261201T090000Z", True),
        ("drain/20261201T090000Z-2", True),
        ("drain", False),
        ("../drain", False),
        ("drain/..", False),
        ("./x", False),
        ("drain/x/y", False),
        ("/etc/passwd", False),
        ("a\\b/c", False),
        ("/x", False),
        ("x/", False),
        ("", False),
    ],
)
def test_directories_of_runs(name: str, expected: bool) -> None:
    assert is_run_directory(name) is expected


def test_links_lead_to_runs_that_are_here() -> None:
    elsewhere = replace(record(ran("a"), ran("b")), directories={"a-1": "x a/2026"})
    assert [run.link for run in view(elsewhere).runs] == ["../../../x%20a/2026/report.html", ""]


def test_what_was_learned_has_violations_first() -> None:
    made = view(
        record(
            skipped("z", "gate no-alerts: one fires"),
            ran("a", "inconclusive"),
            ran("b", "violated"),
            ran("c", "interrupted", reason="pager"),
            ran("d", "violated", reason="without a result"),
            undelivered=(Undelivered("slack", EventKind.DAY_BEGINS, BEGIN, "HTTP 500"),) * 2,
        ),
        record(ran("b"), cluster="prod"),
        results={
            "a-1": result(judged("seen", Status.INCONCLUSIVE), judged("fine", Status.HELD)),
            "b-1": result(
                judged("moved", Status.VIOLATED, "one stayed"),
                undo=(UndoResult("cut", "partition", "w1", False, "no answer"),),
                leftovers=("a timer",),
                foreign_faults=(ForeignFault("w1", "cordon", "w1 was cordoned by kubectl", "kubectl", 1.0, 1.0),),
            ),
        },
    )
    found = [(lesson.kind, lesson.where, lesson.what) for lesson in lessons(made)]
    kinds = [kind for kind, _, _ in found]
    assert ("violated", "b on staging", "moved") in found
    assert ("violated", "d on staging", "the run as a whole") in found
    assert ("left behind", "b on staging", "a timer") in found
    assert ("differs", "b", "its runs ended differently") in found
    assert ("inconclusive", "a on staging", "seen") in found
    assert ("not run", "z on staging", "it did not take place") in found
    assert ("not delivered", "notifications on staging", "2 to slack") in found
    order = ["violated", "left behind", "differs", "inconclusive", "interrupted", "not run", "by others"]
    assert list(dict.fromkeys(kinds)) == [*order, "not delivered"]


def test_nothing_is_learned_of_a_day_that_held() -> None:
    assert lessons(view(record(ran("a"), ran("b")), results={"a-1": result(judged("fine", Status.HELD))})) == []


def test_moments_are_in_the_order_of_time() -> None:
    run = ran("a", at=BEGIN + 600.0, gates_held=BEGIN + 590.0, reason="all held")
    made = view(
        record(
            run,
            skipped("b", "stopped: gate http: 503", BEGIN + 900.0),
            gates=("no other run",),
            waits=(PastWait("the gates of a (1)", ("gate approval: none", "gate http: 503"), BEGIN, BEGIN + 590.0),),
            halts=(Halt("ada", BEGIN + 100.0, "pager", "bob", BEGIN + 200.0, "it was something else"),),
            approvals=(Approval("ada", BEGIN + 50.0, PLAN, "", "ada@laptop"), Approval("eve", BEGIN + 51.0, "cd" * 32)),
            undelivered=(Undelivered("teams", EventKind.ENTRY_ENDS, BEGIN + 721.0, "timed out"),),
        )
    )
    assert [(round(each.at - BEGIN), each.kind, each.text) for each in moments(made)] == [
        (-60, "day", "its state is created: plan abababababab"),
        (0, "wait", "9m50s for the gates of a (1): gate approval: none; then gate http: 503"),
        (50, "approval", "of the day by ada (ada@laptop), plan abababababab"),
        (51, "approval", "of the day by eve, plan cdcdcdcdcdcd, for another plan: it does not count"),
        (100, "halt", "by ada: pager"),
        (200, "resume", "by bob: it was something else"),
        (590, "gates", "held before a: no other run"),
        (600, "entry", "a begins (run a-1, seed 7)"),
        (720, "entry", "a is held after 2m: all held"),
        (721, "not delivered", "entry-ends to teams: timed out"),
        (900, "skipped", "b: stopped: gate http: 503"),
        (900, "day", "the last entry is over"),
    ]


def test_of_one_instant_what_comes_first_is_first() -> None:
    """A simulated cluster's time stands still between runs."""
    run = ran("a", gates_held=BEGIN, ended=BEGIN)
    made = view(record(run, created=BEGIN, approvals=(Approval("ada", BEGIN, PLAN),)))
    assert [each.kind for each in moments(made)] == ["day", "approval", "gates", "entry", "entry", "day"]


@pytest.mark.parametrize(
    ("halts", "text"),
    [
        ((), "for the window, goes on: closed"),
        ((Halt("ada", BEGIN, ""),), "for the window, until it was stopped: closed"),
    ],
)
def test_a_wait_that_is_not_over(halts: tuple[Halt, ...], text: str) -> None:
    made = view(record(pending("a"), waiting=Waiting("the window", "closed", BEGIN), halts=halts))
    assert [each.text for each in moments(made) if each.kind == "wait"] == [text]


@pytest.mark.parametrize(
    ("window", "t", "text"),
    [
        (None, BEGIN, "Tue 2026-12-01 09:00:00 UTC"),
        (WINDOW, BEGIN, "Tue 2026-12-01 10:00:00 CET"),
        (WINDOW, None, ""),
        (WINDOW, -1.0, "unknown"),
        (WINDOW, 1e300, "unknown"),
    ],
)
def test_times_are_in_the_zone_of_the_window(window: object, t: float | None, text: str) -> None:
    assert view(record(ran("a"), window=window)).when(t) == text


def test_clocks_that_were_wrong_do_no_harm() -> None:
    made = view(record(ran("a", begun=1e300, ended=-1e300), ran("b", begun=0.0, ended=1e300)))
    assert [run.took for run in made.runs] == ["0s", "878400h"]


def test_links_to_verdicts_have_their_target() -> None:
    for name, key in (("violated", "hypothesis-1"), ("aborted", "abort-0")):
        result, timeline = load(name)
        view = make_view([record(ran("one", "violated"))], {"one-1": result})
        targets = [lesson.link.partition("#")[2] for lesson in lessons(view) if "#" in lesson.link]
        assert key in targets
        page = html.render(result, timeline)
        assert [target for target in targets if f'id="{target}"' not in page] == []
