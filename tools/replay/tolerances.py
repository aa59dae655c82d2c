"""Tolerances of transition times: the windows in docs/kubernetes-facts.md, per mechanism. Pure; times in seconds."""

from __future__ import annotations

from chaos.lab.recorded.recording import Recording
from chaos.lab.spec import ControllerSpec
from tools.replay.states import AttachmentState, NodeState, PodState, StateHistory

_RENEW = 10.4  # period of Lease renewals and status syncs: 10 to 10.4 s (facts 5.1)
_RUNTIME = 5.0  # period of the kubelet's container runtime checks (facts 5.1)
_START = 2.0  # from schedulable to running
_STATUS = 10.0  # period of the status manager: the longest upload delay (facts 1.6, 5.3)
_SHUTDOWN = 3.0  # end of a bucket's containers to the terminal phase: 1 to 3 s (facts 13)
_TOKEN = 0.1  # poll interval of the NoExecute queue (facts 5.2)
_COLLECTOR = 20.0  # period of pod GC (facts 6)
_ORPHANS = 40.0  # pods of a deleted Node are deleted after 40 to 80 s (facts 11)
_EVICTION_REASON = "EvictionByEvictionAPI"
_RETRY = 7.5  # kubectl drain retries after 5 s (facts 8.3), the API server after 0.5 s; plus 2 s for the replacement
_SIMULTANEOUS = 0.3
_LATE_RETURN = ("heal", "kubelet-thaw")  # the kubelet keeps running: its reconnect and next sync are not immediate
_CONDITION_TAINTS = ("node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute")


