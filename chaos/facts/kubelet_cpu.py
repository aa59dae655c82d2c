"""CPU time of the kubelet's unit, and how often the kernel made it wait for its quota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Documentation/admin-guide/cgroup-v2.rst, cpu.stat; the last ones are there only with the cpu controller.
_KEYS = {"usage_usec": "used", "throttled_usec": "throttled"}


class KubeletCpu(HostFact):
    """Mapping ``{"used": 12.5, "throttled": 3.1}``: seconds since the unit started; {} while it has no process.

    ``throttled``: the sum over the CPUs of the time in which its threads were ready and the quota was used up.
    """

    name = "kubelet-cpu"
    summary = "CPU seconds of the kubelet's unit, and seconds for which its quota made it wait"
    needs = ("kubelet-cgroup",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return HostCommand(("cat", f"/sys/fs/cgroup{known['kubelet-cgroup']}/cpu.stat"), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> dict[str, float]:
        if exit_code:
            return {}
        fields = dict(line.split() for line in stdout.splitlines())
        if "usage_usec" not in fields:
            raise ValueError("cpu.stat has no usage_usec")
        return {name: int(fields.get(key, 0)) / 1e6 for key, name in _KEYS.items()}


FACT = KubeletCpu()
