"""What the actions on single pods share: which pods, and what the timeline shows of each that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from chaos.model.action import Action, Proof, ProofResult, ProofStatus, StepRun, Target, Undo, UndoKind, UndoState
from chaos.model.command import Command, PodsCommand, PodSelector
from chaos.model.errors import Unsupported
from chaos.model.evidence import no_proof, returned_entries
from chaos.model.experiment import Model
from chaos.model.kube import Pod, pod_condition
from chaos.model.permission import Permission, permissions_on
from chaos.model.timeline import Timeline, Version

PodPredicate = Callable[[Version[Pod]], bool]


class PodParams(Model):
    """Which pods of the target node."""

    namespace: str = Field(description="a namespace, or workload: the one of the experiment's workload")
    name: str = Field("", description="this pod only")
    selector: str = Field("", description="pods with these labels, as app=web")

    @model_validator(mode="after")
    def _require_name_or_selector(self) -> Self:
        if not self.name and not self.selector:
            raise ValueError("say which pods: name or selector")
        return self


class GraceParams(PodParams):
    grace: int | None = Field(None, ge=0, description="seconds; the pod's own if left out")


def namespace_of(target: Target, given: str) -> str:
    """The namespace that is meant. Raises Unsupported."""
    if given != "workload":
        return given
    if not target.namespace:
        raise Unsupported("the experiment has no workload, so it has no namespace", hint="name a namespace")
    return target.namespace


def explicit_namespace(given: str) -> str:
    """ "" for that of the workload, whose name nobody knows before the run."""
    return "" if given == "workload" else given


# Resource and verb, by what is done to pods.
_PERMISSIONS = {
    "evict": ("pods/eviction", "create"),
    "delete": ("pods", "delete"),
    "remove-finalizers": ("pods", "patch"),
    "mark-disruption": ("pods/status", "patch"),
}


class PodAction(Action):
    """The pods are chosen when it is sent. Nobody can bring the same pod back: only its controller replaces it."""

    verb: str
    undo_kind = UndoKind.IRREVERSIBLE
    on_host = False

    def permissions(self, params: Any) -> tuple[Permission, ...]:
        resource, verb = _PERMISSIONS[self.verb]
        return permissions_on(resource, verb, namespace=explicit_namespace(params.namespace))

    def prepare(self, target: Target, params: Any) -> UndoState:
        namespace = namespace_of(target, params.namespace)
        return {**params.model_dump(), "node": target.node, "namespace": namespace}

    def inject(self, memory: UndoState) -> tuple[Command, ...]:
        choice = PodSelector(memory["node"], memory["namespace"], memory["name"], memory["selector"])
        return (PodsCommand(self.verb, choice, memory.get("grace")),)

    def undo(self, memory: UndoState) -> Undo:  # noqa: ARG002 - there is none
        return Undo()


class AffectedPods(NamedTuple):
    """What the step's "returned" lines tell of each pod."""

    pods: list[dict[str, Any]]
    seqs: tuple[int, ...]


def affected_pods(timeline: Timeline, step: StepRun) -> AffectedPods | None:
    """None where nothing was recorded of it, as in recordings of other tools."""
    lines = [line for line in returned_entries(timeline, step) if isinstance(line[1].evidence.get("pods"), list)]
    pods = [pod for _, record in lines for pod in record.evidence["pods"] if isinstance(pod, dict)]
    return AffectedPods(pods, tuple(entry.seq for entry, _ in lines)) if lines else None


def refusals(timeline: Timeline, step: StepRun) -> list[dict[str, Any]]:
    """In order of time."""
    asked = affected_pods(timeline, step)
    return sorted(
        (refusal for pod in (asked.pods if asked else ()) for refusal in pod.get("refusals") or ()),
        key=lambda refusal: float(refusal["t"]),
    )


def pods_matching(timeline: Timeline, step: StepRun, accept: PodPredicate) -> list[int]:
    """Sequence numbers of the first line of each pod of the node that shows it: those asked for, else any."""
    asked = affected_pods(timeline, step)
    uids = timeline.pods if asked is None else [str(pod.get("uid")) for pod in asked.pods]
    shown = []
    for uid in uids:
        history = timeline.pods.get(uid)
        seen = (v for v in history or () if step.begin <= v.t <= step.until and _is_on_node(v.object, step.node))
        version = next((v for v in seen if accept(v)), None)
        if version:
            shown.append(version.seq)
    return shown


def _is_on_node(pod: Pod, node: str) -> bool:
    return bool(pod.spec and pod.spec.node_name == node)


def prove_pods(name: str, accept: PodPredicate, what: str) -> Proof:
    """Proven by a version of one of the pods asked for, seen after the step, that ``accept`` likes."""

    def check(timeline: Timeline, step: StepRun) -> ProofResult:
        shown = pods_matching(timeline, step, accept)
        asked = affected_pods(timeline, step)
        if shown and asked:
            return ProofResult(ProofStatus.PROVEN, f"{len(shown)} of {len(asked.pods)} pods {what}", tuple(shown))
        return no_proof(f"no pod of the step was seen that {what}")

    return Proof(name, check)


def _check_refused(timeline: Timeline, step: StepRun) -> ProofResult:
    asked, said = affected_pods(timeline, step), refusals(timeline, step)
    if asked and said:
        return ProofResult(
            ProofStatus.PROVEN, f"it was refused ({said[0]['status']}): {said[0]['message']}", asked.seqs
        )
    return no_proof("no refusal was recorded")


def is_evicted(version: Version[Pod]) -> bool:
    target = pod_condition(version.object, "DisruptionTarget")
    return bool(target and target.status == "True" and target.reason == "EvictionByEvictionAPI")


def is_terminating(version: Version[Pod]) -> bool:
    return version.is_deleted or version.object.metadata.deletion_timestamp is not None


def is_gone(version: Version[Pod]) -> bool:
    return version.is_deleted


REFUSED = Proof("refused", _check_refused)
