"""How late a state may come: the windows that the facts page gives where a mechanism has one. Pure."""

from __future__ import annotations

from chaos.lab.replay.recording import Recording
from chaos.lab.replay.states import NodeState, PodState, StateHistory
from chaos.lab.spec import ControllerSpec

_RENEW = 10.4  # a Lease is renewed, and a status synced, every 10 to 10.4 s (facts 5.1)
_RUNTIME = 5.0  # the kubelet looks for the container runtime so often (facts 5.1)
_START = 2.0  # a pod that can be scheduled runs within so many seconds
_STATUS = 10.0  # the status manager's period, the worst case of an upload (facts 1.6, 5.3)
_TOKEN = 0.1  # the NoExecute queue is looked at so often (facts 5.2)
_COLLECTOR = 20.0  # pod GC's loop (facts 6)
_ORPHANS = 40.0  # pods of a Node that was deleted go 40 to 80 s later (facts 11)
_EVICTION_REASON = "EvictionByEvictionAPI"
_RETRY = 7.5  # kubectl drain tries again after 5 s (facts 8.3), the API server after 0.5; and 2 s for the replacement
_SIMULTANEOUS = 0.3
_LATE_RETURN = ("heal", "kubelet-thaw")  # the kubelet lives on: it dials and syncs in its own time
_CONDITION_TAINTS = ("node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/unreachable:NoExecute")


