"""What the judge is given: an experiment, a timeline, and who is who in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from chaos.judge.step_matching import MatchResult, match_steps
from chaos.model.assertion import Undecidable
from chaos.model.experiment import Experiment, parse_moment
from chaos.model.registry import PluginRegistry
from chaos.model.timeline import Timeline

WORKLOAD = "workload"
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}


class NotYetDecidable(Undecidable):
    """A step has not happened (yet, in a live run)."""

    def __init__(self, why: str, needs: str = "a timeline in which the step was done, or --map STEP=ACTION") -> None:
        super().__init__(why, needs)


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller knows better than the timeline.

    ``bind``: nodes by target; ``namespace``: of the workload; ``steps``: recorded action by step (``--map``);
    ``facts``: values that replace others (``--fact``); ``inventory``: facts of the cluster that it does not tell
    itself; ``manifests``: (kind, name) of the workload's objects.
    """

    bind: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    namespace: str = ""
    steps: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    inventory: Mapping[str, str] = field(default_factory=dict)
    manifests: Collection[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """One experiment on one timeline. ``live``: the timeline still grows."""

    experiment: Experiment
    timeline: Timeline
    registry: PluginRegistry
    options: Options
    match_result: MatchResult
    namespace: str  # of the workload, "" if unknown
    live: bool = False

    @property
    def start(self) -> float:
        """The first step's begin. Raises NotYet."""
        return self.moment(self.experiment.spec.method[0].name)

    def moment(self, reference: str) -> float:
        """When a step began, or with ``end(step)`` returned; ``+ offset`` allowed. Raises NotYet."""
        moment = parse_moment(reference)
        if not moment.step:
            return self.start + moment.offset
        step = self.match_result.by_name.get(moment.step)
        if step is None:
            raise Undecidable(f"the experiment has no step {moment.step!r}", "the name of a step of the experiment")
        at = step.returned if moment.is_end else step.begin
        if at is None:
            what = "its end" if moment.is_end and not step.missing else step.missing
            raise NotYetDecidable(f"the step {moment.step!r} is not in the timeline ({what or 'no return'})")
        return at + moment.offset


class Scope:
    """One expectation's view of a timeline (the port View)."""

    def __init__(self, context: JudgeContext, anchor: float) -> None:
        self.context = context
        self.timeline = context.timeline
        self.anchor = anchor

    def nodes(self, reference: str) -> tuple[str, ...]:
        """Nodes of a target, all that exist at the anchor, or one by its name. Raises Undecidable."""
        targets, seen = self.context.match_result.targets, self.timeline.nodes
        if reference in targets:
            return targets[reference]
        if reference == "all":
            there = ((name, history.at(self.anchor)) for name, history in seen.items())
            return tuple(sorted(name for name, version in there if version and not version.is_deleted))
        if reference in seen:
            return (reference,)
        if reference in self.context.experiment.spec.targets:
            raise NotYetDecidable(f"it is not known which node {reference!r} is", f"--bind {reference}=NODE")
        raise Undecidable(f"no node {reference!r} was seen", f"the Node object {reference}, or the name of another")

    def namespace(self, reference: str) -> str:
        """The namespace; ``workload`` is the one of the experiment's workload. Raises Undecidable."""
        if reference != WORKLOAD:
            return reference
        if not self.context.namespace:
            raise Undecidable("the workload's namespace is not known", "--bind workload=NAMESPACE")
        return self.context.namespace

    def moment(self, reference: str) -> float:
        return self.context.moment(reference)


def bind(
    experiment: Experiment,
    timeline: Timeline,
    catalogue: PluginRegistry,
    options: Options,
    live: bool = False,
) -> JudgeContext:
    """Find the experiment's steps, targets and workload in a timeline."""
    matched = match_steps(experiment, timeline, options.bind, options.steps)
    return JudgeContext(experiment, timeline, catalogue, options, matched, _namespace(timeline, options), live)


def _namespace(timeline: Timeline, options: Options) -> str:
    """As said, as recorded by the run, or the one that holds most objects of the experiment's manifests."""
    if options.namespace:
        return options.namespace
    recorded = timeline.meta.get(WORKLOAD)
    if isinstance(recorded, str) and recorded:
        return recorded
    wanted = {(PLURALS[kind], name) for kind, name in options.manifests if kind in PLURALS}
    found: dict[str, int] = {}
    for plural, namespace, name in timeline.workloads:
        if (plural, name) in wanted:
            found[namespace] = found.get(namespace, 0) + 1
    best = sorted(found.items(), key=lambda item: -item[1])
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        return ""
    return best[0][0]
