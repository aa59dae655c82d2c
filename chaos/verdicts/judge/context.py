"""Input of the judge: an experiment, a timeline, and the binding of steps, targets and workload."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.core.assertion import Assertion, Memo, Memos, NotYetDecidable, Undecidable
from chaos.core.experiment import Experiment, parse_moment
from chaos.core.kube import Node
from chaos.core.registry import PluginRegistry
from chaos.core.timeline import History, Timeline
from chaos.core.verdict import Status, Verdict
from chaos.verdicts.judge.membership import Present, may_be_gone, require_complete
from chaos.verdicts.judge.step_matching import MatchResult, match_steps

WORKLOAD = "workload"
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}


@dataclass(frozen=True, slots=True)
class Options:
    """Values that supplement or override the timeline.

    ``bind``: nodes by target; ``namespace``: of the workload; ``steps``: recorded action by step (``--map``);
    ``facts``: overrides (``--fact``); ``inventory``: facts of the cluster that the timeline lacks; ``manifests``:
    (kind, name) of the workload's objects.
    """

    bind: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    namespace: str = ""
    steps: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    inventory: Mapping[str, str] = field(default_factory=dict)
    manifests: Collection[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """One experiment bound to one timeline. ``live``: the timeline is still growing.

    ``deadlines``: the moments at which the judged expectations begin or end. ``memos``: values per object.
    """

    experiment: Experiment
    timeline: Timeline
    registry: PluginRegistry
    options: Options
    match_result: MatchResult
    namespace: str  # of the workload, "" if unknown
    live: bool = False
    deadlines: set[float] = field(default_factory=set)
    memos: Memos = field(default_factory=Memos)

    @property
    def start(self) -> float:
        """Begin of the first step. Raises NotYetDecidable."""
        return self.moment(self.experiment.spec.method[0].name)

    def moment(self, reference: str) -> float:
        """Begin of a step, or its return with ``end(step)``; ``+ offset`` is allowed. Raises NotYetDecidable."""
        moment = parse_moment(reference)
        if not moment.step:
            return self.start + moment.offset
        step = self.match_result.by_name.get(moment.step)
        if step is None:
            raise Undecidable(f"unknown step {moment.step!r}", "the name of a step of the experiment")
        at = step.returned if moment.is_end else step.begin
        if at is None:
            missing = "no end" if moment.is_end and not step.missing else step.missing
            raise NotYetDecidable(f"step {moment.step!r} is not in the timeline ({missing or 'no return'})")
        return at + moment.offset


class Scope:
    """View of a timeline for one expectation (implements View)."""

    def __init__(
        self,
        context: JudgeContext,
        anchor: float,
        lookback: float = 0.0,
        question: Hashable | None = None,
        since: tuple[float, float] | None = None,
    ) -> None:
        """``question``: the assertion and its parameters, the key of the memos."""
        self.context = context
        self.question = question
        self.timeline = context.timeline
        self.anchor = anchor
        self.since = (anchor, anchor) if since is None else since
        self.lookback = lookback

    def nodes(self, reference: str) -> tuple[str, ...]:
        """Nodes of a target, all nodes that certainly exist at the anchor or did at the first step, or one by name.

        Raises Undecidable.
        """
        targets, nodes = self.context.match_result.targets, self.timeline.nodes
        if reference in targets:
            return targets[reference]
        if reference == "all":
            first = self.context.match_result.steps[0].begin
            first = self.anchor if first is None else min(first, self.anchor)
            moments = {self.anchor, first}
            require_complete(self, "nodes", self.anchor)
            memo = self.context.memos.of(("nodes that exist", *sorted(moments)))

            def decisive(history: History[Node]) -> Iterable[float]:
                is_gone = first < self.anchor and may_be_gone(history, self.anchor)  # as what an undo removes
                return (first,) if is_gone else moments

            return memo.keep(lambda: Present[str](decisive, lambda _: "nodes")).keys(nodes)
        if reference in nodes:
            return (reference,)
        if reference in self.context.experiment.spec.targets:
            raise NotYetDecidable(f"the node of target {reference!r} is unknown", f"--bind {reference}=NODE")
        raise Undecidable(
            f"node {reference!r} was not observed", f"the Node object {reference}, or the name of another node"
        )

    def nodes_of(self, assertion: Assertion, params: Any) -> tuple[str, ...]:
        """Nodes of an expectation: those in its parameters, else the targets of the experiment. Raises Undecidable."""
        named = [ref for field in assertion.node_fields if (ref := getattr(params, field, None)) and ref != "all"]
        nodes = tuple(dict.fromkeys(node for ref in named for node in self.nodes(ref)))
        return nodes or self.context.match_result.nodes

    def namespace(self, reference: str) -> str:
        """The namespace. ``workload`` means the namespace of the experiment's workload. Raises Undecidable."""
        if reference != WORKLOAD:
            return reference
        if not self.context.namespace:
            raise Undecidable("the namespace of the workload is unknown", "--bind workload=NAMESPACE")
        return self.context.namespace

    def moment(self, reference: str) -> float:
        """Begin or return of a step, in epoch seconds. Raises NotYetDecidable."""
        return self.context.moment(reference)

    def memo(self, *inputs: Hashable) -> Memo:
        """The values that were computed from objects for this question and the same ``inputs``."""
        if self.question is None:
            return Memo()
        return self.context.memos.of((self.question, self.anchor, self.since, *inputs))


def bind(
    experiment: Experiment,
    timeline: Timeline,
    registry: PluginRegistry,
    options: Options,
    live: bool = False,
    state: LiveState | None = None,
) -> JudgeContext:
    """Find the experiment's steps, targets and workload in a timeline. ``state``: of the judgements of a run."""
    registry.bind(experiment)
    match_result = match_steps(experiment, timeline, options.bind, options.steps)
    namespace, state = _namespace(timeline, options), state or LiveState()
    deadlines, memos = state.deadlines, state.memos
    return JudgeContext(experiment, timeline, registry, options, match_result, namespace, live, deadlines, memos)


def _namespace(timeline: Timeline, options: Options) -> str:
    """Namespace from the options, else as recorded by the run, else the one with most objects of the manifests."""
    if options.namespace:
        return options.namespace
    recorded = timeline.meta.get(WORKLOAD)
    if isinstance(recorded, str) and recorded:
        return recorded
    expected = {(PLURALS[kind], name) for kind, name in options.manifests if kind in PLURALS}
    counts: dict[str, int] = {}
    for plural, namespace, name in timeline.workloads:
        if (plural, name) in expected:
            counts[namespace] = counts.get(namespace, 0) + 1
    best = sorted(counts.items(), key=lambda item: -item[1])
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        return ""
    return best[0][0]


@dataclass
class LiveState:
    """``deadlines``: the moments that decide, of the last judgement.

    ``memos``: what was made of objects, to be made again only after a change.

    ``steady``: the verdicts on the steady state before the first step, once all held: this is never taken back.
    """

    deadlines: set[float] = field(default_factory=set)
    steady: tuple[Verdict, ...] = ()
    memos: Memos = field(default_factory=Memos)

    def note_steady(self, verdicts: tuple[Verdict, ...]) -> None:
        if all(verdict.status is Status.HELD for verdict in verdicts):
            self.steady = verdicts
