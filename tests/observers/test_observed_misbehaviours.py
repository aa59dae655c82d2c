"""Our observers on a lab whose API misbehaves under load: what they emit is the history of the store."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from chaos.kube import client
from chaos.lab.server import lab
from chaos.lab.spec import ApiMisbehaviour
from chaos.observers import reflector
from tests.kit.observed_lab import KINDS, EmittedVersion, ObservedLab, observed_lab, repeated

pytestmark = pytest.mark.lab
SECONDS = 25.0  # simulated, of load
PACE = 10.0
LATE = 2.0  # simulated seconds: our threads share their processors with a lab and with other tests
FORGETS = {"gone", "gone-http"}  # with these the server no longer has what was missed
EVIDENCE = {
    "cut": "the connection was cut",
    "torn": "in the middle of a line",
    "half-open": "no answer in time",
    "end-at-once": "the server ends watches at once",
    "gone": "the watch was ended: 410",
    "gone-http": ": 410 too old",
}
CASES: list[list[ApiMisbehaviour]] = [
    [],
    *([name] for name in get_args(ApiMisbehaviour)),
    ["cut", "torn", "end", "split", "line-breaks", "null-lists", "null-bookmarks", "legacy-events", "endless"],
    ["cut", "end", "half-open", "gone", "split"],
    ["torn", "end-at-once", "gone-http", "line-breaks"],
]


@pytest.mark.parametrize("switches", CASES, ids=lambda switches: "+".join(switches) or "none")
def test_nothing_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switches: list[ApiMisbehaviour]
) -> None:
    monkeypatch.setattr(client, "_WATCH_IDLE_TIMEOUT", 1.5)  # wall seconds, for connections that are half open
    monkeypatch.setattr(lab, "_KEEP_ALIVE", 0.3)
    monkeypatch.setattr(reflector, "_WATCH_TIMEOUT", "7")  # simulated seconds, for many watches
    with observed_lab(tmp_path, pace=PACE) as observed:
        evidence = [EVIDENCE[switch] for switch in switches if switch in EVIDENCE and len(switches) == 1]
        observed.run(switches, SECONDS, lambda: all(has_reason(observed, text) for text in evidence))
        for kind in KINDS:
            changes = observed.changes(kind)
            assert repeated(changes) == []
            lost = missed(observed, kind, changes)
            assert bool(FORGETS & set(switches)) or not lost, f"{kind}: the server still had what was missed"
            unseen = [(at, what) for at, what in lost if not blind(observed, kind, at)]
            assert unseen == [], f"{kind}: missed outside of a blind window: {observed.windows()}"
        assert not [line.note for line in observed.lines if str(line.note).startswith("undecodable")]
        assert not [window for window in observed.windows() if "undecodable" in window.reason]
        assert all(has_reason(observed, text) for text in evidence)
        assert any(line.type == "BOOKMARK" for line in observed.lines)


def has_reason(observed: ObservedLab, text: str) -> bool:
    return any(text in window.reason for window in observed.windows())


def missed(observed: ObservedLab, kind: str, changes: list[EmittedVersion]) -> list[tuple[float, EmittedVersion]]:
    """Changes that were not emitted, with their times; all others were emitted in order."""
    history = observed.history(kind)
    said = set(changes)
    happened = {what for _, what in history}
    events = [entry for entry in changes if entry[0] != "LIST" and entry in happened]
    assert events == [what for _, what in history if what in said]
    return [(at, what) for at, what in history if what not in said]


def blind(observed: ObservedLab, kind: str, at: float) -> bool:
    """What is lost may have been on its way when the last was seen."""
    return any(
        window.source == kind and window.begin - LATE <= at and (window.end is None or at <= window.end)
        for window in observed.windows()
    )
