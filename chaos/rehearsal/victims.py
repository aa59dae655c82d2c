"""An experiment whose targets are nodes that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chaos.core.errors import UsageError
from chaos.core.experiment import TargetSpec
from chaos.engine.load import LoadedExperiment


def victim_target(loaded: LoadedExperiment) -> str:
    """The target of the first step that has one. Raises UsageError for an experiment without targets."""
    spec = loaded.experiment.spec
    named = next((step.target for step in spec.method if step.target in spec.targets), None)
    if named is None:
        raise UsageError(
            f"{loaded.experiment.metadata.name}: none of its steps has a target, so no node is its victim",
            hint="leave out --each-node and --each-zone",
        )
    return str(named)


def with_targets(loaded: LoadedExperiment, nodes: Mapping[str, Sequence[str]]) -> LoadedExperiment:
    """A copy whose targets are exactly these nodes; the others stay. Raises UsageError for an unknown one.

    A target that is to run the workload still is: that confines the pods of the workload to a few nodes.
    """
    spec = loaded.experiment.spec
    if unknown := sorted(nodes.keys() - spec.targets.keys()):
        raise UsageError(f"{loaded.experiment.metadata.name}: it has no target {unknown[0]!r}")
    chosen = {target: TargetSpec(nodes=list(names), runs=spec.targets[target].runs) for target, names in nodes.items()}
    targets = {**spec.targets, **chosen}
    experiment = loaded.experiment.model_copy(update={"spec": spec.model_copy(update={"targets": targets})})
    return replace(loaded, experiment=experiment)
