"""Verdicts by importance, the entry that decided, and a new column of theirs in every view."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from chaos.core.action import ProofStatus
from chaos.core.result import ForeignFault, RunResult, StepResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run import html, markdown
from chaos.reports.run.page.live_page import LivePage
from chaos.reports.run.page.page_data import PageClock, unpack, verdict_objects
from chaos.reports.run.verdicts import (
    VERDICTS,
    cited_first,
    deciding_entry,
    decisive,
    plain_rows,
    ranked,
    unproven_step,
)
from chaos.reports.tables import View, shown

H, V, INC, P = Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING


def result(status: Status, *hypothesis: Status, steady: Status | None = None, abort: Status | None = None) -> RunResult:
    def verdicts(*statuses: Status | None) -> tuple[Verdict, ...]:
        return tuple(Verdict(f"v{i}", "a", s, "") for i, s in enumerate(statuses) if s)

    return RunResult(
        1, "r", "e", "t", status, 0, "", False, "", "", 0, 1, {}, (), verdicts(steady), verdicts(*hypothesis),
        verdicts(abort),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "keys"),
    [
        (result(V, H, INC, V, V), ["hypothesis-2", "hypothesis-3", "hypothesis-1", "hypothesis-0"]),
        (result(H, H, H, steady=H), ["steady-0", "hypothesis-0", "hypothesis-1"]),
        # What aborted the run comes before everything else.
        (result(V, V, H, abort=V), ["abort-0", "hypothesis-0", "hypothesis-1"]),
        (result(V, V, abort=H), ["hypothesis-0", "abort-0"]),
        (result(P, H, P), ["hypothesis-1", "hypothesis-0"]),
        (result(INC), []),
    ],
)
def test_order(made: RunResult, keys: list[str]) -> None:
    assert [row.key for row in ranked(plain_rows(made))] == keys


@pytest.mark.parametrize(
    ("made", "key"),
    [
        (result(V, H, V), "hypothesis-1"),
        (result(INC, H, INC), "hypothesis-1"),
        (result(H, H), None),
        (result(INC, H, abort=V), "abort-0"),
        (result(INC, H), None),  # something else made the run inconclusive
        (result(INC), None),
    ],
)
def test_decisive_verdict(made: RunResult, key: str | None) -> None:
    found = decisive(made)
    assert (found.key if found else None) == key


@pytest.mark.parametrize(
    ("made", "is_found"),
    [
        (result(INC, INC), True),
        (result(INC), True),
        (result(V, V), False),
        (result(INC, INC, abort=V), False),
        (result(H, H), False),
    ],
)
def test_step_that_made_a_run_inconclusive(made: RunResult, is_found: bool) -> None:
    proven = StepResult("a", "x", "n", 1, 2, "answered", "", ProofStatus.PROVEN, "")
    unproven = msgspec.structs.replace(proven, step="b", proof_status=ProofStatus.UNPROVEN)
    found = unproven_step(msgspec.structs.replace(made, steps=(proven, unproven)))
    assert (found is not None and found.step == "b") is is_found
    assert unproven_step(msgspec.structs.replace(made, steps=(proven,))) is None
    foreign = ForeignFault("n", "cordon", "cordoned", "kubectl", 1, 1)
    assert unproven_step(msgspec.structs.replace(made, steps=(unproven,), foreign_faults=(foreign,))) is None


def cited(at: float | None, *seqs: int) -> Verdict:
    return Verdict("v", "a", V, "", at=at, evidence=seqs)


@pytest.mark.parametrize(
    ("verdict", "times", "seq"),
    [
        (cited(5, 1, 2, 3), {1: 1.0, 2: 4.0, 3: 9.0}, 2),
        (cited(5, 1, 2), {1: 5.0, 2: 5.0}, 2),
        (cited(0, 1, 2), {1: 3.0, 2: 4.0}, 1),
        (cited(5, 1), {}, None),
        (cited(None, 1), {1: 1.0}, None),
    ],
)
def test_deciding_entry(verdict: Verdict, times: dict[int, float], seq: int | None) -> None:
    assert deciding_entry(verdict, times) == seq


def test_deciding_entry_is_always_shown() -> None:
    times = {seq: float(seq) for seq in range(20)}
    verdict = cited(15.5, *range(20))
    assert cited_first(verdict, times, 4) == (0, 1, 2, 15)
    assert cited_first(cited(1.5, *range(20)), times, 4) == (0, 1, 2, 3)
    assert cited_first(cited(1.5, 7, 8), times, 4) == (7, 8)


@pytest.mark.usefixtures("margin_column")
def test_a_new_column_is_one_entry(recorded: tuple[RunResult, Timeline]) -> None:
    """Chromium shows what the script makes of it: test_browser.py, test_live_in_browser.py."""
    result, timeline = recorded
    keys = [row.key for row in plain_rows(result)]
    page, text = html.render(result, timeline), markdown.render(result, timeline)
    assert page.count('<th scope="col">Margin</th>') == 1
    assert [f"<td>margin of &lt;{key}&gt;</td>" in page for key in keys] == [True] * len(keys)
    assert text.count("| evidence | margin |") == 3, "evidence is the last column of the table of each part"
    assert [f"| margin of \\<{key}\\> |" in text for key in keys] == [True] * len(keys)
    data = unpack(page.split('id="data">')[1].split("</script>")[0])
    live = LivePage()
    for entry in timeline.entries:
        live.add(entry)
    for verdicts in (data["verdicts"], json.loads(live.update(result, timeline.end))["verdicts"]):
        assert {verdict["id"]: verdict["margin"] for verdict in verdicts} == {key: f"margin of <{key}>" for key in keys}


@pytest.mark.usefixtures("margin_column")
def test_a_new_column_is_described_to_the_script() -> None:
    page = html.live_document("title").html
    assert re.findall(r'<th scope="col">(.*?)</th>', page) == ["Verdict", "Expectation", "Why", "Margin"]
    described = json.loads(page.split('id="columns">')[1].split("</script>")[0])
    assert described["table"][-1] == ["Margin", [["text", "margin"]]]
    facts = [["Expected", "expected"], ["Observed", "observed"], ["Margin", "margin"]]
    assert described["facts"] == facts, "the panel shows columns with View.PANEL"


def test_columns_of_the_script_have_keys_that_nothing_else_has() -> None:
    made = result(V, V)
    (verdict,) = verdict_objects(made, Timeline(), PageClock(0.0))
    keys = [column.key for column in shown(VERDICTS, View.SCRIPT)]
    assert len(keys) == len(set(keys))
    assert not {"id", "status", "symbol", "start", "deadline", "at", "evidence", "decided"} & set(keys)
    assert set(keys) < set(verdict)
