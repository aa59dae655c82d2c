"""Socket of the container runtime."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

SOCKETS = (
    "/run/k3s/containerd/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
    "/run/cri-dockerd.sock",
    "/run/crio/crio.sock",
    "/run/containerd/containerd.sock",
)


class RuntimeSocket(HostFact):
    """Text: path of the first socket that exists, those of distributions before the common ones."""

    name = "runtime-socket"
    summary = "socket of the container runtime"
    command = HostCommand(("find", *SOCKETS, "-maxdepth", "0", "-type", "s"))

    def parse(self, stdout: str, exit_code: int) -> str:
        existing = [path for path in SOCKETS if path in stdout.split()]
        if exit_code not in (0, 1) or not existing:
            raise ValueError("none of " + ", ".join(SOCKETS) + " exists")
        return existing[0]


FACT = RuntimeSocket()
