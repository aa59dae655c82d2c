"""The user as which the kubelet authenticates: ``system:node:NAME``, by its client certificate."""

from __future__ import annotations

from chaos.facts._certificates import find_kubelet_user
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell

# kubeadm and most others, AKS. The files also hold the private key, which is not printed.
FILES = (
    r"C:\var\lib\kubelet\pki\kubelet-client-current.pem",
    r"C:\k\pki\kubelet-client-current.pem",
)


class KubeletUser(HostFact):
    """Text: common name of the client certificate, as ``system:node:windows-1``."""

    name = "kubelet-user"
    summary = "user as which the kubelet authenticates"
    command = HostCommand(powershell("read-certificates", files=FILES))

    def parse(self, stdout: str, exit_code: int) -> str:
        if exit_code:
            raise ValueError("the kubelet's client certificate cannot be read")
        return find_kubelet_user(stdout)


FACT = KubeletUser()
