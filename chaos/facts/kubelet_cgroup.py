"""Control group of the kubelet's unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class KubeletCgroup(HostFact):
    """Text: path below /sys/fs/cgroup, as ``/system.slice/kubelet.service``; unknown while the unit has no process."""

    name = "kubelet-cgroup"
    summary = "control group of the kubelet's unit"
    needs = ("kubelet-unit",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return HostCommand(("systemctl", "show", "--property=ControlGroup", known["kubelet-unit"]), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> str:
        path = stdout.strip().partition("ControlGroup=")[2]
        if exit_code or not path.startswith("/"):
            raise ValueError("the kubelet's unit has no control group")
        return path


FACT = KubeletCgroup()
