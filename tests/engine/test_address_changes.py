"""A run reports each change of a machine's address once, when it is judged."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from chaos.core.action import Undo
from chaos.core.plan import PlannedStep
from tests.engine.test_inject import EMPTY, context_of
from tests.kit.fakes import FakeClock, FakeKube, FakeProgress, FakeSession
from tests.kit.sessions import FakeJudge

THERE = "n1 is now at 172.18.0.5 (was 172.18.0.3)"
BACK = "n1 is now at 172.18.0.3 (was 172.18.0.5)"


def test_each_change_is_reported_once(tmp_path: Path) -> None:
    step = PlannedStep("do", "power-on", "n1", {}, {}, (), Undo(), ())
    context = context_of(tmp_path, step, FakeClock(), FakeSession({}), FakeKube({}))
    progress, seen = FakeProgress(), list[str]()
    context.progress = progress
    context.judge = FakeJudge(lambda _: structs.replace(EMPTY, address_changes=tuple(seen)))
    context.tick()
    assert progress.reports == []
    for change, reports in ((THERE, [THERE]), (BACK, [THERE, BACK])):
        seen.append(change)
        context.tick()
        context.tick()
        assert progress.reports == reports
