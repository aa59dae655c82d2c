"""Matching of recorded actions to the steps of an experiment.

Steps match in order, by action (after ``--map``) and by their parameters. Other actions are ignored, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.core.action import StepRun
from chaos.core.command import Delivery, Outcome
from chaos.core.duration import parse_duration
from chaos.core.experiment import Experiment, Step
from chaos.core.recording import ActionPhase, ActionRecord
from chaos.core.target_spec import TargetSpec
from chaos.core.text import on_node
from chaos.core.timeline import Entry, Timeline

# Actions that change the power, shutdown or network state of a node, and so end the effect of earlier ones.
_RESET_ACTIONS = frozenset(
    {
        "cancel-shutdown",
        "cancel-shutdown-in-flight",
        "hard-reboot",
        "heal",
        "kernel-crash",
        "partition",
        "power-button",
        "power-cut",
        "power-on",
        "poweroff",
        "prepare-for-shutdown",
        "reboot",
        "schedule-shutdown",
    }
)
# Actions that end the effect of certain other actions only.
_REVERTED_ACTIONS = {
    "kubelet-start": {"kubelet-stop"},
    "kubelet-restart": {"kubelet-stop", "kubelet-freeze"},
    "kubelet-stop": {"kubelet-freeze"},
}


@dataclass(frozen=True, slots=True)
class StepMatch:
    """A step with one :class:`StepRun` per node of its target; ``missing`` describes what the timeline lacks, or ""."""

    step: Step
    action: str
    runs: tuple[StepRun, ...] = ()
    commands: tuple[str, ...] = ()
    missing: str = ""

    @property
    def begin(self) -> float | None:
        """Begin on the first of its nodes; None unless the step has begun on all of them."""
        return None if self.missing else min(run.begin for run in self.runs)

    @property
    def returned(self) -> float | None:
        """Return on the last of its nodes; None unless the step has returned on all of them."""
        times = [run.returned for run in self.runs]
        known = [t for t in times if t is not None]
        return max(known) if known and len(known) == len(times) and not self.missing else None


@dataclass(frozen=True, slots=True)
class MatchResult:
    """Steps with their matches. ``targets``: nodes by target; ``unmatched_actions``: one sentence each."""

    steps: tuple[StepMatch, ...]
    targets: Mapping[str, tuple[str, ...]]
    unmatched_actions: tuple[str, ...] = ()
    by_name: Mapping[str, StepMatch] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of all targets, without duplicates."""
        return tuple(dict.fromkeys(node for nodes in self.targets.values() for node in nodes))


@dataclass(slots=True)
class _Search:
    """State of matching: nodes by target, and positions in ``timeline.actions``."""

    timeline: Timeline
    targets: dict[str, tuple[str, ...]]
    position: int = 0
    used_indexes: set[int] = field(default_factory=set)

    def bind(self, target: str, nodes: tuple[str, ...]) -> None:
        """Bind a target to nodes unless it is bound; a step without a target has no nodes."""
        if target:
            self.targets.setdefault(target, nodes)


def match_steps(
    experiment: Experiment,
    timeline: Timeline,
    bind: Mapping[str, tuple[str, ...]],
    mapping: Mapping[str, str],
) -> MatchResult:
    """Match every step. Targets are bound by ``bind``, by the targets that the run recorded, or by the actions."""
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
    """Nodes by target, from ``meta.targets`` of a recorded run, which has targets by node."""
    recorded = timeline.meta.get("targets")
    known: dict[str, tuple[str, ...]] = {}
    for node, target in recorded.items() if isinstance(recorded, dict) else ():
        if target in experiment.spec.targets:
            known[target] = (*known.get(target, ()), node)
    return known


def _begin_indexes(search: _Search, step: Step, action: str, spec: TargetSpec) -> Iterator[int]:
    """Positions in ``timeline.actions`` at which the step began, one per node."""
    nodes = search.targets.get(step.target)
    others = [names for target, names in search.targets.items() if step.target and target != step.target]
    bound_elsewhere = {node for names in others for node in names}
    found: set[str] = set()
    first = ""
    limit = len(nodes) if nodes else (spec.count if isinstance(spec.count, int) else None)
    for index, (entry, record) in enumerate(search.timeline.actions):
        if index < search.position or index in search.used_indexes or not _is_begin_of(entry, record, step, action):
            continue
        if entry.node in found or (entry.node in bound_elsewhere if nodes is None else entry.node not in nodes):
            continue
        if found and record.step != first:
            continue
        first = record.step
        found.add(entry.node)
        yield index
        if len(found) == limit:
            return


