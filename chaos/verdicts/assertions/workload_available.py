"""Assertion ``workload-available``: all pods of workloads are available."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Literal

from msgspec import structs
from pydantic import Field

from chaos.core.assertion import Claim, Names, Noun, Undecidable, View, namespace_text
from chaos.core.field_types import Model
from chaos.core.kube import Pod, Workload
from chaos.core.signal import Signal, Subject, SubjectSet
from chaos.core.timeline import History, Version
from chaos.verdicts.judge.availability import Machines, Word
from chaos.verdicts.judge.membership import Present, at, require_complete
from chaos.verdicts.judge.pods import KINDS, counts, is_owned_by
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.roster import Member, Roster
from chaos.verdicts.judge.signals import Observation, mask_unproven

WorkloadKey = tuple[str, str, str]  # plural, namespace, name
_KIND_OF = {plural.removesuffix("s"): kind for plural, kind in KINDS.items()}


class Params(Model):
    """Workloads; by default all Deployments, StatefulSets and DaemonSets of the namespace."""

    namespace: str = Field(description="A namespace, or workload for the namespace of the experiment's workload.")
    names: list[str] | None = Field(None, min_length=1)
    kinds: list[Literal["Deployment", "StatefulSet", "DaemonSet"]] = Field(
        ["Deployment", "StatefulSet", "DaemonSet"], min_length=1
    )
    as_: Word = Field(
        "effective",
        alias="as",
        description="effective: without pods on machines that are off. reported: as the API reports it.",
    )


def availability(plural: str, workload: Workload) -> Observation:
    """Whether the workload has all desired pods, with a description."""
    status = workload.status
    if status is None:
        return False, "no status"
    ready, desired = counts(plural, workload)
    if (status.observed_generation or 0) < (workload.metadata.generation or 0):
        return False, "its controller has not observed its newest generation yet"
    return ready >= desired, f"{ready} of {desired} pods are available"


def _share_available(observation: str) -> float:
    """The available share of the pods that ``availability`` described."""
    number, word, rest = observation.partition(" of ")
    desired = rest.partition(" ")[0]
    return int(number) / max(int(desired), 1) if word and number.isdigit() and desired.isdigit() else 0.0


def _version_availability(plural: str, version: Version[Workload]) -> Observation:
    return (False, "deleted") if version.is_deleted else availability(plural, version.object)


def _effective(
    reported: Subject, key: WorkloadKey, pods: Iterable[History[Pod]], machines: Machines, view: View
) -> Subject:
    """The workload, not available while one of its pods is reported Ready on a machine that is off."""
    plural, namespace, name = key
    own = (pod for pod in pods if pod.last.object.metadata.namespace == namespace)
    lost = machines.lost(pod for pod in own if is_owned_by(pod.last.object, KINDS[plural], name))
    numbers = (counts(plural, version.object) for version in view.timeline.workloads[key].peek())
    is_certain = not any(ready > desired for ready, desired in numbers)  # else one that is lost may not be missed
    masked = [Subject("", mask_unproven(pod.signal, view.timeline, "pods"), is_certain=is_certain) for pod in lost]
    if not lost:
        return reported
    both = combine(SubjectSet("", (Subject("", reported.signal), *masked)))
    described = (
        structs.replace(s, observation=reported.signal.at(s.t).observation) if s.value else s for s in both.samples
    )
    return structs.replace(reported, signal=Signal(tuple(described)))


class WorkloadAvailable:
    """All desired pods are available (StatefulSet: ready), and the controller has observed the newest generation.

    A pod that is reported Ready on a machine that is off does not count as available, unless you give ``as:
    reported``. The set of workloads is frozen when judging starts. A workload that is deleted later is not available.
    """

    name = "workload-available"
    summary = "Deployments, StatefulSets and DaemonSets have all their pods available"
    example = "{assert: workload-available, with: {namespace: workload}}"
    needs = "the workload objects, watched without a gap"
    params = Params
    node_fields = ()
    moment_fields = ()
    masks_itself = True
    sources = ("deployments", "statefulsets", "daemonsets")

    def claim(self, params: Params, names: Names) -> Claim:
        affected = names.one_affected()
        if affected:
            kind, _, name = affected.partition(" ")
            return Noun(f"{_KIND_OF[kind]} {name}").is_("available", "lost availability")
        if params.names and len(params.names) == 1:
            return Noun(f"workload {params.names[0]}").is_("available", "lost availability")
        if params.namespace == "workload":
            return Noun("the workload").is_("available", "lost availability")
        return Noun(f"workloads{namespace_text(params.namespace)}", is_plural=True).is_(
            "available", "lost availability"
        )

    def subjects(self, params: Params, view: View) -> SubjectSet:
        namespace = view.namespace(params.namespace)
        plurals = {plural for plural, kind in KINDS.items() if kind in params.kinds}
        for plural in plurals:
            require_complete(view, plural, view.anchor)
        workloads = view.timeline.workloads

        def includes(key: WorkloadKey) -> bool:
            is_named = params.names is None or key[2] in params.names
            return key[0] in plurals and key[1] == namespace and is_named

        present = view.memo(namespace).keep(lambda: Present[WorkloadKey](at(view.anchor), itemgetter(0), includes))
        keys = present.keys(workloads)
        found = {name for _, _, name in keys}
        missing = [name for name in params.names or () if name not in found]
        if missing:
            raise Undecidable(f"no workload {', '.join(missing)} was observed in {namespace}")
        expected = f"every workload of {namespace} is available"

        def member(key: WorkloadKey) -> Member:
            plural, _, name = key
            observe = partial(_version_availability, plural)
            return Member(f"{plural.removesuffix('s')} {name}", plural, workloads[key], observe)

        subjects: Sequence[Subject] = view.memo().keep(Roster).subjects(view.timeline, keys, member)
        machines = Machines(view.timeline, params.as_)
        if down := [machine.node for machine in machines.down()]:
            pods = view.timeline.pods.on_nodes(down)
            subjects = [_effective(s, key, pods, machines, view) for s, key in zip(subjects, keys, strict=True)]
        empty_reason = f"no workload was observed in namespace {namespace}"
        return SubjectSet(expected, subjects, empty_reason=empty_reason, nearness=_share_available)


ASSERTION = WorkloadAvailable()
