"""API server in the kubelet's kubeconfig."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact
from chaos.model.windows import powershell

# kubeadm, GCE, rke2, EKS, AKS, OpenShift.
KUBECONFIGS = (
    r"C:\etc\kubernetes\kubelet.conf",
    r"C:\etc\kubernetes\kubelet.kubeconfig",
    r"C:\var\lib\rancher\rke2\agent\kubelet.kubeconfig",
    r"C:\ProgramData\kubernetes\kubeconfig",
    r"C:\k\config",
    r"C:\k\kubeconfig",
)
_SERVER = re.compile(r"^\s*server:\s*[\"']?(https://[^\s\"']+)", re.MULTILINE)


class KubeletServer(HostFact):
    """Text: a URL, as ``https://10.0.0.1:6443``. Only that line is read: the rest of the file is a secret."""

    name = "kubelet-server"
    summary = "URL of the API server in the kubelet's kubeconfig"
    command = HostCommand(powershell("read-server", files=KUBECONFIGS))

    def parse(self, stdout: str, exit_code: int) -> str:
        match = _SERVER.search(stdout)
        if exit_code or not match:
            raise ValueError("none of " + ", ".join(KUBECONFIGS) + " names a server")
        return match[1].rstrip("/")


FACT = KubeletServer()
