"""Two histories compared, state by state: what was recorded against what the lab did. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from chaos.lab.replay.recording import Deed, Recording, Seen
from chaos.lab.replay.states import Moment, NodeState, PodState, Track, node_tracks, pod_tracks
from chaos.lab.spec import ControllerSpec

_LEAST, _SHARE = 2.0, 0.1  # deterministic mechanisms: within the greater of 2 s and 10 %
_RENEW = 10.4  # a Lease is renewed, and a status synced, every 10 to 10.4 s (facts 5.1)
_START = 2.0  # a pod that can be scheduled runs within so many seconds
_STATUS = 10.0  # the status manager's period, the worst case of an upload (facts 1.6)
_TOKEN = 0.1  # the NoExecute queue is looked at so often (facts 5.2)


@dataclass(frozen=True, slots=True)
class Difference:
    """``t``: seconds after the first action, of the recording or, for what the lab added, of the lab."""

    subject: str
    t: float
    text: str


@dataclass
class Result:
    """``matched`` of ``total`` recorded states were there, and nothing else was if there are no differences.

    ``seed``: of the lab that came nearest.
    """

    total: int
    matched: int = 0
    differences: list[Difference] = field(default_factory=list)
    seed: int = 0

    @property
    def same(self) -> bool:
        """Whether every recorded state matched and the lab did nothing else."""
        return self.matched == self.total and not self.differences


def count(recording: Recording) -> int:
    """How many states there are to match: from the recording alone."""
    return sum(len(track.merged()) for track in _tracks(recording.seen).values())


def compare(recording: Recording, seen: dict[str, list[Seen]], settings: ControllerSpec) -> Result:
    """``seen``: the lab's history of nodes and pods, in the recording's time."""
    return _Comparison(recording, seen, settings).run()


def _tracks(seen: dict[str, list[Seen]]) -> dict[str, Track]:
    return {**node_tracks(seen["nodes"]), **pod_tracks(seen["pods"])}


class _Comparison:
    def __init__(self, recording: Recording, seen: dict[str, list[Seen]], settings: ControllerSpec) -> None:
        self._recording, self._settings = recording, settings
        self._recorded, self._lab = _tracks(recording.seen), _tracks(seen)
        self._fault = recording.fault()
        self._result = Result(count(recording))
        # Unknown comes in [G - 1.04 R, G + 2 M] after the loss (facts 5.2)
        self._silence = _RENEW + 2 * settings.node_monitor_period

    def run(self) -> Result:
        for key, track in self._recorded.items():
            other = self._lab.get(key)
            if other is None:
                moments = track.merged()
                self._differ(track.subject, moments[0].t, f"not in the lab; recorded {len(moments)} states of it")
            else:
                self._track(track, other)
        for key in self._lab.keys() - self._recorded.keys():
            track = self._lab[key]
            if track.moments[0].t <= self._recording.end - _LEAST:
                self._differ(track.subject, track.moments[0].t, "only in the lab")
        self._result.differences.sort(key=lambda item: (item.t, item.subject))
        return self._result

    def _track(self, recorded: Track, lab: Track) -> None:
        """Each recorded state in order; one that the lab leaves for a state of its own is not matched."""
        extra = self._extra(recorded, lab)
        used, bad = 0, 0
        for moment in recorded.merged():
            found = self._find(moment, lab, used, self._slack(moment, recorded))
            if found is None:
                bad += 1
                self._differ(recorded.subject, moment.t, self._missing(moment, lab))
            else:
                used = found + 1
        if self._gone(recorded, lab):
            extra += 1
        self._result.matched += max(0, len(recorded.merged()) - bad - extra)

    def _find(self, moment: Moment, lab: Track, begin: int, slack: float) -> int | None:
        for index in range(begin, len(lab.moments)):
            other = lab.moments[index]
            if other.state == moment.state and self._in_time(moment.t, other.t, slack):
                return index
        return None

    def _missing(self, moment: Moment, lab: Track) -> str:
        times = [f"{other.t - self._fault:.1f} s" for other in lab.moments if other.state == moment.state]
        where = f"in the lab at {', '.join(times)}" if times else "never in the lab"
        return f"recorded {moment.state}; {where}"

    def _extra(self, recorded: Track, lab: Track) -> int:
        """What the lab did that was not recorded, in order."""
        begin, number = 0, 0
        for moment in lab.merged():
            if moment.t > self._recording.end - _LEAST:
                break
            slack = self._slack(moment, lab)
            for index in range(begin, len(recorded.moments)):
                other = recorded.moments[index]
                if other.state == moment.state and self._in_time(other.t, moment.t, slack):
                    begin = index + 1
                    break
            else:
                number += 1
                self._differ(recorded.subject, moment.t, f"only in the lab: {moment.state}")
        return number

    def _gone(self, recorded: Track, lab: Track) -> bool:
        """Whether one of both was removed and the other was not, or at another time."""
        if recorded.gone is None and (lab.gone is None or lab.gone > self._recording.end - _LEAST):
            return False
        if recorded.gone is not None and lab.gone is not None:
            slack = self._slack(recorded.moments[-1], recorded)
            if self._in_time(recorded.gone, lab.gone, slack):
                return False
        at = recorded.gone if recorded.gone is not None else lab.gone
        texts = [f"removed at {item - self._fault:.1f} s" if item else "kept" for item in (recorded.gone, lab.gone)]
        self._differ(recorded.subject, at or 0.0, f"recorded: {texts[0]}; in the lab: {texts[1]}")
        return True

    def _in_time(self, recorded: float, lab: float, slack: float) -> bool:
        if min(recorded, lab) < self._fault and abs(recorded - lab) <= _LEAST:
            return True
        if recorded <= self._fault:
            return lab <= self._fault + _LEAST
        allowed = max(_LEAST, _SHARE * (recorded - self._cause(recorded).t), slack)
        return abs(recorded - lab) <= allowed

    def _cause(self, t: float) -> Deed:
        """The last action that began before."""
        return [deed for deed in self._recording.deeds if deed.t <= t][-1]

    def _slack(self, moment: Moment, track: Track) -> float:
        """The width of the facts' window for what this state waited for; 0 for what is deterministic."""
        index = next(i for i, other in enumerate(track.moments) if other is moment)
        before = track.moments[index - 1].state if index else None
        state = moment.state
        if isinstance(state, NodeState):
            return self._node_slack(before, state)
        waited = isinstance(before, PodState) and before.phase == "Pending"
        return max(self._pod_slack(state), self._pass_before(moment.t, track) if waited else 0.0)

    def _pass_before(self, t: float, track: Track) -> float:
        """A pod that waited for a node's taint to go is as late as the pass that took it (facts 5.4)."""
        tracks = self._recorded if self._recorded.get(track.key) is track else self._lab
        slacks = [
            self._node_slack(before.state, after.state)
            for node in tracks.values()
            for before, after in pairwise(node.moments)
            if 0 <= t - after.t <= _START and isinstance(after.state, NodeState)
        ]
        return max(slacks, default=0.0)

    def _node_slack(self, before: object, state: NodeState) -> float:
        period = self._settings.node_monitor_period + _TOKEN
        if not isinstance(before, NodeState):
            return 0.0
        if state.ready == "Unknown":
            return self._silence
        if state.ready == "True" and before.reason == "KubeletNotReady":
            return _RENEW  # after a cancellation: the next status sync (facts 2)
        if state.ready == before.ready:
            return period  # NoExecute comes and goes with the next pass (facts 5.4)
        return 0.0

    def _pod_slack(self, state: PodState) -> float:
        """What the control plane does to a silent node's pods is as late as Unknown was (facts 5.3, 5.6)."""
        if state.reason == "NodeShutdown":
            return _STATUS  # the upload of a rejection, and what follows it (facts 1.6; recording 27)
        silent = state.phase == "Running" and state.ready == "False"
        return self._silence if silent or state.disruption == "DeletionByTaintManager" else 0.0

    def _differ(self, subject: str, t: float, text: str) -> None:
        self._result.differences.append(Difference(subject, round(t - self._fault, 3), text))
