"""Parts shared by actions on single pods: the selection of pods, and their versions in the timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from chaos.core.action import Proof, ProofResult, ProofStatus, StepRun, Target
from chaos.core.errors import Unsupported
from chaos.core.evidence import no_proof, returned_entries
from chaos.core.field_types import Model
from chaos.core.kube import Pod, pod_condition
from chaos.core.kube_names import AnyObjectName, LabelSelector, Namespace
from chaos.core.timeline import Timeline, Version

PodPredicate = Callable[[Version[Pod]], bool]


class PodParams(Model):
    """The selection of pods on the target node."""

    namespace: Namespace = Field(description="A namespace, or workload for the namespace of the experiment's workload.")
    name: AnyObjectName = Field("", description="The name of a single pod.")
    selector: LabelSelector = Field("", description="Only pods with these labels, such as app=web.")

    @model_validator(mode="after")
    def _require_name_or_selector(self) -> Self:
        if not self.name and not self.selector:
            raise ValueError("say which pods: name or selector")
        return self


class GraceParams(PodParams):
    grace: int | None = Field(None, ge=0, description="The grace period in seconds. By default, the pod's own.")


def namespace_of(target: Target, given: str) -> str:
    """``given``, or the namespace of the run's workload for ``workload``. Raises Unsupported."""
    if given != "workload":
        return given
    if not target.namespace:
        raise Unsupported("namespace: workload: the experiment has no workload", hint="name a namespace")
    return target.namespace


def explicit_namespace(given: str) -> str:
    """``given``, or "" for the workload's namespace, whose name is chosen when the run starts."""
    return "" if given == "workload" else given


class AffectedPods(NamedTuple):
    """The outcome for each pod (uid, status, refusals), and the sequence numbers of the entries that hold it."""

    pods: list[dict[str, Any]]
    seqs: tuple[int, ...]


def affected_pods(timeline: Timeline, step: StepRun) -> AffectedPods | None:
    """The pods in the step's "returned" entries; None if they list no pods, as in recordings of other tools."""
    entries = [
        (entry.seq, record.evidence["pods"])
        for entry, record in returned_entries(timeline, step)
        if isinstance(record.evidence.get("pods"), list)
    ]
    pods = [pod for _, recorded in entries for pod in recorded if isinstance(pod, dict)]
    return AffectedPods(pods, tuple(seq for seq, _ in entries)) if entries else None


def refusals(timeline: Timeline, step: StepRun) -> list[dict[str, Any]]:
    """Refusals of the step's pods (t, status, message), in order of time."""
    affected = affected_pods(timeline, step)
    return sorted(
        (refusal for pod in (affected.pods if affected else ()) for refusal in pod.get("refusals") or ()),
        key=lambda refusal: float(refusal["t"]),
    )


def pods_matching(timeline: Timeline, step: StepRun, accept: PodPredicate) -> list[int]:
    """Sequence number of the first version of each pod on the node that satisfies ``accept``.

    Only the pods of the step count, or all pods if the recording does not name them.
    """
    affected = affected_pods(timeline, step)
    uids = timeline.pods if affected is None else [str(pod.get("uid")) for pod in affected.pods]
    found = []
    for uid in uids:
        versions = (
            version
            for version in timeline.pods.get(uid) or ()
            if step.begin <= version.t <= step.until and _is_on_node(version.object, step.node)
        )
        if first := next((version for version in versions if accept(version)), None):
            found.append(first.seq)
    return found


def _is_on_node(pod: Pod, node: str) -> bool:
    return bool(pod.spec and pod.spec.node_name == node)


def prove_pods(name: str, accept: PodPredicate, what: str) -> Proof:
    """Proven by a version of one of the step's pods, recorded after the step, that satisfies ``accept``."""

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        found = pods_matching(timeline, step, accept)
        affected = affected_pods(timeline, step)
        if found and affected:
            return ProofResult(ProofStatus.PROVEN, f"{len(found)} of {len(affected.pods)} pods {what}", tuple(found))
        return no_proof(f"no pod of the step was seen that {what}")

    return Proof(name, check)


def _check_refused(timeline: Timeline, step: StepRun) -> ProofResult:
    affected, refused = affected_pods(timeline, step), refusals(timeline, step)
    if affected and refused:
        because = f"it was refused ({refused[0]['status']}): {refused[0]['message']}"
        return ProofResult(ProofStatus.PROVEN, because, affected.seqs)
    return no_proof("no refusal was recorded")


def is_evicted(version: Version[Pod]) -> bool:
    """Whether the pod has the condition that the eviction API sets."""
    target = pod_condition(version.object, "DisruptionTarget")
    return bool(target and target.status == "True" and target.reason == "EvictionByEvictionAPI")


def is_terminating(version: Version[Pod]) -> bool:
    """Whether the pod has a deletion timestamp or is deleted."""
    return version.is_deleted or version.object.metadata.deletion_timestamp is not None


def is_disrupted(version: Version[Pod]) -> bool:
    """Whether the pod was evicted, as the eviction API marks it."""
    return is_evicted(version) or is_terminating(version)


def is_gone(version: Version[Pod]) -> bool:
    """Whether the pod is deleted from the API."""
    return version.is_deleted


def _check_accepted(timeline: Timeline, step: StepRun) -> ProofResult:
    affected = affected_pods(timeline, step)
    statuses = [pod.get("status") for pod in affected.pods] if affected else []
    if affected and statuses and all(isinstance(status, int) and 200 <= status < 300 for status in statuses):
        return ProofResult(ProofStatus.PROVEN, f"the API server accepted {len(statuses)} requests", affected.seqs)
    return no_proof("the API server was not seen to accept the requests")


ACCEPTED = Proof("accepted", _check_accepted)
REFUSED = Proof("refused", _check_refused)
