"""CPU quota of the kubelet's unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_SET_AT_RUNTIME = "/run/systemd/system.control/"


class KubeletCpuQuota(HostFact):
    """Mapping ``{"percent": 20.0, "runtime": false, "stale": false}``.

    ``percent`` of one CPU, null without a quota. ``runtime``: set by ``systemctl set-property --runtime``, until the
    next boot. ``stale``: the unit's files have changed since systemd loaded them.
    """

    name = "kubelet-cpu-quota"
    summary = "CPU quota of the kubelet's unit, and where it is set"
    needs = ("kubelet-unit",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        properties = "--property=CPUQuotaPerSecUSec,DropInPaths,NeedDaemonReload"
        return HostCommand(("systemctl", "show", properties, known["kubelet-unit"]), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, float | bool | None]:
        fields = dict(line.split("=", 1) for line in stdout.splitlines() if "=" in line)
        if exit_code or "CPUQuotaPerSecUSec" not in fields:
            raise ValueError("systemd did not answer")
        files = fields.get("DropInPaths", "").split()
        return {
            "percent": _percent(fields["CPUQuotaPerSecUSec"]),
            "runtime": any(f.startswith(_SET_AT_RUNTIME) and f.endswith("/50-CPUQuota.conf") for f in files),
            "stale": fields.get("NeedDaemonReload") == "yes",
        }


def _percent(span: str) -> float | None:
    """Percent of a CPU from CPU time per second, as ``1s 500ms``; None for infinity. Raises ValueError."""
    if span == "infinity":
        return None
    parts = _SPAN.findall(span)
    if not parts or " ".join(number + unit for number, unit in parts) != span:
        raise ValueError(f"the quota {span!r} is no time span")
    return round(sum(float(number) * _SECONDS[unit] for number, unit in parts) * 100, 3)


FACT = KubeletCpuQuota()
