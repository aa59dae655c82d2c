"""Whether the etcd member of a host takes part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.facts._etcd import NEEDS, etcdctl
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class EtcdHealth(HostFact):
    """True or false: a read that a majority of the members must confirm succeeds through the host's member.

    Of etcd as kubeadm runs it, in a static pod; false where no such container runs.
    """

    name = "etcd-health"
    summary = "whether kubeadm's etcd member on the host answers linearizable reads"
    needs = NEEDS

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return etcdctl(known, "endpoint health")

    def parse(self, stdout: str, exit_code: int) -> bool:  # noqa: ARG002 - etcdctl prints it to either stream
        return exit_code == 0


FACT = EtcdHealth()
