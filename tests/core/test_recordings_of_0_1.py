"""Recordings that nodefall 0.1.0 wrote are read."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from chaos.core.decode import decode
from chaos.core.recording import OVERRIDDEN, RecordingEntry


def entry(kind: str, type_: str, obj: Any) -> Any:
    decoded = decode(RecordingEntry(1.0, kind, type_, msgspec.Raw(json.dumps(obj).encode()), "n1"), 0)
    assert decoded is not None
    return decoded


def test_words_of_a_recording_are_read() -> None:
    assert entry("meta", "recording", {"format": 1, "overruled": ["x"]}).object == {"format": 1, OVERRIDDEN: ["x"]}
    assert entry("host", "planted-timers", []).type == "failsafe-timers"
    proved = entry("action", "kubelet-freeze", {"phase": "proved", "evidence": {"kubelet-frozen": True}})
    assert proved.object.evidence == {"kubelet-stopped-state": True}
