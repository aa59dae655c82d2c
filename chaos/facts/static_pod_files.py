"""Manifests of static pods on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# kubeadm; k3s; rke2.
FOLDERS = (
    "/etc/kubernetes/manifests",
    "/var/lib/rancher/k3s/agent/pod-manifests",
    "/var/lib/rancher/rke2/agent/pod-manifests",
)


class StaticPodFiles(HostFact):
    """Sorted list of paths, without names that begin with a dot, which the kubelet ignores."""

    name = "static-pod-files"
    summary = "manifests of static pods on the host"
    needs = ("kubelet-flags",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        folder = known["kubelet-flags"].get("pod-manifest-path")
        folders = (folder,) if folder else FOLDERS
        return HostCommand(("find", *folders, "-maxdepth", "1", "-type", "f", "!", "-name", ".*"))

    def parse(self, stdout: str, exit_code: int) -> list[str]:
        if exit_code not in (0, 1):  # 1: some of the folders do not exist
            raise ValueError("find did not answer")
        return sorted(stdout.splitlines())


FACT = StaticPodFiles()
