"""The machine as its kubelet sees it. A port: the machine imports the kubelet, not the other way round."""

from __future__ import annotations

from typing import Literal, Protocol

from chaos.lab.node.journal import Journal
from chaos.lab.node.kubelet.runtime import Runtime
from chaos.lab.node.logind import Logind
from chaos.lab.node.network import Network
from chaos.lab.spec import NodeSpec, OperatingSystem

Resource = Literal["cpu", "memory", "disk", "pid"]


class MachineView(Protocol):
    """``index``: position in the LabSpec. ``files``: contents by path, ``hidden_files``: those
    over which /dev/null is mounted. ``swap``: active swap in bytes.

    ``is_stopping``: PID 1 stops the units and starts none.
    ``pressure``: resources that are short for a reason outside Kubernetes.
    """

    os: OperatingSystem
    index: int
    spec: NodeSpec
    name: str
    address: str
    kubelet_port: int
    machine_id: str
    container_id: str
    system_uuid: str
    boot_id: str
    swap: int
    state: Literal["on", "off"]
    is_stopping: bool
    files: dict[str, str]
    hidden_files: set[str]
    pressure: set[Resource]
    network: Network
    logind: Logind
    runtime: Runtime
    journal: Journal

    @property
    def kubelet_may_start(self) -> bool:
        """Whether a kubelet that starts goes on to run."""

    def notify(self) -> None:
        """Report that the kubelet's process has started, stopped, or ended."""
