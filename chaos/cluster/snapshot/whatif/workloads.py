"""A workload in a snapshot: the object, the templates of its pods, and the pods."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.cluster.snapshot.contents import Contents, Object, name_of, owner_uid
from chaos.cluster.snapshot.whatif.change import unknown_workload

SCALED = ("deployments", "statefulsets", "replicasets")
_ALL = (*SCALED, "daemonsets")


def workloads(contents: Contents, plurals: tuple[str, ...] = _ALL) -> dict[str, Object]:
    """Workloads by ``NAMESPACE/NAME``; ReplicaSets of Deployments are none."""
    return {
        name_of(obj): obj
        for plural in reversed(plurals)
        for obj in contents.of(plural)
        if plural != "replicasets" or not owner_uid(obj)
    }


def workload(contents: Contents, subject: str, plurals: tuple[str, ...] = _ALL) -> Object:
    """The workload ``NAMESPACE/NAME``. Raises ChangeError."""
    found = workloads(contents, plurals)
    if subject not in found:
        raise unknown_workload(subject, sorted(found))
    return found[subject]


def names(contents: Contents) -> list[str]:
    """``NAMESPACE/NAME`` of all workloads."""
    return sorted(workloads(contents))


def pod_specs(contents: Contents, owner: Object) -> Iterator[Object]:
    """Specs of the templates and of the pods of a workload."""
    uids = {str(owner["metadata"].get("uid"))}
    yield owner["spec"].setdefault("template", {}).setdefault("spec", {})
    for item in contents.of("replicasets"):
        if owner_uid(item) in uids:
            uids.add(str(item["metadata"].get("uid")))
            yield item["spec"].setdefault("template", {}).setdefault("spec", {})
    for pod in contents.of("pods"):
        if owner_uid(pod) in uids:
            yield pod["spec"]
