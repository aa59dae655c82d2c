"""The one writer: order, live reading and a disk that fails."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from chaos.core import redaction
from chaos.core.decode import decode
from chaos.core.kube import Metadata, Pod
from chaos.core.recording import DecodedEntry, RecordingEntry
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.store.recording_writer import RecordingWriter
from chaos.engine.recorder import Recorder
from tests.kit.fakes import FakeClock


def clock_at(t: float) -> FakeClock:
    clock = FakeClock()
    clock.t = t
    return clock


def fact(t: float, value: int, name: str = "f") -> RecordingEntry:
    return RecordingEntry(t, "host", name, msgspec.Raw(str(value).encode()), node="n1")


def test_no_line_gets_a_time_before_the_last_ones() -> None:
    recorder = Recorder(decode, clock_at(5))
    for t in (10.0, 9.0, 11.0, 10.5):
        recorder.emit(fact(t, 1))
    assert [(e.seq, e.t) for e in recorder.timeline().entries] == [(0, 10), (1, 10), (2, 11), (3, 11)]


def test_what_is_seen_after_a_phase_of_a_step_is_later_than_that_phase() -> None:
    """The pods that a step finds are those of before it, also where time stands still meanwhile."""
    recorder = Recorder(decode, clock_at(5))
    begin = RecordingEntry(10.0, "action", "poweroff", msgspec.Raw(b'{"step":"off","phase":"begin"}'), node="n1")
    for line in (fact(10, 1), begin, begin, fact(10, 2), fact(10, 3), begin):
        recorder.emit(line)
    times = [e.t for e in recorder.timeline().entries]
    assert times[:3] == [10, 10, 10]
    assert 10 < times[3] == times[4] == times[5] < 10.00001


def test_a_recording_is_judged_like_the_live_timeline(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl.gz"
    with RecordingWriter(path) as writer:
        recorder = Recorder(decode, clock_at(5), writer.write)
        recorder.emit(RecordingEntry(1.0, "meta", "recording", msgspec.Raw(b'{"format":1}')))
        recorder.emit(fact(10, 1))
        recorder.emit(RecordingEntry(11.0, "pods", "BOOKMARK", msgspec.Raw(b'{"metadata":{"resourceVersion":"7"}}')))
        recorder.emit(fact(12, 2))
        live = recorder.timeline()
    assert build_timeline(read_recording(path)).entries == live.entries
    assert [e.seq for e in live.entries] == [0, 1, 2]


def test_the_timeline_ends_now_and_later_entries_follow() -> None:
    clock = clock_at(100)
    recorder = Recorder(decode, clock)
    recorder.emit(fact(90, 1))
    assert recorder.timeline().end == 100
    recorder.emit(fact(99, 2))
    assert [f.t for f in recorder.timeline().readings("n1", "f")] == [90, 100]


def test_observers_do_not_change_what_is_being_judged() -> None:
    recorder = Recorder(decode, clock_at(5))
    recorder.emit(fact(10, 1))
    judged = recorder.timeline()
    recorder.emit(fact(11, 2))
    assert len(judged.readings("n1", "f")) == 1
    assert len(recorder.timeline().readings("n1", "f")) == 2


def test_many_threads() -> None:
    recorder = Recorder(decode, clock_at(5))

    def emit(name: str) -> None:
        for t in range(200):
            recorder.emit(fact(t, t, name))

    threads = [threading.Thread(target=emit, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    entries = recorder.timeline().entries
    assert [e.seq for e in entries] == list(range(800))
    assert [e.t for e in entries] == sorted(e.t for e in entries)


def test_an_object_that_was_decoded_already_is_not_decoded_again() -> None:
    recorder = Recorder(decode, clock_at(5))
    pod = Pod(metadata=Metadata(name="p", uid="u"))
    recorder.emit(fact(12, 1))
    recorder.emit(DecodedEntry.of(10, "pods", "ADDED", msgspec.Raw(msgspec.json.encode(pod)), pod))
    entry = recorder.timeline().entries[-1]
    assert (entry.t, entry.object is pod) == (12, True)


def test_a_secret_is_redacted_in_what_was_decoded_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", redaction.Known())
    redaction.register_secret("hunter2-secret")
    written: list[RecordingEntry] = []
    recorder = Recorder(decode, clock_at(5), written.append)
    pod = Pod(metadata=Metadata(name="p", uid="u", labels={"a": "is hunter2-secret"}))
    recorder.emit(DecodedEntry.of(10, "pods", "ADDED", msgspec.Raw(msgspec.json.encode(pod)), pod))
    assert recorder.timeline().pods["u"].last.object.metadata.labels == {"a": "is ***"}
    assert b"hunter2" not in msgspec.json.encode(written)


@pytest.mark.parametrize("limit", ["MAX_ENTRIES", "MAX_BYTES"])
def test_a_flood_ends_what_is_observed_and_not_what_the_run_does(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Every source is blind from then on, so that nothing counts as held which was not seen."""
    monkeypatch.setattr(f"chaos.engine.recorder.{limit}", 1000 if limit == "MAX_BYTES" else 5)
    written, reasons = list[RecordingEntry](), list[str]()
    recorder = Recorder(decode, clock_at(5), written.append)
    recorder.on_flood = reasons.append
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"a": "x" * 200}}}
    for t in range(10, 1010):
        recorder.emit(RecordingEntry(t, "pods", "MODIFIED", msgspec.Raw(msgspec.json.encode(pod))))
    recorder.emit(RecordingEntry(2000, "blind", "pods", msgspec.Raw(b'{"from":1,"to":2}')))
    timeline = recorder.timeline()
    (reason,) = reasons
    assert "the cluster sends too much" in reason
    assert len(timeline.entries) == len(written) < 10
    (flood,) = [window for window in timeline.blind_windows if window.source == "flood"]
    assert (flood.end, flood.reason) == (None, reason)
    assert all(flood.covers(source) for source in ("pods", "nodes", "events", "host@n1", "prometheus", "probe@a"))


def test_a_full_disk_does_not_stop_the_observers() -> None:
    written: list[RecordingEntry] = []

    def write(line: RecordingEntry) -> None:
        if written:
            raise OSError(28, "No space left on device")
        written.append(line)

    recorder = Recorder(decode, clock_at(5), write)
    for t in (10.0, 11.0, 12.0):
        recorder.emit(fact(t, 1))
    assert len(recorder.timeline().entries) == 3
    assert isinstance(recorder.failure, OSError)
    with pytest.raises(OSError, match="No space"):
        raise recorder.failure
