"""Which recorded actions are the steps of an experiment.

By action (after ``--map``) and by the parameters that the step names, in order; other actions are left out and told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.model.action import StepRun
from chaos.model.command import Delivery, Outcome
from chaos.model.duration import parse_duration
from chaos.model.experiment import Experiment, Step, TargetSpec
from chaos.model.recording import ActionPhase, ActionRecord
from chaos.model.text import on_node
from chaos.model.timeline import Entry, Timeline

# Actions that change what a node's power, shutdown or network is in; whatever was done to it before has ended by then.
_RESET_ACTIONS = frozenset(
    {
        "cancel-shutdown",
        "cancel-shutdown-in-flight",
        "hard-reboot",
        "heal",
        "kernel-crash",
        "partition",
        "power-cut",
        "power-on",
        "poweroff",
        "prepare-for-shutdown",
        "reboot",
        "schedule-shutdown",
    }
)
# What ends the effect of certain actions only.
_REVERTED_ACTIONS = {
    "kubelet-start": {"kubelet-stop"},
    "kubelet-restart": {"kubelet-stop", "kubelet-freeze"},
    "kubelet-stop": {"kubelet-freeze"},
}


@dataclass(frozen=True, slots=True)
class StepMatch:
    """A step with one :class:`StepRun` per node of its target; ``missing`` says what the timeline lacks, or ""."""

    step: Step
    action: str
    runs: tuple[StepRun, ...] = ()
    commands: tuple[str, ...] = ()
    missing: str = ""

    @property
    def begin(self) -> float | None:
        """When it began on the first of its nodes; None if it has not on all of them."""
        return None if self.missing else min(run.begin for run in self.runs)

    @property
    def returned(self) -> float | None:
        """When it had returned on all of its nodes."""
        times = [run.returned for run in self.runs]
        known = [t for t in times if t is not None]
        return max(known) if known and len(known) == len(times) and not self.missing else None


@dataclass(frozen=True, slots=True)
class MatchResult:
    steps: tuple[StepMatch, ...]
    targets: Mapping[str, tuple[str, ...]]
    unmatched_actions: tuple[str, ...] = ()
    by_name: Mapping[str, StepMatch] = field(default_factory=dict)


@dataclass(slots=True)
class _Search:
    timeline: Timeline
    targets: dict[str, tuple[str, ...]]
    position: int = 0
    used_indexes: set[int] = field(default_factory=set)

    def bind(self, target: str, nodes: tuple[str, ...]) -> None:
        """The nodes of a target that was not known; a step without one is about no node."""
        if target:
            self.targets.setdefault(target, nodes)


def match_steps(
    experiment: Experiment,
    timeline: Timeline,
    bind: Mapping[str, tuple[str, ...]],
    mapping: Mapping[str, str],
) -> MatchResult:
    """Match every step; targets are bound by ``bind``, by what the run itself recorded, or by the actions' nodes."""
    known = _recorded_targets(experiment, timeline)
    search = _Search(timeline, known | {t: n for t, n in bind.items() if t in experiment.spec.targets})
    steps = []
    for step in experiment.spec.method:
        action = mapping.get(step.name, step.action)
        begins = list(_begin_indexes(search, step, action, experiment.spec.targets.get(step.target, TargetSpec())))
        steps.append(_match_step(search, step, action, begins))
        if begins and not steps[-1].missing:
            search.position = begins[0] + 1
            search.used_indexes.update(begins)
            search.bind(step.target, tuple(timeline.actions[i][0].node for i in begins))
    ignored = tuple(_unmatched_actions(search))
    return MatchResult(tuple(steps), search.targets, ignored, {s.step.name: s for s in steps})


def _recorded_targets(experiment: Experiment, timeline: Timeline) -> dict[str, tuple[str, ...]]:
    """What our own runs write into ``meta.targets``: the target's name by node."""
    recorded = timeline.meta.get("targets")
    known: dict[str, tuple[str, ...]] = {}
    for node, target in recorded.items() if isinstance(recorded, dict) else ():
        if target in experiment.spec.targets:
            known[target] = (*known.get(target, ()), node)
    return known


def _begin_indexes(search: _Search, step: Step, action: str, spec: TargetSpec) -> Iterator[int]:
    """Positions in ``timeline.actions`` at which the step began, one per node."""
    wanted = search.targets.get(step.target)
    others = [nodes for target, nodes in search.targets.items() if step.target and target != step.target]
    taken = {node for nodes in others for node in nodes}
    seen: set[str] = set()
    first = ""
    limit = len(wanted) if wanted else (spec.count if isinstance(spec.count, int) else None)
    for index, (entry, record) in enumerate(search.timeline.actions):
        if index < search.position or index in search.used_indexes or not _is_begin_of(entry, record, step, action):
            continue
        if entry.node in seen or (entry.node in taken if wanted is None else entry.node not in wanted):
            continue
        if seen and record.step != first:
            continue
        first = record.step
        seen.add(entry.node)
        yield index
        if len(seen) == limit:
            return