class Tolerances:
    """Of one history: the recorded one or the lab's.

    Unknown comes in [G - 1.04 R, G + 2 M] after the loss (facts 5.2). Where the renewals were recorded the lab has
    them too, and only the two periods are left: a Lease is seen by one pass or by the next, and found old likewise.
    """

    def __init__(self, tracks: dict[str, StateHistory], settings: ControllerSpec, recording: Recording) -> None:
        self._histories, self._settings, self._operations = tracks, settings, recording.operations
        renewed = recording.observations["leases"]
        self._unknown_width = (0.0 if renewed else _RENEW) + 2 * settings.node_monitor_period
        self._widths: dict[str, float] = {}

    def width(self, track: StateHistory, index: int) -> float:
        """Of the window of the track's moment; 0 for what is deterministic. A replacement is as late as the loss."""
        before = track.transitions[index - 1].state if index else None
        moment = track.transitions[index]
        if isinstance(moment.state, NodeState):
            return self._node_change_width(track, index)
        width = max(self._pod_width(before, moment.state, track.node, moment.t), self._inherited_width(track))
        return max(width, self._queue_width(track)) if moment.state.disruption == _EVICTION_REASON else width

    def _inherited_width(self, track: StateHistory) -> float:
        if track.key not in self._widths:
            lost = self._histories.get(track.replaced_key)
            self._widths[track.key] = 0.0  # a name that comes again cannot wait for itself
            if lost is not None:
                own = [self.width(lost, index) for index, _ in enumerate(lost.transitions)]
                self._widths[track.key] = max(own, default=0.0)
        return self._widths[track.key]

    def _queue_width(self, track: StateHistory) -> float:
        """Evictions that a budget lets through one by one: each is tried again every 5 s, and may miss its turn.

        Facts 8.1 and 8.3; recording 08: of two that were refused, one came half a second later, one five.
        """
        mine = _eviction_time(track)
        others = [other for other in self._histories.values() if (other.owner, other.node) == (track.owner, track.node)]
        return _RETRY * sum(_eviction_time(other) < mine - _SIMULTANEOUS for other in others)

    def _node_change_width(self, track: StateHistory, index: int) -> float:
        """What follows a change of Ready, as its taints do, is as late as that and its own pass."""
        own = [item.state for item in track.transitions]
        width = self._node_width(own[index - 1] if index else None, own[index], track.node, track.transitions[index].t)
        began = index
        while began > 0 and _ready_status(own[began - 1]) == _ready_status(own[began]):
            began -= 1
        if began in (0, index):
            return width
        return width + self._node_width(own[began - 1], own[began], track.node, track.transitions[began].t)

    def _node_width(self, before: object, state: object, node: str, t: float) -> float:
        if not isinstance(before, NodeState) or not isinstance(state, NodeState):
            return 0.0
        if state.ready == "Unknown":
            return self._unknown_width
        if state.ready == before.ready:
            # NoExecute comes and goes with the next pass; an older runtime error is told at the next sync
            same = state.message == before.message
            return self._settings.node_monitor_period + _TOKEN if same else _RENEW + _RUNTIME
        runtime = _RUNTIME if "runtime" in before.message + state.message or "PLEG" in state.message else 0.0
        if state.ready == "False":
            return runtime + _RENEW if runtime else 0.0
        late = before.reason == "KubeletNotReady" or self._cause(t, node) in _LATE_RETURN
        return _RENEW + runtime if late else 0.0  # the next status sync (facts 2)

    def _cause(self, t: float, node: str) -> str:
        done = [deed.action for deed in self._operations if deed.t <= t and deed.node in ("", node)]
        return done[-1] if done else ""

    def _pod_width(self, before: object, state: PodState, node: str, t: float) -> float:
        if state.reason == "NodeShutdown":
            return _STATUS  # the upload of a rejection, and what follows it (facts 1.6; recording 27)
        by_taint = state.disruption == "DeletionByTaintManager"
        width = self._loss_width(node, t, by_taint)
        if state.disruption == "DeletionByPodGC":
            width = max(width, _ORPHANS)
        elif state.deleting and state.phase == "Failed" and not self._is_ready(node, t):
            width = max(width, _COLLECTOR)
        if isinstance(before, PodState) and before.phase == "Pending":
            width = max(width, self._pass_width(t))
        back = isinstance(before, PodState) and before.phase == state.phase == "Running" and state.ready == "True"
        return max(width, _STATUS) if back else width

    def _loss_width(self, node: str, t: float, by_taint: bool) -> float:
        """What happens to pods of a silent node is as late as Unknown was; evictions by a condition as its taint.

        Facts 5.3, 5.6.
        """
        widths, silent = [0.0], False
        for before, index in self._transitions(node, t):
            state = self._histories[f"node {node}"].transitions[index].state
            if not isinstance(state, NodeState):
                continue
            if state.ready == "True" and not state.taints.intersection(_CONDITION_TAINTS) and t > before + _START:
                widths, silent = [0.0], False
            silent = silent or state.ready == "Unknown"
            widths.append(self.width(self._histories[f"node {node}"], index))
        return max(widths) if silent or by_taint else 0.0

    def _transitions(self, node: str, t: float) -> list[tuple[float, int]]:
        track = self._histories.get(f"node {node}")
        moments = track.transitions if track else []
        return [(moment.t, index) for index, moment in enumerate(moments) if moment.t <= t + _START]

    def _is_ready(self, node: str, t: float) -> bool:
        track = self._histories.get(f"node {node}")
        states = [moment.state for moment in track.transitions if moment.t <= t] if track else []
        return bool(states) and isinstance(states[-1], NodeState) and states[-1].ready == "True"

    def _pass_width(self, t: float) -> float:
        """A pod that waited for a node's taint to go is as late as the pass that took it (facts 5.4)."""
        widths = [
            self._node_change_width(track, index)
            for track in self._histories.values()
            for index, moment in enumerate(track.transitions)
            if 0 <= t - moment.t <= _START and isinstance(moment.state, NodeState)
        ]
        return max(widths, default=0.0)


def _eviction_time(track: StateHistory) -> float:
    states = [(moment.t, moment.state) for moment in track.transitions]
    return next(
        (t for t, state in states if isinstance(state, PodState) and state.disruption == _EVICTION_REASON), float("inf")
    )


def _ready_status(state: object) -> str:
    return state.ready if isinstance(state, NodeState) else ""
