"""Whether the host shares its kernel."""

from __future__ import annotations

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class SharedKernel(HostFact):
    """True or false: true in a container: a fault of the kernel affects all of its users."""

    name = "shared-kernel"
    summary = "whether the host is a container, which shares its kernel"
    command = HostCommand(("systemd-detect-virt", "--container"), accept=(0, 1), sudo=False)

    def parse(self, stdout: str, exit_code: int) -> bool:
        if exit_code not in (0, 1) or not stdout.strip():
            raise ValueError("systemd-detect-virt did not answer")
        return stdout.strip() != "none"


FACT = SharedKernel()
