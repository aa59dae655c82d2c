"""What the actions on single pods share: which pods, and what the timeline shows of each that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator

from chaos.model.action import Action, Finding, Memory, Proof, Shown, StepRun, Target, Undo, UndoKind
from chaos.model.command import Command, PodChoice, PodsCommand
from chaos.model.errors import Unsupported
from chaos.model.evidence import not_shown, returned_lines
from chaos.model.experiment import Model
from chaos.model.kube import Pod, pod_condition
from chaos.model.right import Right, rights_to
from chaos.model.timeline import Timeline, Version

Accept = Callable[[Version[Pod]], bool]


class PodParams(Model):
    """Which pods of the target node."""

    namespace: str = Field(description="a namespace, or workload: the one of the experiment's workload")
    name: str = Field("", description="this pod only")
    selector: str = Field("", description="pods with these labels, as app=web")

    @model_validator(mode="after")
    def _chosen(self) -> Self:
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


def known_namespace(given: str) -> str:
    """ "" for that of the workload, whose name nobody knows before the run."""
    return "" if given == "workload" else given


# Resource and verb, by what is done to pods.
_RIGHTS = {
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

    def rights(self, params: Any) -> tuple[Right, ...]:
        resource, verb = _RIGHTS[self.verb]
        return rights_to(resource, verb, namespace=known_namespace(params.namespace))

    def prepare(self, target: Target, params: Any) -> Memory:
        namespace = namespace_of(target, params.namespace)
        return {**params.model_dump(), "node": target.node, "namespace": namespace}

    def inject(self, memory: Memory) -> tuple[Command, ...]:
        choice = PodChoice(memory["node"], memory["namespace"], memory["name"], memory["selector"])
        return (PodsCommand(self.verb, choice, memory.get("grace")),)

    def undo(self, memory: Memory) -> Undo:  # noqa: ARG002 - there is none
        return Undo()


class Touched(NamedTuple):
    """What the step's "returned" lines tell of each pod."""

    pods: list[dict[str, Any]]
    seqs: tuple[int, ...]


def touched(timeline: Timeline, step: StepRun) -> Touched | None:
    """None where nothing was recorded of it, as in recordings of other tools."""
    lines = [line for line in returned_lines(timeline, step) if isinstance(line[1].evidence.get("pods"), list)]
    pods = [pod for _, record in lines for pod in record.evidence["pods"] if isinstance(pod, dict)]
    return Touched(pods, tuple(entry.seq for entry, _ in lines)) if lines else None


def refusals(timeline: Timeline, step: StepRun) -> list[dict[str, Any]]:
    """In order of time."""
    asked = touched(timeline, step)
    return sorted(
        (refusal for pod in (asked.pods if asked else ()) for refusal in pod.get("refusals") or ()),
        key=lambda refusal: float(refusal["t"]),
    )


def shown_pods(timeline: Timeline, step: StepRun, accept: Accept) -> list[int]:
    """Sequence numbers of the first line of each pod of the node that shows it: those asked for, else any."""
    asked = touched(timeline, step)
    uids = timeline.pods if asked is None else [str(pod.get("uid")) for pod in asked.pods]
    shown = []
    for uid in uids:
        history = timeline.pods.get(uid)
        seen = (v for v in history or () if step.begin <= v.t <= step.until and _on(v.object, step.node))
        version = next((v for v in seen if accept(v)), None)
        if version:
            shown.append(version.seq)
    return shown


def _on(pod: Pod, node: str) -> bool:
    return bool(pod.spec and pod.spec.node_name == node)


def pods_show(name: str, accept: Accept, what: str) -> Proof:
    """Proven by a version of one of the pods asked for, seen after the step, that ``accept`` likes."""

    def check(timeline: Timeline, step: StepRun) -> Finding:
        shown = shown_pods(timeline, step, accept)
        asked = touched(timeline, step)
        if shown and asked:
            return Finding(Shown.PROVEN, f"{len(shown)} of {len(asked.pods)} pods {what}", tuple(shown))
        return not_shown(f"no pod of the step was seen that {what}")

    return Proof(name, check)


def _refused(timeline: Timeline, step: StepRun) -> Finding:
    asked, said = touched(timeline, step), refusals(timeline, step)
    if asked and said:
        return Finding(Shown.PROVEN, f"it was refused ({said[0]['status']}): {said[0]['message']}", asked.seqs)
    return not_shown("no refusal was recorded")


def is_evicted(version: Version[Pod]) -> bool:
    target = pod_condition(version.object, "DisruptionTarget")
    return bool(target and target.status == "True" and target.reason == "EvictionByEvictionAPI")


def is_ended(version: Version[Pod]) -> bool:
    return version.gone or version.object.metadata.deletion_timestamp is not None


def is_gone(version: Version[Pod]) -> bool:
    return version.gone


REFUSED = Proof("refused", _refused)
