"""Eviction manager: pressure conditions, eviction of one pod per round, admission under pressure. Facts 9.

The resource is used outside of Kubernetes (``Machine.pressure``), so evictions continue as long as it is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from chaos.lab.node.kubelet.pod_worker import Worker
from chaos.lab.node.kubelet.process import Process
from chaos.lab.objects import MEMORY_PRESSURE, Object, condition_status, untolerated
from chaos.lab.rules import NodePressureRules
from chaos.lab.sim import Timer

_MEMORY_TAINT = {"key": MEMORY_PRESSURE, "effect": "NoSchedule"}


def condition_change_events(before: Object, after: Object, rules: NodePressureRules) -> list[str]:
    """Events of the kubelet for changed pressure conditions, also from Unknown (recording 07).

    The first registration causes no events.
    """
    found = []
    for signal in rules.signals.values():
        status, old = condition_status(after, signal.condition), condition_status(before, signal.condition)
        if old not in ("", status):
            found.append((signal.under_pressure if status == "True" else signal.no_pressure)[2])
    return found


class Evictor(Protocol):
    """Port: the pod workers of the eviction manager."""

    def active_pods(self) -> list[Worker]: ...

    def evict(self, worker: Worker, message: str) -> None: ...


class Pressure:
    """The kubelet's eviction manager. ``rank``: pods with a lower one are evicted first."""

    def __init__(self, process: Process, rank: Callable[[Object], float]) -> None:
        self._process, self._rank, self._rules = process, rank, process.rules.node_pressure
        self._last_observed: dict[str, float] = {}
        self._next: Timer | None = None

    def start(self, workers: Evictor) -> None:
        """Start the rounds, one every 10 s."""
        self._next = self._process.after(self._rules.eviction_monitoring_period, self._round, workers)

    def run_now(self, workers: Evictor) -> None:
        """Make a round now; the next ones follow every 10 s."""
        if self._next is not None:
            self._next.cancel()
        self._round(workers)

    def rephase(self, workers: Evictor) -> None:
        """Make the next round at any time in a period, as if the kubelet had run for long.

        Rounds and node statuses have periods of their own, so that after a while neither comes first (facts 9).
        """
        if self._next is not None:
            self._next.cancel()
        self._next = self._process.after(
            self._process.sim.rng.uniform(0.0, self._rules.eviction_monitoring_period), self._round, workers
        )

    def short_resources(self) -> list[str]:
        """Resources whose condition is True: they were short within the last 5 min."""
        now = self._process.sim.now
        seen, transition = self._last_observed, self._rules.eviction_pressure_transition_period
        return [kind for kind in self._rules.signals if kind in seen and now - seen[kind] < transition]

    def refusal(self, worker: Worker) -> str:
        """Message of a rejection, empty for an admitted pod; memory pressure alone rejects only BestEffort pods."""
        kinds = self.short_resources()
        if not kinds or worker.is_critical:
            return ""
        if kinds == ["memory"] and self._rules.memory_rejects_best_effort_only:
            best_effort = worker.pod["status"].get("qosClass") == "BestEffort"
            if not best_effort or not untolerated(worker.pod, [_MEMORY_TAINT], ("NoSchedule",)):
                return ""
        return f"The node had condition: [{', '.join(self._rules.signals[kind].condition for kind in kinds)}]. "

    def _round(self, workers: Evictor) -> None:
        short = [kind for kind in self._rules.signals if kind in self._process.machine.pressure]
        self._last_observed |= dict.fromkeys(short, self._process.sim.now)
        if short and (worker := victim(workers.active_pods(), self._rank, self._rules)) is not None:
            signal = self._rules.signals[short[0]]
            message = (
                f"The node was low on resource: {signal.resource}. "
                f"Threshold quantity: {signal.threshold}, available: 0. "
            )
            workers.evict(worker, message)
        self._next = self._process.after(self._rules.eviction_monitoring_period, self._round, workers)


def victim(
    workers: Iterable[Worker], recorded_rank: Callable[[Object], float], rules: NodePressureRules
) -> Worker | None:
    """Pod to evict first: without requests, lowest priority; no critical, static or mirror pod."""
    if not rules.evicts:
        return None
    running = [worker for worker in workers if worker.state == "running"]
    candidates = [worker for worker in running if rules.evicts_critical or not worker.is_critical]
    return min(
        candidates,
        key=lambda worker: (
            recorded_rank(worker.pod),
            rules.qos_order[worker.pod["status"]["qosClass"]],
            worker.priority,
            worker.namespace,
            worker.name,
        ),
        default=None,
    )