def _is_begin_of(entry: Entry, record: ActionRecord, step: Step, action: str) -> bool:
    """Whether the record begins the step; parameters count only if the step is not mapped to another action."""
    params = step.with_ if action == step.action else {}
    same_params = all(
        name in record.params and _is_same_value(record.params[name], value) for name, value in params.items()
    )
    return record.phase == ActionPhase.BEGIN and entry.type == action and same_params


def _is_same_value(recorded: Any, expected: Any) -> bool:
    """Whether two values are equivalent, as 100s and 1m40s are, or one list in two orders."""
    if isinstance(recorded, list) and isinstance(expected, list):
        return sorted(map(str, recorded)) == sorted(map(str, expected))
    if isinstance(recorded, bool) or isinstance(expected, bool):
        return str(recorded).lower() == str(expected).lower()
    if isinstance(recorded, str) and isinstance(expected, str) and recorded != expected:
        try:
            return parse_duration(recorded) == parse_duration(expected)
        except ValueError:
            return False
    return bool(recorded == expected)


def _match_step(search: _Search, step: Step, action: str, begins: list[int]) -> StepMatch:
    actions = search.timeline.actions
    found = {actions[index][0].node for index in begins}
    missing = [node for node in search.targets.get(step.target, ()) if node not in found]
    if not begins or missing:
        params = _format_params(step.with_) if action == step.action else ""
        where = f" on {', '.join(missing)}" if missing else ""
        return StepMatch(step, action, missing=f"no {action}{params}{where}")
    runs = tuple(_step_run(search.timeline, step, index) for index in begins)
    return StepMatch(step, action, runs, tuple(actions[index][1].command for index in begins))


def _format_params(params: Mapping[str, Any]) -> str:
    parts = (f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in params.items())
    return " with " + ", ".join(parts) if params else ""


def _step_run(timeline: Timeline, step: Step, index: int) -> StepRun:
    entry, begin = timeline.actions[index]
    same = (entry.t, entry.type, begin)  # an entry that was recorded twice is not another action
    later = [(e, r) for e, r in timeline.actions[index + 1 :] if e.node == entry.node and (e.t, e.type, r) != same]
    ended = next(
        (e for e, r in later if r.phase in (ActionPhase.UNDO, ActionPhase.UNDONE) or _ends_effect(entry.type, e, r)),
        None,
    )
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
    """Outcome of the command; None where another recorder wrote an unknown delivery."""
    known = record.delivery in frozenset(Delivery)
    return Outcome(Delivery(record.delivery), record.exit) if known else None


def _ends_effect(action: str, entry: Entry, record: ActionRecord) -> bool:
    """Whether an action ends the effect of an earlier ``action`` on the same node."""
    return record.phase == ActionPhase.BEGIN and (
        entry.type in _RESET_ACTIONS or action in _REVERTED_ACTIONS.get(entry.type, ())
    )


def _entries_of_step(
    later: list[tuple[Entry, ActionRecord]], entry: Entry, begin: ActionRecord
) -> Iterator[tuple[Entry, ActionRecord]]:
    """Entries of a step after its start, until the same step begins again."""
    for other, record in later:
        if other.type == entry.type and record.step == begin.step:
            if record.phase == ActionPhase.BEGIN:
                return
            yield other, record


def _unmatched_actions(search: _Search) -> Iterator[str]:
    for index, (entry, record) in enumerate(search.timeline.actions):
        is_duplicate = any(
            (entry.t, entry.type, entry.node) == (used.t, used.type, used.node)
            for used in (search.timeline.actions[i][0] for i in search.used_indexes)
        )
        if record.phase == ActionPhase.BEGIN and index not in search.used_indexes and not is_duplicate:
            action = on_node(f"the recorded action {entry.type} ({record.step})", entry.node)
            yield f"{action} is not a step of the experiment"
