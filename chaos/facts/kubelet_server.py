"""API server in the kubelet's kubeconfig."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# kubeadm and kind, k3s, rke2, microk8s, managed clusters.
KUBECONFIGS = (
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/snap/microk8s/current/credentials/kubelet.config",
    "/var/lib/kubelet/kubeconfig",
)
# Of YAML in either style and of JSON, which may have all of the file in one line: only the URL leaves the host.
_PATTERN = """server"?: *["']?https://[^"' ,}]+"""
_SERVER = re.compile(r"server\"?:\s*[\"']?(https://[^\s\"',}]+)")


class KubeletServer(HostFact):
    """Text: a URL, as ``https://10.0.0.1:6443``. Nothing else is read: the rest of the file is a secret."""

    name = "kubelet-server"
    summary = "URL of the API server in the kubelet's kubeconfig"
    command = HostCommand(("grep", "-hsoE", _PATTERN, *KUBECONFIGS))

    def parse(self, stdout: str, exit_code: int) -> str:  # noqa: ARG002 - grep exits with 2 if one of the files is missing
        match = _SERVER.search(stdout)
        if not match:
            raise ValueError("none of " + ", ".join(KUBECONFIGS) + " names a server")
        return match[1].rstrip("/")


FACT = KubeletServer()
