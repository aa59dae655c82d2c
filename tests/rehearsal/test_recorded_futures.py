"""From the first lists of each recording of a real cluster, 20 seeds predict what the recording then shows.

What is taken of the recording besides its first lists is in ``chaos.lab.replay.play``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from chaos.core.store.recording import build_timeline, read_recording
from chaos.rehearsal.futures import expected_of_recording
from chaos.reports.comparison.comparison import Comparison, compare
from chaos.reports.comparison.side import side_of
from chaos.verdicts.outcome.acceptance import Standing
from tests.kit.processes import ROOT
from tests.kit.suite import others_nightly

RECORDINGS = sorted((ROOT / "tests" / "recordings").glob("*.jsonl.gz"))
MEASURES = {
    "01-graceful-poweroff": 84,
    "02-cancelled-shutdown-signal": 106,
    "05-power-cut": 107,
    "07-partition-from-control-plane": 42,
    "08-drain-blocked-then-allowed": 86,
    "10-priority-shutdown": 54,
    "12-partition-ipv4-only": 0,  # the kubelet comes back over IPv6 in time: nothing happens, as is predicted
    "16-graceful-poweroff-exit-codes": 101,
    "25-two-nodes-of-a-zone": 52,
    "27-poweroff-cancelled-in-flight-systemd-257": 160,
    "31-volume-force-deleted-pod": 24,
    "33-volume-graceful-poweroff": 36,
}
# What the volume controllers and a kubelet that is stopped leave to chance, and what came after the last entry.
NOT_JUDGED = {"27-poweroff-cancelled-in-flight-systemd-257": 3, "33-volume-graceful-poweroff": 10}


def _compared(path: Path, seeds: int = 20) -> Comparison:
    entries = list(read_recording(path))
    side = side_of(path.name, build_timeline(entries))
    return compare(side, expected_of_recording(side, entries, range(1, seeds + 1)))


@pytest.mark.parametrize(
    "path", others_nightly(RECORDINGS, RECORDINGS[::3]), ids=lambda path: path.name.removesuffix(".jsonl.gz")
)
def test_every_measure_lies_in_its_band(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    comparison = _compared(path)
    assert [str(row) for row in comparison.outside] == []
    found = Counter(row.standing for row in comparison.rows)
    assert found[Standing.INSIDE] == MEASURES[name] == len(comparison.side.outcome.seconds)
    assert sum(found.values()) - found[Standing.INSIDE] <= NOT_JUDGED.get(name, 0)


def test_every_recording_is_predicted() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in RECORDINGS} == MEASURES.keys()


@pytest.mark.parametrize("shift", [("controllerManager", {"nodeMonitorGracePeriod": "25s"}), ("systemd", 257)])
def test_another_cluster_would_have_been_noticed(shift: tuple[str, object]) -> None:
    """A prediction with another grace period, or a systemd that cancels shutdowns, leaves what happened outside."""
    name = "27-poweroff-cancelled-in-flight-systemd-257" if shift[0] == "systemd" else "05-power-cut"
    path = ROOT / "tests" / "recordings" / f"{name}.jsonl.gz"
    entries = list(read_recording(path))
    side = side_of(path.name, build_timeline(entries))
    meta = msgspec.json.decode(entries[0].object)
    other = {**meta, shift[0]: 252 if shift[0] == "systemd" else shift[1]}
    entries[0] = msgspec.structs.replace(entries[0], object=msgspec.Raw(msgspec.json.encode(other)))
    assert compare(side, expected_of_recording(side, entries, range(1, 11))).outside


def test_the_future_is_not_known() -> None:
    """Without what followed the last operation, but for the boot of the machine, the prediction is the same."""
    path = ROOT / "tests" / "recordings" / "08-drain-blocked-then-allowed.jsonl.gz"
    entries = list(read_recording(path))
    side = side_of(path.name, build_timeline(entries))
    last = max(entry.t for entry in entries if entry.kind == "action")
    known = [entry for entry in entries if entry.t <= last or entry.kind not in ("pods", "nodes", "leases", "events")]
    whole, cut = (expected_of_recording(side, each, [1, 2]).measures for each in (entries, known))
    assert whole == cut
