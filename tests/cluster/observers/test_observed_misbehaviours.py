"""Our observers on a lab whose API misbehaves under load: what they emit is the history of the store.

And nothing is emitted after a proof that it had been emitted.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from chaos.cluster import client
from chaos.cluster.observers import reflector
from chaos.core.currency_log import CurrencyLog
from chaos.core.kube import RESOURCES
from chaos.core.recording import Currency
from chaos.lab.server import lab
from chaos.lab.spec import ApiMisbehaviour
from tests.kit.observed_lab import KINDS, EmittedVersion, ObservedLab, observed_lab, repeated
from tests.kit.suite import others_nightly

pytestmark = pytest.mark.lab
SECONDS = 25.0  # simulated, of load
PACE = 10.0
LATE = 2.0  # simulated seconds: our threads share their processors with a lab and with other tests
TICK = 1e-5  # seconds: the resolution of recorded times
FORGETS = {"gone", "gone-http"}  # with these the server no longer has what was missed
CASES: list[list[ApiMisbehaviour]] = [
    [],
    *([name] for name in get_args(ApiMisbehaviour)),
    ["cut", "torn", "end", "split", "line-breaks", "null-lists", "null-bookmarks", "legacy-events", "endless"],
    ["cut", "end", "half-open", "gone", "split"],
    ["torn", "end-at-once", "gone-http", "line-breaks"],
]


@pytest.mark.parametrize(
    "switches", others_nightly(CASES, ([], ["gone"], *CASES[-3:])), ids=lambda switches: "+".join(switches) or "none"
)
def test_nothing_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switches: list[ApiMisbehaviour]
) -> None:
    monkeypatch.setattr(client, "_WATCH_IDLE_TIMEOUT", 1.5)  # wall seconds, for connections that are half open
    monkeypatch.setattr(lab, "_KEEP_ALIVE", 0.3)
    monkeypatch.setattr(reflector, "_WATCH_TIMEOUT", "7")  # simulated seconds, for many watches
    with observed_lab(tmp_path, pace=PACE) as observed:
        forgetful = len(switches) == 1 and switches[0] in FORGETS
        observed.run(switches, SECONDS, lambda: not forgetful or relisted(observed))
        for kind in KINDS:
            changes = observed.changes(kind)
            assert repeated(changes) == []
            lost = missed(observed, kind, changes)
            assert bool(FORGETS & set(switches)) or not lost, f"{kind}: the server still had what was missed"
            unseen = [(at, what) for at, what in lost if not blind(observed, kind, at)]
            assert unseen == [], f"{kind}: missed outside of a blind window: {observed.windows()}"
            assert proven_too_early(observed, kind) == []
        assert not [line.note for line in observed.lines if str(line.note).startswith("undecodable")]
        assert not [window for window in observed.windows() if "undecodable" in window.reason]
        assert bool(FORGETS & set(switches)) or observed.windows() == [], "what is only late is not lost"
        assert not forgetful or relisted(observed)
        assert any(line.type == "BOOKMARK" for line in observed.lines)


def relisted(observed: ObservedLab) -> bool:
    return any("410" in window.reason for window in observed.windows())


def missed(observed: ObservedLab, kind: str, changes: list[EmittedVersion]) -> list[tuple[float, EmittedVersion]]:
    """Changes that were not emitted, with their times; all others were emitted in order."""
    history = observed.history(kind)
    said = set(changes)
    happened = {what for _, what in history}
    events = [entry for entry in changes if entry[0] != "LIST" and entry in happened]
    assert events == [what for _, what in history if what in said]
    return [(at, what) for at, what in history if what not in said]


def proven_too_early(observed: ObservedLab, kind: str) -> list[EmittedVersion]:
    """Versions outside of the interval that the proofs leave."""
    times = {what: at for at, what in observed.history(kind)}
    log, found, seen = CurrencyLog(), [], set[str]()
    for line in list(observed.lines):
        if line.kind == "current" and line.type == kind:
            log.add(kind, msgspec.json.decode(line.object, type=Currency), line.t)
        elif line.kind == kind and line.type != "BOOKMARK":
            obj = msgspec.json.decode(line.object, type=RESOURCES[kind].type)
            version = int(obj.metadata.resource_version)
            what = (line.type, obj.metadata.uid, version)
            is_new = obj.metadata.uid not in seen
            seen.add(obj.metadata.uid)
            earliest, latest = log.interval(kind, obj, version, line.t, is_new=is_new)
            if what in times and not earliest - TICK <= times[what] <= latest + TICK:
                found.append(what)
    return found


def blind(observed: ObservedLab, kind: str, at: float) -> bool:
    """What is lost may have been on its way when the last was seen."""
    return any(
        window.source == kind and window.begin - LATE <= at and (window.end is None or at <= window.end)
        for window in observed.windows()
    )