def _is_begin_of(entry: Entry, record: ActionRecord, step: Step, action: str) -> bool:
    """Mapped to another action, a step's parameters say nothing about that one's."""
    params = step.with_ if action == step.action else {}
    named = all(name in record.params and _is_same_value(record.params[name], value) for name, value in params.items())
    return record.phase == ActionPhase.BEGIN and entry.type == action and named


def _is_same_value(recorded: Any, wanted: Any) -> bool:
    """Equal, also where one is written another way: 100s and 1m40s, the same list in another order."""
    if isinstance(recorded, list) and isinstance(wanted, list):
        return sorted(map(str, recorded)) == sorted(map(str, wanted))
    if isinstance(recorded, bool) or isinstance(wanted, bool):
        return str(recorded).lower() == str(wanted).lower()
    if isinstance(recorded, str) and isinstance(wanted, str) and recorded != wanted:
        try:
            return parse_duration(recorded) == parse_duration(wanted)
        except ValueError:
            return False
    return bool(recorded == wanted)


def _match_step(search: _Search, step: Step, action: str, begins: list[int]) -> StepMatch:
    actions = search.timeline.actions
    found = {actions[index][0].node for index in begins}
    absent = [node for node in search.targets.get(step.target, ()) if node not in found]
    if not begins or absent:
        params = _format_params(step.with_) if action == step.action else ""
        where = f" on {', '.join(absent)}" if absent else ""
        return StepMatch(step, action, missing=f"no {action}{params}{where}")
    runs = tuple(_step_run(search.timeline, step, index) for index in begins)
    return StepMatch(step, action, runs, tuple(actions[index][1].command for index in begins))


def _format_params(params: Mapping[str, Any]) -> str:
    return (
        " with " + ", ".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in params.items())
        if (params)
        else ""
    )


def _step_run(timeline: Timeline, step: Step, index: int) -> StepRun:
    entry, begin = timeline.actions[index]
    same = (entry.t, entry.type, begin)  # a line that was recorded twice is not another action
    later = [(e, r) for e, r in timeline.actions[index + 1 :] if e.node == entry.node and (e.t, e.type, r) != same]
    ended = next((e for e, r in later if r.phase in (ActionPhase.UNDO, ActionPhase.UNDONE) or _ends_effect(entry.type, e, r)), None)
    own = [(e, r) for e, r in _entries_of_step(later, entry, begin)]
    returned = next(((e, r) for e, r in own if r.phase == ActionPhase.RETURNED), None)
    evidence: dict[str, Any] = {}
    for _, record in own:
        if record.phase == ActionPhase.PROVED:
            evidence |= record.evidence
    return StepRun(
        step=step.name,
        action=entry.type,
        node=entry.node,
        params=begin.params,
        begin=entry.t,
        returned=returned[0].t if returned else None,
        until=ended.t if ended else timeline.end,
        until_seq=ended.seq if ended else None,
        outcome=_outcome(returned[1]) if returned else None,
        evidence=evidence,
        phases=returned[1].evidence if returned else {},
    )


def _outcome(record: ActionRecord) -> Outcome | None:
    """Outcome of the command; None where another recorder wrote no delivery that we know."""
    known = record.delivery in frozenset(Delivery)
    return Outcome(Delivery(record.delivery), record.exit) if known else None


def _ends_effect(action: str, entry: Entry, record: ActionRecord) -> bool:
    """Whether what was done ends the effect of ``action`` before it on the same node."""
    return record.phase == ActionPhase.BEGIN and (entry.type in _RESET_ACTIONS or action in _REVERTED_ACTIONS.get(entry.type, ()))


def _entries_of_step(
    later: list[tuple[Entry, ActionRecord]], entry: Entry, begin: ActionRecord
) -> Iterator[tuple[Entry, ActionRecord]]:
    """The lines that follow a begin, until the same step begins again."""
    for other, record in later:
        if other.type == entry.type and record.step == begin.step:
            if record.phase == ActionPhase.BEGIN:
                return
            yield other, record


def _unmatched_actions(search: _Search) -> Iterator[str]:
    for index, (entry, record) in enumerate(search.timeline.actions):
        twice = any(
            (entry.t, entry.type, entry.node) == (used.t, used.type, used.node)
            for used in (search.timeline.actions[i][0] for i in search.used_indexes)
        )
        if record.phase == ActionPhase.BEGIN and index not in search.used_indexes and not twice:
            yield (
                on_node(f"the recorded action {entry.type} ({record.step})", entry.node)
                + " is not a step of the experiment"
            )
