"""What the kubelet keeps of one pod on its node."""

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
    """The waits between restarts of a pod's containers. client-go flowcontrol.Backoff; memory of the process."""

    delay: float = 0.0
    last_start: float = 0.0

    def remaining(self, ended: float, now: float) -> float:
        """Seconds until containers that have ended at ``ended`` may be started again."""
        return 0.0 if self._is_expired(ended) else max(0.0, ended + self.delay - now)

    def advance(self, ended: float, now: float) -> None:
        """They are started again: the next wait doubles, unless they had run for ten minutes."""
        self.delay = _INITIAL_DELAY if self._is_expired(ended) else min(2 * self.delay, _MAX_DELAY)
        self.last_start = now

    def _is_expired(self, ended: float) -> bool:
        return not self.delay or ended - self.last_start > 2 * _MAX_DELAY


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the kubelet itself ends a pod; ``disruption`` is the message of DisruptionTarget. Facts 9.

    ``forced``: the phase is Failed whatever the exit codes.
    """

    reason: str
    message: str
    disruption: str
    forces_failed: bool = True


@dataclass(slots=True, eq=False)
class Worker:
    """One pod on this node. ``unmounted``: its volumes are gone; ``cause``: why the kubelet ends it, if it does.

    ``waiting``: the back-off for which its containers wait, told as such; ``leaving``: its object is being removed.
    ``pod`` is the object as this process last saw it; for a ``static`` pod its file, and the API has only a mirror.
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
    requests: ResourceRequests = field(default_factory=dict)  # empty until they are asked for
    backoff: Backoff = field(default_factory=Backoff)
    last_written_pod: Object | None = None  # the object after the last status, and what that was made from
    last_written_inputs: tuple[object, ...] = ()
    waiters: list[Callable[[Worker], object]] = field(default_factory=list)

    @property
    def is_critical(self) -> bool:
        """Static pods always are; others by their priority. pkg/kubelet/types IsCriticalPod."""
        return self.is_static or self.priority >= CRITICAL
