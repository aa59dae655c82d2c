"""Observers: what is recorded beside the cluster and its hosts during a run."""

from __future__ import annotations

from chaos.cluster.observers.base import BlindWindowTracker, ThreadedObserver
from chaos.cluster.observers.plugin import FinalSampler, ObserverContext, ObserverPlugin, OffsetSource
from chaos.cluster.observers.sampler import Sampler, sample_source
from chaos.core.errors import NodefallError, Refused
from chaos.core.ports import Clock, Observer, Sink
from chaos.core.recording import BlindWindow, EntryKind, RecordingEntry
from chaos.core.time_bounds import ClockOffset

__all__ = [
    "BlindWindow",
    "BlindWindowTracker",
    "Clock",
    "ClockOffset",
    "EntryKind",
    "FinalSampler",
    "NodefallError",
    "Observer",
    "ObserverContext",
    "ObserverPlugin",
    "OffsetSource",
    "RecordingEntry",
    "Refused",
    "Sampler",
    "Sink",
    "ThreadedObserver",
    "sample_source",
]
