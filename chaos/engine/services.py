"""What a run acts through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from chaos.cluster.node_traces import NodeEvents
from chaos.core.plan import PlannedStep
from chaos.core.ports import Clock, KubeApi, LockGuard, Progress, Sink
from chaos.core.result import RunResult
from chaos.core.store.journal import Journal
from chaos.core.store.journal_format import EntryKey
from chaos.core.verdict import Verdict
from chaos.machines.pool import Hosts


@dataclass(frozen=True, slots=True)
class RunServices:
    """The outside world of one run.

    ``judge`` evaluates the timeline so far: live (True: verdicts may be pending) or for good. ``judge_steady_state``
    evaluates the steady state as of now. ``publish`` writes the pending undo to the cluster and raises Aborted when it
    cannot; ``reconcile`` does so after an undo and returns why it failed, or "". ``check_limits`` raises Aborted if the
    steps on their nodes would exceed the inventory's limits now. ``before_fault`` is called once, right before the
    method begins, and raises NodefallError if it must not. ``published`` returns the entries in the copy of the
    journal in the cluster unless another process has replaced it, and raises NodefallError.

    ``prove_at`` has the observers prove at moments how current they are, ``watch_closely`` at once and during a step;
    ``late_watches`` names those that are not proven to have received everything from before a moment. ``on_judged``
    receives the verdicts of every tick, on the expectations and on the recovery.
    """

    clock: Clock
    kube: KubeApi
    hosts: Hosts
    journal: Journal
    progress: Progress
    emit: Sink
    judge: Callable[[bool], RunResult]
    judge_steady_state: Callable[[], Sequence[Verdict]]
    guard: LockGuard
    publish: Callable[[], None]
    reconcile: Callable[[], str]
    check_limits: Callable[[Sequence[PlannedStep]], None] = lambda _: None
    before_fault: Callable[[], None] = lambda: None
    published: Callable[[], Collection[EntryKey]] = frozenset
    events: NodeEvents | None = None  # None: the inventory does not want Events
    late_watches: Callable[[float], Sequence[Verdict]] = lambda _: ()
    prove_at: Callable[[Iterable[float]], None] = lambda _: None
    on_judged: Callable[[Sequence[Verdict], Sequence[Verdict]], None] = lambda _expectations, _recovery: None
    watch_closely: Callable[[], AbstractContextManager[None]] = nullcontext
