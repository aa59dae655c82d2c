"""Changes of a snapshot: their common values, and the workloads that they affect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chaos.cluster.snapshot.document import Contents, Object, name_of, owner_uid

Apply = Callable[[Contents], str]
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
SCALED = ("deployments", "statefulsets", "replicasets")
_ALL = (*SCALED, "daemonsets")


class ChangeError(ValueError):
    """The value is not valid, or the snapshot lacks what it is about. ``hint``: an imperative."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """A key. ``syntax``: of the value; ``parse`` checks a value, and returns what changes a snapshot in place.

    That function returns one sentence for people. Both raise ChangeError. ``subjects``: what values may begin with.
    """

    key: str
    syntax: str
    summary: str
    parse: Callable[[str], Apply]
    subjects: Callable[[Contents], list[str]] = lambda _: []


def seconds_of(text: str) -> float:
    """Seconds of a duration such as 30, 30s, 1.5m. Raises ChangeError."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ChangeError(f"not a duration: {text!r}", "write seconds, or a duration such as 90s or 5m")
    return float(found[1]) * _UNITS[found[2]]


def whole_seconds_of(text: str) -> int:
    """Like :func:`seconds_of`, for a whole number. Raises ChangeError."""
    seconds = seconds_of(text)
    if seconds != int(seconds):
        raise ChangeError(f"not a whole number of seconds: {text!r}", "Kubernetes counts whole seconds here")
    return int(seconds)


def split_workload(text: str, syntax: str) -> tuple[str, str]:
    """``NAMESPACE/NAME`` and the value after the colon. Raises ChangeError."""
    subject, sign, value = text.rpartition(":")
    if not sign or subject.count("/") != 1 or not all(subject.split("/")):
        raise ChangeError(f"not {syntax}: {text!r}", "write the namespace and the name of a workload, as default/web")
    return subject, value


def node_named(contents: Contents, name: str) -> Object:
    """The node. Raises ChangeError."""
    nodes = {name_of(node): node for node in contents.of("nodes")}
    if name not in nodes:
        raise ChangeError(f"the snapshot has no node {name!r}", "choose one of: " + _some(sorted(nodes)))
    return nodes[name]


def unknown_workload(subject: str, known: list[str]) -> ChangeError:
    """The error for a workload that the snapshot does not have."""
    return ChangeError(f"the snapshot has no workload {subject!r}", "choose one of: " + (_some(known) or "none"))


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def workloads(contents: Contents, plurals: tuple[str, ...] = _ALL) -> dict[str, Object]:
    """The workloads by ``NAMESPACE/NAME``, without ReplicaSets of Deployments."""
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
