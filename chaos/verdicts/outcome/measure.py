"""Measures: seconds after the fault, under names that are the same in every run of one experiment on one cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """What a measure is about."""

    NODE = "node"
    ZONE = "zone"
    POD = "pod"  # that existed at the fault
    REPLACEMENT = "replacement"  # a pod that was created after the fault
    WORKLOAD = "workload"
    VOLUME = "volume"


class Measure(Struct, frozen=True, order=True):
    """One measure: ``node worker-2: Ready=Unknown``, ``pod 2 of shop/web on worker-2: deleting``.

    Pods of an owner that are interchangeable are counted: the second that is deleted, whatever its name is.
    """

    kind: Kind
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}: {self.what}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened after a fault. ``observed``: seconds for which the cluster was observed after it.

    ``seconds`` are those after the fault at which each measure came true, or the duration of a ``... for``. What has
    none never happened.
    """

    observed: float
    seconds: dict[Measure, float] = field(default_factory=dict)
