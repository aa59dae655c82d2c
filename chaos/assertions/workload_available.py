"""Are the workloads of a namespace fully available?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.judge.signals import Observation, from_history, mask
from chaos.judge.workloads import KINDS, counts
from chaos.model.assertion import Undecidable, View
from chaos.model.experiment import Model
from chaos.model.kube import Workload
from chaos.model.signal import Subject, SubjectSet
from chaos.model.timeline import Version


class Params(Model):
    """Which workloads; by default all Deployments, StatefulSets and DaemonSets of the namespace."""

    namespace: str = Field(description="a namespace, or workload: the one of the experiment's workload")
    names: list[str] | None = Field(None, min_length=1)
    kinds: list[Literal["Deployment", "StatefulSet", "DaemonSet"]] = Field(
        ["Deployment", "StatefulSet", "DaemonSet"], min_length=1
    )


def availability(plural: str, workload: Workload) -> Observation:
    """Whether it has as many pods as it wants, and the count in words."""
    status = workload.status
    if status is None:
        return False, "it has no status"
    ready, wanted = counts(plural, workload)
    if (status.observed_generation or 0) < (workload.metadata.generation or 0):
        return False, "its controller has not seen its newest specification yet"
    return ready >= wanted, f"{ready} of {wanted} are available"


def _version_availability(plural: str, version: Version[Workload]) -> Observation:
    return (False, "it was deleted") if version.is_deleted else availability(plural, version.object)


class WorkloadAvailable:
    """As many pods are available (StatefulSet: ready) as are wanted, told by a controller that saw the newest spec.

    The set is frozen when judging starts; a workload that is deleted later is not available.
    """

    name = "workload-available"
    summary = "Deployments, StatefulSets and DaemonSets have all their pods available"
    example = "{assert: workload-available, with: {namespace: workload}}"
    needs = "the workload objects, watched without a gap"
    params = Params
    node_fields = ()
    moment_fields = ()

    def subjects(self, params: Params, view: View) -> SubjectSet:
        namespace = view.namespace(params.namespace)
        plurals = {plural for plural, kind in KINDS.items() if kind in params.kinds}
        subjects, found = [], set()
        for (plural, ns, name), history in sorted(view.timeline.workloads.items()):
            there = history.at(view.anchor)
            if ns != namespace or plural not in plurals or there is None or there.is_deleted:
                continue
            if params.names is not None and name not in params.names:
                continue
            found.add(name)
            signal = from_history(history, lambda version, plural=plural: _version_availability(plural, version))  # type: ignore[misc]
            subjects.append(Subject(f"{plural.removesuffix('s')} {name}", mask(signal, view.timeline, plural)))
        absent = [name for name in params.names or () if name not in found]
        if absent:
            raise Undecidable(f"no workload {', '.join(absent)} was seen in {namespace}")
        expected = f"every workload of {namespace} is available"
        return SubjectSet(expected, tuple(subjects), empty_reason=f"no workload was seen in namespace {namespace}")


ASSERTION = WorkloadAvailable()
