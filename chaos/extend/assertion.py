"""Assertions: what was true of each state. The judge adds time, and what was not observed."""

from __future__ import annotations

from chaos.cluster.observers.sampler import sample_source
from chaos.core import kube
from chaos.core.assertion import (
    Assertion,
    Claim,
    ClaimAssertion,
    HostFactAssertion,
    MaskingAssertion,
    Names,
    NodeAssertion,
    Noun,
    Undecidable,
    View,
    WatchingAssertion,
    format_seconds,
)
from chaos.core.field_types import Model
from chaos.core.history import History, Version
from chaos.core.signal import Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import Fact, Timeline

__all__ = [
    "Assertion",
    "Claim",
    "ClaimAssertion",
    "Fact",
    "History",
    "HostFactAssertion",
    "MaskingAssertion",
    "Model",
    "Names",
    "NodeAssertion",
    "Noun",
    "Sample",
    "Signal",
    "Subject",
    "SubjectSet",
    "Timeline",
    "Undecidable",
    "Version",
    "View",
    "WatchingAssertion",
    "format_seconds",
    "kube",
    "sample_source",
]
