"""The state of machines over time, and what it makes of the readiness that the API reports.

A machine is off only if a power control said so and nothing disproves it, or if its boot identity changed. While
nothing says that it is off it counts as running: the API's word counts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from chaos.core.api_fact import PseudoFact
from chaos.core.command import PowerState
from chaos.core.evidence import BOOT_ACTIONS, CANCEL_ACTIONS, all_readings, is_number
from chaos.core.kube import Pod
from chaos.core.machine_evidence import Sign, believed_offs, boot_id, boots, signs_of_life
from chaos.core.recording import ActionPhase
from chaos.core.signal import Sample, Signal
from chaos.core.time_bounds import source_time
from chaos.core.timeline import Fact, History, Timeline, Version
from chaos.verdicts.judge.pods import container_statuses
from chaos.verdicts.judge.sequence import in_sequence
from chaos.verdicts.judge.signals import version_moments

_Container = tuple[str, str | None, int | None]  # name, ID, restart count


@dataclass(frozen=True, slots=True)
class Down:
    """A time in which a machine was down, or may have been: from ``since`` on nothing shows that it ran.

    ``off``: the first and the last reading ``off``, None if the power control did not say so. ``back``: the first sign
    of life after it. ``is_certain``: it was down at some moment of it. ``booted``: the start of PID 1 after it, by the
    clock of the machine, if that was read.
    """

    since: float
    off: tuple[Fact, Fact] | None
    back: Sign | None
    is_certain: bool = True
    booted: float | None = None

    @property
    def until(self) -> float:
        """The moment since which the machine certainly runs again."""
        return self.back.hi if self.back else math.inf

    @property
    def shown(self) -> float:
        """The moment by which the machine was down."""
        return self.off[0].t if self.off else self.until

    def is_over_in(self, version: Version[Pod]) -> bool | None:
        """Whether a version was stored after the downtime; None if that is unknown."""
        earliest, latest = version_moments(version)
        if self.off:  # what the kubelet writes after the last reading is a sign of life itself
            lo, hi = self.off[1].began, self.off[1].t
        elif self.back is None:
            return False
        else:  # the first sign of life is not the first that happened: it may have booted at any moment before
            lo, hi = self.since, self.back.hi
            if version.order and self.back.order and version.order > self.back.order:
                return True
        return True if earliest >= hi else False if latest <= lo else None


@dataclass(frozen=True)
class Machine:
    """The machine of a node, with the times in which it was down, in order."""

    node: str
    downs: tuple[Down, ...] = ()

    @cached_property
    def signal(self) -> Signal:
        """True while the machine is certainly off, false while nothing contradicts that it runs, otherwise unknown."""
        samples = [Sample(-math.inf, False, None, f"there is no evidence that {self.node} was off")]
        for down in self.downs:
            samples.append(Sample(down.since, None, None, f"{self.node} may have been off"))
            first, last = down.off or (None, None)
            if first and last and first.t <= last.began:
                samples.append(Sample(first.t, True, first.seq, f"{self.node} was off", max(first.began, down.since)))
            if back := down.back:
                since = last.began if last else back.lo
                samples.append(Sample(back.hi, False, back.seq, f"{self.node} ran again", since))
        return Signal(tuple(samples))


def machine_of(timeline: Timeline, node: str, takes_down: Collection[str] = BOOT_ACTIONS) -> Machine:
    """The machine of a node. ``takes_down``: the names of the actions that take a machine down."""
    if _is_quiet(timeline, node):
        return Machine(node)
    offs = believed_offs(timeline, node)
    changes = list(_boots(timeline, node))
    signs = _signs(timeline, node)
    threats = _Threats(timeline, node, takes_down, signs)
    downs: list[Down] = []
    for down in _merged([*_offs(offs, signs), *changes]):
        after = downs[-1].until if downs else -math.inf
        since = max(down.since, threats.first(after, down.shown), after)
        downs.append(Down(min(since, down.shown), down.off, down.back, booted=_booted(timeline, node, down)))
    rest = threats.rest(downs[-1].until if downs else -math.inf)
    return Machine(node, tuple(downs + rest))


def _booted(timeline: Timeline, node: str, down: Down) -> float | None:
    """The start of PID 1 in the first reading after the machine was down."""
    readings = (r for r in timeline.readings(node, "pid1-start") if r.t >= down.until and is_number(r.value))
    return next((float(reading.value) for reading in readings), None)


def _is_quiet(timeline: Timeline, node: str) -> bool:
    """Whether nothing at all is known of the machine."""
    names = (PseudoFact.MACHINE, "pid1-start", "boot-id")
    history = timeline.nodes.get(node)
    is_read = any(timeline.readings(node, name) for name in names)
    is_same = history is None or boot_id(history.first.object) == boot_id(history.last.object)
    return is_same and not is_read and not any(entry.node == node for entry, _ in timeline.actions)


def _signs(timeline: Timeline, node: str) -> list[Sign]:
    """All signs of life: with the word of the power control, and containers that started."""
    readings = all_readings(timeline, node, PseudoFact.MACHINE)
    said_on = (Sign(r.began, r.t, r.seq, f"{node} was on") for r in readings if r.value == PowerState.ON)
    return sorted([*signs_of_life(timeline, node), *said_on, *_container_starts(timeline, node)])


def _container_starts(timeline: Timeline, node: str) -> Iterator[Sign]:
    """Only the kubelet writes the statuses of containers."""
    for history in timeline.pods.on_nodes([node]):
        for before, version in pairwise(history):
            if _containers(version) - _containers(before):
                yield Sign(*version_moments(version), version.seq, f"{node} started a container")


def _offs(stretches: Sequence[Sequence[Fact]], signs: Sequence[Sign]) -> Iterator[Down]:
    """The ``off`` periods that the power control reported. Each lasts until the next sign of life."""
    for readings in stretches:
        first, last = readings[0], readings[-1]
        since = max((sign.lo for sign in signs if sign.hi <= first.began), default=-math.inf)
        back = min((sign for sign in signs if sign.lo >= last.t), key=lambda sign: sign.hi, default=None)
        yield Down(since, (first, last), back)


def _boots(timeline: Timeline, node: str) -> Iterator[Down]:
    """Changes of the boot identity: between two readings."""
    for found, _ in boots(timeline, node):
        for before, after in pairwise(found):
            if not before.is_same(after):
                yield Down(before.sign.lo, None, after.sign)


def _merged(downs: Iterable[Down]) -> list[Down]:
    """The downs in order, each once: several sources show the same boot, and a power control shows it best."""
    found: list[Down] = []
    for down in sorted(downs, key=lambda down: (down.off is None, down.until)):
        before = down.shown if down.off else down.since
        if not any(before < other.until and other.shown <= down.until for other in found):
            found.append(down)
    return sorted(found, key=lambda down: down.shown)


class _Threats:
    """Begins of steps that take the machine of a node down, and what ends them: a cancellation, an undo, power on."""

    def __init__(self, timeline: Timeline, node: str, takes_down: Collection[str], signs: Sequence[Sign]) -> None:
        own = [(entry, record.phase) for entry, record in timeline.actions if entry.node == node]
        self._begins = [e.t for e, phase in own if phase == ActionPhase.BEGIN and e.type in takes_down]
        ends = (*CANCEL_ACTIONS, "power-on")
        self._ends = [
            e.t for e, phase in own if phase == ActionPhase.UNDONE or (phase == ActionPhase.BEGIN and e.type in ends)
        ]
        self._signs = signs

    def first(self, after: float, until: float) -> float:
        """The first begin in (``after``, ``until``] that is not over by then; minus infinity without one."""
        begins = (t for t in self._begins if after < t <= until)
        return min((t for t in begins if self._over(t, until) is None), default=-math.inf)

    def rest(self, after: float) -> list[Down]:
        """The times after the last down in which the machine may have been down, and nothing shows whether it was."""
        begins = [t for t in self._begins if t > after]
        if not begins:
            return []
        begin = begins[0]
        back = self._over(begins[-1], math.inf)
        ran = [sign.lo for sign in self._signs if sign.lo >= begin and (back is None or sign.hi < back.lo)]
        if back and ran:
            return []
        return [Down(max([begin, *ran]), None, back, is_certain=False)]

    def _over(self, begin: float, until: float) -> Sign | None:
        """The sign of life that shows that the machine runs after the end of what began then."""
        end = min((t for t in self._ends if t > begin), default=math.inf)
        return min((s for s in self._signs if s.lo >= end and s.hi <= until), key=lambda sign: sign.hi, default=None)


def running(history: History[Pod], machine: Machine) -> Signal:
    """Whether the machine of a pod runs its containers: after it was down, once they have started again."""
    node = machine.node
    samples = [Sample(-math.inf, True, None, f"there is no evidence that {node} was off")]
    for down in machine.downs:
        if down.is_certain and down.is_over_in(history.first):
            continue
        samples.append(Sample(down.since, None, None, f"reported Ready, but {node} may have been off"))
        if down.off:
            first = down.off[0]
            began = max(first.began, down.since)
            samples.append(Sample(first.t, False, first.seq, f"reported Ready, but {node} was off", began))
        if down.back and not down.is_certain:
            samples.append(Sample(down.back.hi, True, down.back.seq, f"{node} ran again", down.back.lo))
        elif down.off or down.back:
            samples += _restarts(history, down, node)
    return Signal(tuple(samples))


def _restarts(history: History[Pod], down: Down, node: str) -> Iterator[Sample]:
    """The samples of a pod after its machine was down."""
    certainly, perhaps = set[_Container](), set[_Container]()  # what ran before
    if down.off is None and down.back:
        text = f"reported Ready, but its containers have not started again since {node} was down"
        has_started = any(_starts(version) > (down.booted or math.inf) for version in history)
        if has_started:  # by the one clock of the machine
            text = f"its containers started again on {node}"
        yield Sample(down.back.hi, has_started, down.back.seq, text, down.back.lo)
        if has_started:
            return
    for version in history:
        is_over, containers = down.is_over_in(version), _containers(version)
        started = containers - certainly
        if is_over and containers - perhaps:
            earliest, latest = version_moments(version)
            text = f"its containers started again on {node}"
            yield Sample(latest, True, version.seq, text, earliest, version.order)
            return
        if is_over is not False and (started or not containers) and not version.is_deleted:
            text = f"reported Ready, but it is not known whether its containers started again on {node}"
            t = max(min(version.t, version.earliest), down.since)
            yield Sample(t, None, version.seq, text)
            perhaps |= containers
        elif not is_over:
            perhaps |= containers
            certainly |= containers if is_over is False else set()


def _starts(version: Version[Pod]) -> float:
    """When the last running container started, by the clock of the node; minus infinity if there is none."""
    states = (status.state for status in container_statuses(version.object))
    starts = (source_time(state.running.started_at) for state in states if state and state.running)
    return max((t for t in starts if t is not None), default=-math.inf)


def _containers(version: Version[Pod]) -> frozenset[_Container]:
    """The containers that were started."""
    statuses = container_statuses(version.object)
    return frozenset((s.name, s.container_id, s.restart_count) for s in statuses if s.container_id)


def effective(reported: Signal, history: History[Pod], machine: Machine) -> Signal:
    """The signal of a pod's reported readiness, limited to the time in which its machine runs the pod.

    ``reported`` may be of any condition that is true only while the pod is Ready.
    """
    if not machine.downs:
        return reported
    unseen = Sample(-math.inf, None, None, "not observed yet")
    current, samples = [unseen, unseen], []
    sequence = in_sequence([reported, running(history, machine)])
    for position, (index, sample) in enumerate(sequence):
        current[index] = sample
        following = sequence[position + 1][1] if position + 1 < len(sequence) else None
        is_moment = following is not None and following.t == sample.t <= min(sample.earliest, following.earliest)
        if not is_moment:  # what changes at one exact moment changes together
            samples.append(_both(sample, *current))
    return Signal(tuple(samples))


def _both(change: Sample, reported: Sample, runs: Sample) -> Sample:
    """The state after ``change``: the sample that decides. The reported state has precedence."""
    decisive = next((s for value in (False, None) for s in (reported, runs) if s.value is value), reported)
    seq = change.seq if decisive.seq is None else decisive.seq
    lag = decisive.value is None and (reported.is_lag or runs.is_lag)
    return Sample(change.t, decisive.value, seq, decisive.observation, change.earliest, change.order, lag)
