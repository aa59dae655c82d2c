"""The journal of one machine, on disk: log entries of the kubelet's shutdown manager in klog's format.

Messages and levels are those of nodeshutdown_manager.go and nodeshutdown_manager_linux.go; the line numbers of the
source are invented.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from chaos.lab.sim.clock import SimClock

KUBELET = "kubelet.service"


@dataclass(frozen=True, slots=True)
class Record:
    t: float
    unit: str
    message: str


class Journal:
    def __init__(self, sim: SimClock) -> None:
        self._sim = sim
        self._records: list[Record] = []

    def write(self, pid: int, source: str, message: str, **values: object) -> None:
        """Append a structured entry of the kubelet."""
        now = self._sim.now
        stamp = datetime.fromtimestamp(now, UTC).strftime("%m%d %H:%M:%S.%f")
        pairs = "".join(f" {key}={_value(value)}" for key, value in values.items())
        text = f'I{stamp} {pid:>7} {source}.go:1] "{message}"{pairs}'
        self._records.append(Record(now, KUBELET, text))

    def since(self, t: float, unit: str) -> list[Record]:
        """Entries of a unit from ``t`` on."""
        return [record for record in self._records if record.t >= t and record.unit == unit]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
