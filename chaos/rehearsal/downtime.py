"""When the machines of a lab were off or unreachable: what conditions of nodes and pods show only later."""

from __future__ import annotations

from chaos.lab.facade import DirectLab, Machine


class Downtime:
    """Recorded from its making on."""

    def __init__(self, lab: DirectLab) -> None:
        self._lab = lab
        self._open: dict[str, float] = {}
        self._closed: dict[str, list[tuple[float, float]]] = {}
        for machine in lab.cluster.machines.values():
            machine.on_change.append(self._note)

    def windows(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """Begin and end of each time, in order, by node; one that lasts ends with the simulation."""
        now = self._lab.sim.now
        last = {name: [(begin, now)] for name, begin in self._open.items()}
        names = sorted({*self._closed, *last})
        return {name: (*self._closed.get(name, []), *last.get(name, [])) for name in names}

    def _note(self, machine: Machine) -> None:
        is_down = machine.state != "on" or not machine.is_reachable
        if is_down and machine.name not in self._open:
            self._open[machine.name] = self._lab.sim.now
        elif not is_down and machine.name in self._open:
            self._closed.setdefault(machine.name, []).append((self._open.pop(machine.name), self._lab.sim.now))
