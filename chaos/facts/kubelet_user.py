"""The user as which the kubelet authenticates: ``system:node:NAME``, by its client certificate."""

from __future__ import annotations

from chaos.facts._certificates import CURRENT_FILE, ONLY_CERTIFICATES, find_kubelet_user
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# kubeadm and most others, k3s, rke2. The first file also holds the private key, which is not printed.
FILES = (
    CURRENT_FILE,
    "/var/lib/rancher/k3s/agent/client-kubelet.crt",
    "/var/lib/rancher/rke2/agent/client-kubelet.crt",
)


class KubeletUser(HostFact):
    """Text: common name of the client certificate, as ``system:node:worker-1``."""

    name = "kubelet-user"
    summary = "user as which the kubelet authenticates"
    command = HostCommand(("sed", "-n", ONLY_CERTIFICATES, *FILES), accept=(0, 2))  # 2: some files are missing

    def parse(self, stdout: str, exit_code: int) -> str:  # noqa: ARG002 - missing files are expected
        return find_kubelet_user(stdout)


FACT = KubeletUser()
