"""The manifest of kubeadm's etcd, and whether something is mounted over it."""

from __future__ import annotations

import re

from chaos.facts._etcd import MANIFEST
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

_DIGEST = re.compile(rf"(?P<digest>[0-9a-f]{{64}}) [ *]{MANIFEST}")


class EtcdManifest(HostFact):
    """Mapping ``{"sha256": "9f2c...", "mounted": false}``; ``sha256`` of what the kubelet reads there."""

    name = "etcd-manifest"
    summary = f"{MANIFEST}: its digest, and whether something is mounted over it"
    command = HostCommand(("sh", "-c", 'sha256sum "$1"; cat /proc/self/mountinfo', "nodefall", MANIFEST))

    def parse(self, stdout: str, exit_code: int) -> dict[str, str | bool]:
        lines = stdout.splitlines()
        digest = next((match["digest"] for line in lines if (match := _DIGEST.fullmatch(line))), "")
        mounts = {fields[4] for line in lines if len(fields := line.split()) > 5}  # proc_pid_mountinfo(5)
        if exit_code or not mounts:
            raise ValueError("/proc/self/mountinfo was not read")
        if not digest:
            raise ValueError(f"there is no {MANIFEST}: the host runs no etcd as kubeadm's static pod")
        return {"sha256": digest, "mounted": MANIFEST in mounts}


FACT = EtcdManifest()
