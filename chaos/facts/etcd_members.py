"""Members of etcd as the one on the host reports them: voters, those that are healthy, the leader."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from chaos.facts._etcd import NEEDS, etcdctl
from chaos.model.command import HostCommand
from chaos.model.fact import HostFact


class EtcdMembers(HostFact):
    """Mapping ``{"member": "cp-1", "leader": "cp-1", "voters": ["cp-1", "cp-2", "cp-3"], "healthy": [...]}``.

    ``member`` is the host's own; "" as ``leader`` if it knows of none. kubeadm names members after their nodes.
    ``voters`` are all members but learners, ``healthy`` those of them that follow this leader and report no error, as
    ``etcdctl member list`` and ``endpoint status --cluster`` print them (etcd, api/etcdserverpb/rpc.proto). IDs stand
    for members that have no name yet. Each member that does not answer takes 5 s (etcdctl's --command-timeout).
    """

    name = "etcd-members"
    summary = "voting members of kubeadm's etcd, those that are healthy, and the leader"
    needs = NEEDS

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return etcdctl(known, "member list -w json", "endpoint status --cluster -w json")

    def parse(self, stdout: str, exit_code: int) -> dict[str, Any]:
        lines = [line for line in stdout.splitlines() if line.startswith(("{", "["))]
        if exit_code not in (0, 1) or len(lines) != 2:  # 1: one of the members does not answer
            raise ValueError("etcdctl in the container of etcd did not answer")
        try:
            return _members(*(json.loads(line) for line in lines))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError("what etcdctl prints is not understood") from error


def _members(found: Any, statuses: Any) -> dict[str, Any]:
    names = {member["ID"]: member.get("name") or f"{member['ID']:x}" for member in found["members"]}
    voters = {member["ID"] for member in found["members"] if not member.get("isLearner")}
    local = found["header"]["member_id"]
    answers = dict(_statuses(statuses))
    leader = answers[local].get("leader") or 0
    healthy = {
        identity
        for identity, status in answers.items()
        if leader and identity in voters and status.get("leader") == leader and not status.get("errors")
    }
    return {
        "member": names[local],
        "leader": names[leader] if leader else "",
        "voters": sorted(names[identity] for identity in voters),
        "healthy": sorted(names[identity] for identity in healthy),
    }


def _statuses(entries: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """By the member's ID; those that did not answer are missing."""
    for entry in entries:
        if status := entry.get("Status"):
            yield status["header"]["member_id"], status


FACT = EtcdMembers()
