"""What the parts of one kubelet process share. A process dies at once: none of its timers runs afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chaos.lab.events import Recorder
from chaos.lab.metrics import Metrics
from chaos.lab.registry import Registry
from chaos.lab.sim import Sim, Timer
from chaos.lab.spec import LabSpec

if TYPE_CHECKING:
    from chaos.lab.machine import Machine


@dataclass(slots=True, eq=False)
class Process:
    """``shutting_down`` is memory of the process only (facts 1.4, 1.7)."""

    sim: Sim
    registry: Registry
    spec: LabSpec
    machine: Machine
    recorder: Recorder
    pid: int
    metrics: Metrics
    alive: bool = True
    shutting_down: bool = False
    started: float = field(default=0.0)

    @property
    def node(self) -> str:
        return self.machine.name

    def after(self, delay: float, call: Callable[..., Any], *args: Any) -> Timer:
        """As Sim.after, but nothing happens once the process is gone."""
        return self.sim.after(delay, self._guarded, call, args)

    def soon(self, low: float, high: float, call: Callable[..., Any], *args: Any) -> Timer:
        """After a seeded delay between the two, in seconds."""
        return self.after(self.sim.rng.uniform(low, high), call, *args)

    def _guarded(self, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if self.alive:
            call(*args)
