"""Selection of the pods that an assertion is about, the set of them at a moment, and whether a pod matches a filter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from chaos.core.assertion import Undecidable, View
from chaos.core.field_types import Flag, Model
from chaos.core.json_schema import AlsoAccepts
from chaos.core.kube import ContainerStatus, Pod, controller_of, is_finished, is_owned_by, is_static, phase
from chaos.core.signal import Sample, Signal
from chaos.core.target_spec import OWNER
from chaos.core.timeline import History, Version
from chaos.verdicts.judge.membership import membership, require_complete
from chaos.verdicts.judge.pods import container_statuses, disruption, finished_versions, is_ready, node_of
from chaos.verdicts.judge.signals import Observation, Pattern, from_history, mask_unseen_pods, matches, version_sample

Kind = Literal["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"]
Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
Phases = Annotated[
    list[Phase],
    BeforeValidator(lambda v: v if isinstance(v, list) else [v]),
    Field(min_length=1),
    AlsoAccepts({"enum": list(get_args(Phase))}),
]


class Owner(Model):
    """Controller of pods."""

    kind: Kind
    name: str


def _kind_and_name(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(OWNER, value):
        kind, _, name = value.partition("/")
        return {"kind": kind, "name": name}
    return value


OwnerOrText = Annotated[Owner, BeforeValidator(_kind_and_name), AlsoAccepts({"type": "string", "pattern": OWNER})]


class PodSetParams(Model):
    """Parameters of an assertion about a set of pods; all conditions must match."""

    node: str | None = Field(None, description="A target, or all.")
    namespace: str | None = Field(None, description="A namespace, or workload.")
    labels: dict[str, str] | None = None
    owner: OwnerOrText | None = Field(None, description="The controller of the pods, also as Kind/name.")
    at: str | None = Field(None, description="The step at which the set is frozen. By default, the start of judging.")
    except_: list[Literal["daemonset", "finished", "static", "terminating"]] = Field([], alias="except")


class Selection:
    """Selected pods of one timeline."""

    def __init__(self, params: PodSetParams, view: View) -> None:
        self.params, self.view = params, view
        self.nodes = None if params.node in (None, "all") else frozenset(view.nodes(params.node or ""))
        self.namespace = view.namespace(params.namespace) if params.namespace else None

    @property
    def empty_reason(self) -> str:
        """Reason for an empty set."""
        where = f" on {self.params.node}" if self.params.node else ""
        return f"no such pod existed{where} at {self.params.at or 'the beginning'}"

    def includes(self, pod: Pod) -> bool:
        """Whether the pod belongs to the set in its current state."""
        params, labels = self.params, pod.metadata.labels or {}
        return (
            (node_of(pod) in self.nodes if self.nodes is not None else params.node is None or node_of(pod) != "")
            and self.namespace in (None, pod.metadata.namespace)
            and all(labels.get(k) == v for k, v in (params.labels or {}).items())
            and (params.owner is None or is_owned_by(pod, params.owner.kind, params.owner.name))
            and not any(_is_excepted(pod, kind) for kind in params.except_)
        )

    @property
    def moment(self) -> float:
        """Moment at which the set is frozen. Raises Undecidable."""
        return self.view.moment(self.params.at) if self.params.at else self.view.anchor

    def freeze(self) -> dict[History[Pod], bool]:
        """The pods that belong to the set at the moment, and whether that is certain: some may be in it.

        Raises Undecidable if that was not observed.
        """
        moment, timeline = self.moment, self.view.timeline
        for blind in timeline.blind_windows_in(["pods"], moment, moment):
            raise Undecidable(f"the pods at {self._moment_text} are unknown: {blind.reason}")
        require_complete(self.view, "pods", moment, self._moment_text)
        found = ((h, membership(h, moment, lambda version: self.includes(version.object))) for h in self.candidates())
        return {history: member is True for history, member in found if member is not False}

    def candidates(self) -> list[History[Pod]]:
        """All pods that can be in the set at some time."""
        pods = self.view.timeline.pods
        if self.nodes is not None:
            return pods.maybe_on_nodes(self.nodes)
        return list(pods.values()) if self.namespace is None else pods.in_namespace(self.namespace)

    def is_candidate(self, uid: str) -> bool:
        """Whether the pod may ever belong to the set."""
        pods = self.view.timeline.pods
        if self.nodes is not None:
            return pods.was_maybe_on(uid, self.nodes)
        return self.namespace is None or pods.was_in(uid, self.namespace)

    @property
    def _moment_text(self) -> str:
        return self.params.at or "the beginning"


def _is_excepted(pod: Pod, kind: str) -> bool:
    if kind == "daemonset":
        owner = controller_of(pod)
        return owner is not None and owner.kind == "DaemonSet"
    if kind == "finished":
        return is_finished(pod)
    if kind == "static":
        return is_static(pod)
    return pod.metadata.deletion_timestamp is not None


class Filter(Model):
    """Conditions on a pod; all that are given must match."""

    phase: Phases | None = None
    reason: str | None = Field(None, description="The exact value of status.reason. Empty means no reason.")
    message: Pattern | None = None
    disruption: str | None = Field(None, description="The reason of DisruptionTarget, any or none.")
    ready: Flag | None = None
    deleting: Flag | None = None
    gone: Flag | None = None
    scheduled: Flag | None = Field(None, description="Whether the pod is bound to a node.")
    waiting: str | None = Field(None, description="The reason for which a container is waiting.")
    exit_code: int | None = Field(None, alias="exit-code", description="The exit code with which a container ended.")
    restarts_at_least: int | None = Field(None, alias="restarts-at-least", ge=0)
    restarts_at_most: int | None = Field(None, alias="restarts-at-most", ge=0)

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one condition on pods")
        return self


class Count(Filter):
    """A filter, and the number of pods that must match."""

    SOME_OF = ("least", "most")

    least: int = Field(0, ge=0)
    most: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.most is not None and self.most < self.least:
            raise ValueError(f"most {self.most} is less than least {self.least}")
        return self

    def format_range(self) -> str:
        """Format the number of pods."""
        if self.most is None:
            return f"at least {self.least}"
        if self.least == self.most:
            return f"exactly {self.most}"
        return f"at most {self.most}" if not self.least else f"{self.least} to {self.most}"


def _mismatches(version: Version[Pod], end: Version[Pod] | None, pod_filter: Filter) -> Iterator[bool]:
    """For each condition of the filter, whether the pod does not meet it."""
    pod = version.object
    status = pod.status
    if pod_filter.phase is not None:
        yield phase(pod) not in pod_filter.phase
    if pod_filter.reason is not None:
        yield ((status.reason if status else None) or "") != pod_filter.reason
    if pod_filter.message is not None:
        yield not matches(pod_filter.message, status.message if status else None)
    if pod_filter.disruption is not None:
        found = disruption((end or version).object)
        yield not found if pod_filter.disruption == "any" else (found or "none") != pod_filter.disruption
    if pod_filter.ready is not None:
        yield pod_filter.ready is not (not version.is_deleted and is_ready(pod))
    if pod_filter.deleting is not None:
        yield pod_filter.deleting is not (version.is_deleted or pod.metadata.deletion_timestamp is not None)
    if pod_filter.gone is not None:
        yield pod_filter.gone is not version.is_deleted
    if pod_filter.scheduled is not None:
        yield pod_filter.scheduled is not bool(node_of(pod))
    yield from _container_mismatches(container_statuses(pod), pod_filter)


def _container_mismatches(statuses: Sequence[ContainerStatus], pod_filter: Filter) -> Iterator[bool]:
    if pod_filter.waiting is not None:
        yield all(not s.state or not s.state.waiting or s.state.waiting.reason != pod_filter.waiting for s in statuses)
    if pod_filter.exit_code is not None:
        ends = (s.state.terminated for s in statuses if s.state and s.state.terminated)
        yield all(end.exit_code != pod_filter.exit_code for end in ends)
    restarts = sum(s.restart_count or 0 for s in statuses)
    if pod_filter.restarts_at_least is not None:
        yield restarts < pod_filter.restarts_at_least
    if pod_filter.restarts_at_most is not None:
        yield restarts > pod_filter.restarts_at_most


def _describe_pod(version: Version[Pod], end: Version[Pod] | None, pod_filter: Filter) -> str:
    """The state of a pod: its phase and deletion, and whatever the filter asks about."""
    pod = version.object
    reason = f" ({pod.status.reason})" if pod.status and pod.status.reason else ""
    parts = [f"{phase(pod) or 'no phase'}{reason}"]
    if pod_filter.ready is not None and not version.is_deleted:
        parts.append("ready" if is_ready(pod) else "not ready")
    if pod_filter.disruption is not None:
        target = disruption((end or version).object)
        parts.append(f"DisruptionTarget {target}" if target else "no DisruptionTarget")
    if pod_filter.scheduled is not None:
        parts.append(f"on {node_of(pod)}" if node_of(pod) else "not bound to a node")
    if pod_filter.message is not None:
        parts.append(f"message {pod.status.message!r}" if pod.status and pod.status.message else "no message")
    parts += _describe_containers(container_statuses(pod), pod_filter)
    parts.append("deleted" if version.is_deleted else "being deleted" if pod.metadata.deletion_timestamp else "")
    return ", ".join(part for part in parts if part)


def _describe_containers(statuses: Sequence[ContainerStatus], pod_filter: Filter) -> Iterator[str]:
    if pod_filter.waiting is not None:
        reasons = [s.state.waiting.reason for s in statuses if s.state and s.state.waiting]
        yield f"waiting: {', '.join(reason or 'no reason' for reason in reasons)}" if reasons else "not waiting"
    if pod_filter.exit_code is not None:
        codes = [str(s.state.terminated.exit_code) for s in statuses if s.state and s.state.terminated]
        yield f"exit code {', '.join(codes)}" if codes else "no container ended"
    if pod_filter.restarts_at_least is not None or pod_filter.restarts_at_most is not None:
        restarts = sum(s.restart_count or 0 for s in statuses)
        yield "1 restart" if restarts == 1 else f"{restarts} restarts"


def pod_signal(
    history: Iterable[Version[Pod]], pod_filter: Filter, selection: Selection | None, *, leaves: bool = False
) -> Signal:
    """Signal of whether the pod matches the filter and, with ``selection``, currently belongs to the set.

    ``leaves``: a deleted pod belongs to it no longer.
    """
    ends = finished_versions(history)
    only_deletion = pod_filter.model_fields_set == {"gone"}

    def observe(version: Version[Pod]) -> Observation:
        end = ends.get(version.seq)
        if leaves and version.is_deleted:
            return False, f"gone; {_describe_pod(version, end, pod_filter)}"
        if selection is not None and not selection.includes(version.object):
            return False, f"not in the set; {_describe_pod(version, end, pod_filter)}"
        return not any(_mismatches(version, end, pod_filter)), _describe_pod(version, end, pod_filter)

    if only_deletion and not leaves:  # certain even if the final state is unknown
        samples = (
            version_sample(v, v.is_deleted is pod_filter.gone, _describe_pod(v, None, pod_filter)) for v in history
        )
        return Signal(tuple(samples))
    signal = from_history(history, observe)
    return Signal((Sample(float("-inf"), False, None, "does not exist"), *signal.samples)) if selection else signal


def unseen_pod(view: View) -> Signal:
    """Signal of a pod that may exist, or have come and gone, without having been observed. Raises Undecidable."""
    no_pod = Signal((Sample(float("-inf"), False, None, "no matching pod was observed"),))
    return mask_unseen_pods(no_pod, view.timeline)
