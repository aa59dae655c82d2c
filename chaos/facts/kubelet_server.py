"""Where the kubelet finds the API server, as its own kubeconfig says."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# kubeadm and kind, k3s, rke2, microk8s, and where managed clusters put it.
KUBECONFIGS = (
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/snap/microk8s/current/credentials/kubelet.config",
    "/var/lib/kubelet/kubeconfig",
)
_SERVER = re.compile(r"^\s*server:\s*[\"']?(https://[^\s\"']+)", re.MULTILINE)


class KubeletServer(HostFact):
    """The URL. Only that line is read: the rest of the file is a secret."""

    name = "kubelet-server"
    summary = "URL of the API server in the kubelet's kubeconfig"
    command = HostCommand(("grep", "-hs", "server:", *KUBECONFIGS))

    def parse(self, stdout: str, exit_code: int) -> str:  # noqa: ARG002 - grep says 2 when any of the files is missing
        found = _SERVER.search(stdout)
        if not found:
            raise ValueError("none of " + ", ".join(KUBECONFIGS) + " names a server")
        return found[1].rstrip("/")


FACT = KubeletServer()