class Tolerances:
    """Tolerances of the transitions of one side: of the recording or of the lab.

    Ready becomes Unknown in [G - 1.04 R, G + 2 M] after the loss (facts 5.2). The lab repeats recorded renewals, which
    leaves 2 M: either of two passes may see the last renewal, and either of two passes may find it expired.
    """

    def __init__(self, histories: dict[str, StateHistory], settings: ControllerSpec, recording: Recording) -> None:
        self._histories, self._settings, self._operations = histories, settings, recording.operations
        leases = recording.observations["leases"]
        self._unknown_width = (0.0 if leases else _RENEW) + 2 * settings.node_monitor_period
        self._widths: dict[str, float] = {}

    def width(self, history: StateHistory, index: int) -> float:
        """Width of the window of a transition; 0 if deterministic. A replacement inherits the width of the loss."""
        before = history.transitions[index - 1].state if index else None
        transition = history.transitions[index]
        if isinstance(transition.state, NodeState):
            return self._node_change_width(history, index)
        if isinstance(transition.state, AttachmentState):
            return self._attachment_width(history, transition.t)
        if not isinstance(transition.state, PodState):
            return 0.0
        width = self._pod_width(before, transition.state, history.node, transition.t)
        width = max(width, self._inherited_width(history))
        return max(width, self._queue_width(history)) if transition.state.disruption == _EVICTION_REASON else width

    def _inherited_width(self, history: StateHistory) -> float:
        if history.key not in self._widths:
            lost = self._histories.get(history.replaced_key)
            self._widths[history.key] = 0.0  # ends the recursion where a name is used again
            if lost is not None:
                widths = [self.width(lost, index) for index, _ in enumerate(lost.transitions)]
                self._widths[history.key] = max(widths, default=0.0)
        return self._widths[history.key]

    def _queue_width(self, history: StateHistory) -> float:
        """Width for evictions that a budget permits one at a time: each is retried every 5 s, possibly more than once.

        Facts 8.1 and 8.3; recording 08: of two refused evictions, one succeeded after 0.5 s, the other after 5 s.
        """
        time, group = _eviction_time(history), (history.owner, history.node)
        others = [other for other in self._histories.values() if (other.owner, other.node) == group]
        return _RETRY * sum(_eviction_time(other) < time - _SIMULTANEOUS for other in others)

    def _node_change_width(self, history: StateHistory, index: int) -> float:
        """Width of a node's transition; consequences of a change of Ready, such as taints, add the width of that."""
        states, node = [item.state for item in history.transitions], history.node
        width = self._node_width(
            states[index - 1] if index else None, states[index], node, history.transitions[index].t
        )
        first = index
        while first > 0 and _ready_status(states[first - 1]) == _ready_status(states[first]):
            first -= 1
        if first in (0, index):
            return width
        return width + self._node_width(states[first - 1], states[first], node, history.transitions[first].t)

    def _node_width(self, before: object, state: object, node: str, t: float) -> float:
        if not isinstance(before, NodeState) or not isinstance(state, NodeState):
            return 0.0
        if state.ready == "Unknown":
            return self._unknown_width
        if state.ready == before.ready:
            # the next pass adds and removes NoExecute taints; the next sync reports an older runtime error
            same = state.message == before.message
            return self._settings.node_monitor_period + _TOKEN if same else _RENEW + _RUNTIME
        runtime = _RUNTIME if "runtime" in before.message + state.message or "PLEG" in state.message else 0.0
        if state.ready == "False":
            return runtime + _RENEW if runtime else 0.0
        late = before.reason == "KubeletNotReady" or self._cause(t, node) in _LATE_RETURN
        return _RENEW + runtime if late else 0.0  # at the next status sync (facts 2)

    def _cause(self, t: float, node: str) -> str:
        earlier = [item.action for item in self._operations if item.t <= t and item.node in ("", node)]
        return earlier[-1] if earlier else ""

    def _pod_width(self, before: object, state: PodState, node: str, t: float) -> float:
        if state.reason == "NodeShutdown":
            return _STATUS  # the upload of a rejection and its consequences (facts 1.6; recording 27)
        by_taint = state.disruption == "DeletionByTaintManager"
        width = self._loss_width(node, t, by_taint)
        if state.disruption == "TerminationByKubelet":
            width = max(width, _SHUTDOWN)
        if state.disruption == "DeletionByPodGC":
            width = max(width, _ORPHANS)
        elif state.deleting and state.phase == "Failed" and not self._is_ready(node, t):
            width = max(width, _COLLECTOR)
        if isinstance(before, PodState) and before.phase == "Pending":
            width = max(width, self._pass_width(t))
        recovered = isinstance(before, PodState) and before.phase == state.phase == "Running" and state.ready == "True"
        return max(width, _STATUS) if recovered else width

    def _loss_width(self, node: str, t: float, by_taint: bool) -> float:
        """Width inherited from the node: of Unknown for pods of a lost node, of the taint for evictions by taint.

        Facts 5.3, 5.6.
        """
        widths, is_lost = [0.0], False
        for before, index in self._transitions(node, t):
            state = self._histories[f"node {node}"].transitions[index].state
            if not isinstance(state, NodeState):
                continue
            if state.ready == "True" and not state.taints.intersection(_CONDITION_TAINTS) and t > before + _START:
                widths, is_lost = [0.0], False
            is_lost = is_lost or state.ready == "Unknown"
            widths.append(self.width(self._histories[f"node {node}"], index))
        return max(widths) if is_lost or by_taint else 0.0

    def _attachment_width(self, history: StateHistory, t: float) -> float:
        """Width of a detach, which waits for the next status of the kubelet and the end of the pod, or of an attach.

        An attach follows the detach from the node before, and inherits the width of its loss. Facts 7.
        """
        others = [other for other in self._histories.values() if other.owner == history.owner]
        nodes = {other.node for other in others if isinstance(other.transitions[0].state, AttachmentState)}
        return max(_RENEW, *(self._loss_width(node, t, by_taint=True) for node in nodes))

    def _transitions(self, node: str, t: float) -> list[tuple[float, int]]:
        history = self._histories.get(f"node {node}")
        transitions = history.transitions if history else []
        return [(transition.t, index) for index, transition in enumerate(transitions) if transition.t <= t + _START]

    def _is_ready(self, node: str, t: float) -> bool:
        history = self._histories.get(f"node {node}")
        states = [transition.state for transition in history.transitions if transition.t <= t] if history else []
        return bool(states) and isinstance(states[-1], NodeState) and states[-1].ready == "True"

    def _pass_width(self, t: float) -> float:
        """Width of a node's transition just before ``t``, as of the pass that removed a taint (facts 5.4)."""
        widths = [
            self._node_change_width(history, index)
            for history in self._histories.values()
            for index, transition in enumerate(history.transitions)
            if 0 <= t - transition.t <= _START and isinstance(transition.state, NodeState)
        ]
        return max(widths, default=0.0)


def _eviction_time(history: StateHistory) -> float:
    states = [(transition.t, transition.state) for transition in history.transitions]
    return next(
        (t for t, state in states if isinstance(state, PodState) and state.disruption == _EVICTION_REASON), float("inf")
    )


def _ready_status(state: object) -> str:
    return state.ready if isinstance(state, NodeState) else ""
