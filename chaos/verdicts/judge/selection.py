"""Selection of the pods that an assertion is about, and the set of them at a moment."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from chaos.core.assertion import Undecidable, View
from chaos.core.field_types import Model
from chaos.core.kube import Pod, controller_of, is_finished, is_static
from chaos.core.timeline import History
from chaos.verdicts.judge.membership import is_member, require_complete
from chaos.verdicts.judge.pods import is_owned_by, node_of

Kind = Literal["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"]


class Owner(Model):
    """Controller of pods."""

    kind: Kind
    name: str


class PodSetParams(Model):
    """Parameters of an assertion about a set of pods; all conditions must match."""

    node: str | None = Field(None, description="a target, a node's name, or all")
    namespace: str | None = Field(None, description="a namespace, or workload")
    labels: dict[str, str] | None = None
    owner: Owner | None = None
    at: str | None = Field(None, description="the step at which the set is frozen; default: when judging starts")
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

    def freeze(self) -> list[History[Pod]]:
        """Return the pods that belong to the set at the moment. Raises Undecidable if that was not observed."""
        moment, timeline = self.moment, self.view.timeline
        for blind in timeline.blind_windows_in(["pods"], moment, moment):
            raise Undecidable(f"the pods at {self._moment_text} are unknown: {blind.reason}")
        require_complete(self.view, "pods", moment, self._moment_text)
        return [history for history in self.candidates() if self._is_in_set(history, moment)]

    def candidates(self) -> list[History[Pod]]:
        """All pods that may ever belong to the set."""
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

    def _is_in_set(self, history: History[Pod], moment: float) -> bool:
        return is_member(history, moment, "pods", lambda version: self.includes(version.object), self._moment_text)


def _is_excepted(pod: Pod, kind: str) -> bool:
    if kind == "daemonset":
        owner = controller_of(pod)
        return owner is not None and owner.kind == "DaemonSet"
    if kind == "finished":
        return is_finished(pod)
    if kind == "static":
        return is_static(pod)
    return pod.metadata.deletion_timestamp is not None
