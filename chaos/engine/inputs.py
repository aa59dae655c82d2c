"""What a run starts with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.core.command import KubeCommand
from chaos.core.experiment import Experiment
from chaos.core.plan import Plan
from chaos.core.ports import Observer


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The experiment, its plan, and what is started with it.

    ``deadline`` is when maxDuration is over. ``observers`` start stage by stage: those of a later stage may look up
    what those of an earlier one have seen. ``workload`` are the commands that apply it; ``meta`` becomes the first
    entry of the recording. ``final_samples`` are taken before the final judgement and record a blind window when they
    fail. ``helper_namespaces`` are those of the pods that transport pod has made for the run.
    """

    experiment: Experiment
    plan: Plan
    deadline: float
    observers: Sequence[Sequence[Observer]] = ()
    workload: Sequence[KubeCommand] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    final_samples: Sequence[Callable[[], None]] = ()
    helper_namespaces: Sequence[str] = ()
