"""State of one pod in the kubelet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from chaos.lab.objects.accessors import Object

State = Literal["starting", "running", "stopping", "ended"]
ResourceRequests = dict[str, int]  # by resource: milli-CPUs, bytes, pods

CRITICAL = 2_000_000_000  # scheduling.SystemCriticalPriority
_INITIAL_DELAY, _MAX_DELAY = 10.0, 300.0  # initialBackOff, MaxContainerBackOff


@dataclass(slots=True)
class Backoff:
    """Back-off between restarts of a pod's containers. client-go flowcontrol.Backoff; in memory only."""

    delay: float = 0.0
    last_start: float = 0.0

    def remaining(self, ended: float, now: float) -> float:
        """Seconds until containers that exited at ``ended`` may be restarted."""
        return 0.0 if self._is_expired(ended) else max(0.0, ended + self.delay - now)

    def advance(self, ended: float, now: float) -> None:
        """Record a restart: the next delay doubles, unless the containers had run for 10 min."""
        self.delay = _INITIAL_DELAY if self._is_expired(ended) else min(2 * self.delay, _MAX_DELAY)
        self.last_start = now

    def _is_expired(self, ended: float) -> bool:
        return not self.delay or ended - self.last_start > 2 * _MAX_DELAY


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the kubelet ends a pod. ``disruption``: message of DisruptionTarget. Facts 9.

    Reason and message are those of a pod that fails: one whose containers exit 0 is Succeeded, without either.
    """

    reason: str
    message: str
    disruption: str


@dataclass(slots=True, eq=False)
class Worker:
    """One pod on this node. ``is_unmounted``: its volumes are unmounted. ``cause``: set if the kubelet ends the pod.

    ``crash_backoff``: delay for which its containers wait in CrashLoopBackOff. ``is_removing``: its object is being
    deleted. ``pod``: the object that this process has seen last; for a static pod that of its file, whose mirror is in
    the API.
    """

    pod: Object
    uid: str
    namespace: str
    name: str
    priority: int
    termination_grace: int | None
    state: State = "starting"
    ip: str = ""
    has_sandbox: bool = False
    is_unmounted: bool = False
    is_static: bool = False
    is_removing: bool = False
    cause: Cause | None = None
    crash_backoff: float = 0.0
    requests: ResourceRequests = field(default_factory=dict)  # empty until first use
    backoff: Backoff = field(default_factory=Backoff)
    last_written_pod: Object | None = None  # the object after the last status write, and the inputs of that status
    last_written_inputs: tuple[object, ...] = ()
    waiters: list[Callable[[Worker], object]] = field(default_factory=list)

    def call_waiters(self) -> None:
        """Call each of ``waiters`` once."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter(self)

    def mark_unmounted(self) -> None:
        """Record that no volume of the pod is mounted."""
        self.is_unmounted = True

    @property
    def is_critical(self) -> bool:
        """Whether the pod is static or has a system priority. pkg/kubelet/types IsCriticalPod."""
        return self.is_static or self.priority >= CRITICAL
