"""``replicas=NAMESPACE/NAME:N``: how many pods a workload has."""

from __future__ import annotations

from chaos.cluster.snapshot.contents import Contents
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind, split_workload
from chaos.cluster.snapshot.whatif.workloads import SCALED, workload, workloads

_SYNTAX = "NAMESPACE/NAME:N"


def _parse(text: str) -> Apply:
    subject, value = split_workload(text, _SYNTAX)
    if not value.isascii() or not value.isdigit():
        raise ChangeError(f"not a number of replicas: {value!r}", "write a whole number from 0")

    def apply(contents: Contents) -> str:
        spec = workload(contents, subject, SCALED)["spec"]
        before, spec["replicas"] = spec.get("replicas", 1), int(value)
        return f"{subject} has {int(value)} replicas, instead of {before}"

    return apply


def _names(contents: Contents) -> list[str]:
    return sorted(workloads(contents, SCALED))


KIND = ChangeKind("replicas", _SYNTAX, "replicas of a Deployment, StatefulSet or ReplicaSet", _parse, _names)
