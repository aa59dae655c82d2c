"""Files that only a host of the control plane has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_RANCHER = "/var/lib/rancher"
_MANIFESTS = ("/etc/kubernetes/manifests", f"{_RANCHER}/rke2/agent/pod-manifests")
# The data of an etcd member, in a separate process or in that of k3s.
_ETCD_DATA = ("/var/lib/etcd/member", *(f"{_RANCHER}/{name}/server/db/etcd/member" for name in ("k3s", "rke2")))
_PATHS = (*_ETCD_DATA, *(f"{folder}/{name}.yaml" for folder in _MANIFESTS for name in ("etcd", "kube-apiserver")))


class ControlPlaneFiles(HostFact):
    """Sorted list of paths: manifests of static pods and data of etcd, by kubeadm, k3s and RKE2."""

    name = "control-plane-files"
    summary = "files that only a host of the control plane has"

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - the same on every host
        return HostCommand(("find", *_PATHS, "-maxdepth", "0"))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code not in (0, 1):  # 1: some of the paths do not exist
            raise ValueError("find did not answer")
        return sorted(stdout.splitlines())


FACT = ControlPlaneFiles()
