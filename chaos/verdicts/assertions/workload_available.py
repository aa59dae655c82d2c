"""Assertion ``workload-available``: all pods of workloads are available."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Literal, Self

from msgspec import structs
from pydantic import Field, model_validator

from chaos.core.assertion import Claim, Names, Noun, Undecidable, View, namespace_text
from chaos.core.field_types import Model
from chaos.core.kube import Workload, is_owned_by
from chaos.core.number_types import SpareOrPercentage
from chaos.core.signal import Quantifier, Sample, Signal, Subject, SubjectSet
from chaos.core.timeline import Version
from chaos.verdicts.judge.availability import Machines, Word
from chaos.verdicts.judge.membership import Present, at, require_complete
from chaos.verdicts.judge.pods import KINDS, counts
from chaos.verdicts.judge.quantifiers import combine
from chaos.verdicts.judge.roster import Member, Roster
from chaos.verdicts.judge.selection import Filter, Owner, OwnerOrText, PodSetParams, Selection
from chaos.verdicts.judge.signals import Observation, from_history, mask_unproven

WorkloadKey = tuple[str, str, str]  # plural, namespace, name
_KIND_OF = {plural.removesuffix("s"): kind for plural, kind in KINDS.items()}


class Params(Model):
    """Workloads; by default all Deployments, StatefulSets and DaemonSets of the namespace."""

    namespace: str = Field(description="A namespace, or workload for the namespace of the experiment's workload.")
    names: list[str] | None = Field(None, min_length=1, description="The names of the workloads. The default is all.")
    kinds: list[Literal["Deployment", "StatefulSet", "DaemonSet"]] = Field(
        ["Deployment", "StatefulSet", "DaemonSet"], min_length=1
    )
    owner: OwnerOrText | None = Field(
        None, description="One workload, also as Kind/name, such as StatefulSet/db, instead of names and kinds."
    )
    unavailable_at_most: SpareOrPercentage = Field(
        0,
        alias="unavailable-at-most",
        description="The number of pods of each workload that may be unavailable, or a percentage of its desired pods, "
        "rounded down as in maxUnavailable.",
    )
    as_: Word = Field(
        "effective",
        alias="as",
        description="effective: without pods on machines that are off. reported: as the API reports it.",
    )

    @model_validator(mode="after")
    def _check_owner(self) -> Self:
        if self.owner is not None and self.model_fields_set & {"names", "kinds"}:
            raise ValueError("give owner, or names and kinds")
        if self.owner is not None and self.owner.kind not in KINDS.values():
            raise ValueError(
                f"a {self.owner.kind} is not a workload; the owner must be one of {', '.join(KINDS.values())}"
            )
        return self

    @property
    def workloads(self) -> tuple[list[str] | None, list[str]]:
        """Names, None for all, and kinds of the workloads."""
        return ([self.owner.name], [self.owner.kind]) if self.owner else (self.names, list(self.kinds))

    def needed(self, desired: int) -> int:
        """The number of pods that must be available."""
        share = str(self.unavailable_at_most)
        spare = desired * int(share[:-1]) // 100 if share.endswith("%") else int(share)
        return max(0, desired - spare)


def availability(
    plural: str, workload: Workload, needed: Callable[[int], int] = lambda desired: desired
) -> Observation:
    """Whether enough of the desired pods of the workload are available, with a description."""
    status = workload.status
    if status is None:
        return False, "no status"
    ready, desired = counts(plural, workload)
    if (status.observed_generation or 0) < (workload.metadata.generation or 0):
        return False, "its controller has not observed its newest generation yet"
    return ready >= needed(desired), f"{ready} of {desired} pods are available"


def _version_availability(plural: str, params: Params, version: Version[Workload]) -> Observation:
    return (False, "deleted") if version.is_deleted else availability(plural, version.object, params.needed)


def _share_available(observation: str) -> float:
    """The available share of the pods that ``availability`` described."""
    number, word, rest = observation.partition(" of ")
    desired = rest.partition(" ")[0]
    return int(number) / max(int(desired), 1) if word and number.isdigit() and desired.isdigit() else 0.0


def _effective(reported: Subject, key: WorkloadKey, params: Params, machines: Machines, view: View) -> Subject:
    """The workload, with as many pods as needed that are Ready and not on machines that are off.

    Its own count is not enough: the controller still counts a pod for a moment after it is no longer Ready.
    """
    plural, _, name = key
    owner = Owner.model_validate({"kind": KINDS[plural], "name": name})
    selection = Selection(PodSetParams(namespace=params.namespace, owner=owner), view)
    pods = [pod for pod in selection.candidates() if is_owned_by(pod.last.object, owner.kind, owner.name)]
    lost = machines.lost(pods)
    if not lost:
        return reported
    numbers = [counts(plural, version.object) for version in view.timeline.workloads[key].peek()]
    parts = [Subject("", reported.signal)]
    if not params.unavailable_at_most:
        is_certain = not any(ready > desired for ready, desired in numbers)  # else one that is lost may not be missed
        parts += (structs.replace(pod, is_certain=is_certain) for pod in _proven(lost, view))
    pod_filter = Filter(ready=True, deleting=False) if plural == "deployments" else Filter(ready=True)
    running = [Subject("", machines.signal(pod, pod_filter, selection, leaves=True)) for pod in pods]
    for desired in {desired for _, desired in numbers}:
        needed = params.needed(desired)
        parts += _proven([Subject("", _enough(running, needed, desired, key, view))], view)
    samples = (_described(sample, parts) for sample in combine(SubjectSet("", parts)).samples)
    return structs.replace(reported, signal=Signal(tuple(samples)))


def _described(sample: Sample, parts: Iterable[Subject]) -> Sample:
    """The sample with the observation of the first part that has its value."""
    found = (part.signal.at(sample.t) for part in parts)
    text = next((each.observation for each in found if each.value is sample.value), sample.observation)
    return structs.replace(sample, observation=text)


def _proven(subjects: Iterable[Subject], view: View) -> Iterator[Subject]:
    for subject in subjects:
        yield structs.replace(subject, signal=mask_unproven(subject.signal, view.timeline, "pods"))


def _enough(running: Sequence[Subject], needed: int, desired: int, key: WorkloadKey, view: View) -> Signal:
    """Whether ``needed`` of the pods run, while the workload is to have ``desired`` pods."""
    counted = combine(SubjectSet("", running, Quantifier.COUNT, needed))
    text = f"fewer than {needed} of {desired} pods are Ready on machines that run"
    plural = key[0]
    other = from_history(
        view.timeline.workloads[key].peek(), lambda version: (counts(plural, version.object)[1] != desired, text)
    )
    either = combine(SubjectSet("", (Subject("", counted), Subject("", other)), Quantifier.ANY))
    return Signal(tuple(structs.replace(s, observation=text) for s in either.samples))


def _subject(params: Params, names: Names) -> Noun:
    if affected := names.one_affected():
        kind, _, name = affected.partition(" ")
        return Noun(f"{_KIND_OF[kind]} {name}")
    if params.owner:
        return Noun(f"{params.owner.kind} {params.owner.name}")
    if params.names and len(params.names) == 1:
        return Noun(f"workload {params.names[0]}")
    if params.namespace == "workload":
        return Noun("the workload")
    return Noun(f"workloads{namespace_text(params.namespace)}", is_plural=True)


class WorkloadAvailable:
    """All desired pods are available (StatefulSet: ready), and the controller has observed the newest generation.

    A pod that is reported Ready on a machine that is off does not count as available, unless you give ``as:
    reported``. The set of workloads is frozen when judging starts. A workload that is deleted later is not available.
    """

    name = "workload-available"
    summary = "Deployments, StatefulSets and DaemonSets have all their pods available, or all but a number of them"
    example = "{assert: workload-available, with: {namespace: workload}}"
    needs = "the workload objects, watched without a gap"
    params = Params
    node_fields = ()
    moment_fields = ()
    masks_itself = True
    sources = ("deployments", "statefulsets", "daemonsets")

    def claim(self, params: Params, names: Names) -> Claim:
        subject = _subject(params, names)
        if not params.unavailable_at_most:
            return subject.is_("available", "lost availability")
        share, owner = str(params.unavailable_at_most), "a workload" if subject.is_plural else subject
        few = f"{share} of {owner}'s pods" if "%" in share else f"{share} pod{'s' * (share != '1')} of {owner}"
        verb = "was" if share == "1" else "were"
        return Claim(f"at most {few} {verb} unavailable", f"more than {few} {verb} unavailable")

    def subjects(self, params: Params, view: View) -> SubjectSet:
        namespace = view.namespace(params.namespace)
        names, kinds = params.workloads
        plurals = {plural for plural, kind in KINDS.items() if kind in kinds}
        for plural in plurals:
            require_complete(view, plural, view.anchor)
        workloads = view.timeline.workloads

        def includes(key: WorkloadKey) -> bool:
            is_named = names is None or key[2] in names
            return key[0] in plurals and key[1] == namespace and is_named

        present = view.memo(namespace).keep(lambda: Present[WorkloadKey](at(view.anchor), itemgetter(0), includes))
        keys = present.keys(workloads)
        found = {name for _, _, name in keys}
        missing = [name for name in names or () if name not in found]
        if missing:
            raise Undecidable(f"no workload {', '.join(missing)} was observed in {namespace}")
        expected = f"every workload of {namespace} is available"
        if spare := params.unavailable_at_most:
            expected = f"of every workload of {namespace} at most {spare} pods are unavailable"

        def member(key: WorkloadKey) -> Member:
            plural, _, name = key
            observe = partial(_version_availability, plural, params)
            return Member(f"{plural.removesuffix('s')} {name}", plural, workloads[key], observe)

        subjects: Sequence[Subject] = view.memo().keep(Roster).subjects(view.timeline, keys, member)
        machines = Machines(view.timeline, params.as_)
        if machines.down():
            subjects = [_effective(s, key, params, machines, view) for s, key in zip(subjects, keys, strict=True)]
        empty_reason = f"no workload was observed in namespace {namespace}"
        return SubjectSet(expected, subjects, empty_reason=empty_reason, nearness=_share_available)


ASSERTION = WorkloadAvailable()
