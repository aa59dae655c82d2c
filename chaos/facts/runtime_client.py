"""The program that lists what a container runtime runs."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Those of distributions are not in the path of sudo: rke2 and k3s, k0s, Flatcar, microk8s, NixOS.
_DIRECTORIES = (
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/opt/bin",
    "/var/lib/rancher/rke2/bin",
    "/var/lib/rancher/k3s/data/current/bin",
    "/var/lib/k0s/bin",
    "/snap/microk8s/current/bin",
    "/run/current-system/sw/bin",
)
PATHS = tuple(f"{directory}/{name}" for name in ("crictl", "ctr") for directory in _DIRECTORIES)


class RuntimeClient(HostFact):
    """Text: path of ``crictl``, else of ``ctr``, containerd's own client."""

    name = "runtime-client"
    summary = "program that lists the containers of the runtime: crictl or ctr"
    command = HostCommand(("find", *PATHS, "-maxdepth", "0"))

    def parse(self, stdout: str, exit_code: int) -> str:
        existing = [path for path in PATHS if path in stdout.split()]
        if exit_code not in (0, 1):
            raise ValueError("find did not answer")
        if not existing:
            raise ValueError("neither crictl nor ctr is installed")
        return existing[0]


FACT = RuntimeClient()
