"""All keys of ``--what-if``, and how their values change a snapshot.

Here are the changes of workloads: how many pods they have, how long these end, and stay on a node that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from chaos.cluster.snapshot.document import Contents, Object
from chaos.cluster.snapshot.whatif.change import (
    SCALED,
    Apply,
    ChangeError,
    ChangeKind,
    names,
    pod_specs,
    split_workload,
    whole_seconds_of,
    workload,
    workloads,
)
from chaos.cluster.snapshot.whatif.of_clusters import FLAGS, KUBERNETES, NODES, SHUTDOWN_GRACE, SYSTEMD, WITHOUT

_GRACE_SYNTAX = "NAMESPACE/NAME:SECONDS"
_REPLICAS_SYNTAX = "NAMESPACE/NAME:N"
_TOLERATION_SYNTAX = "[NAMESPACE/NAME:]SECONDS"
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_FLAGS = ("defaultNotReadyTolerationSeconds", "defaultUnreachableTolerationSeconds")
_DEFAULT = 300


def _parse_grace(text: str) -> Apply:
    subject, value = split_workload(text, _GRACE_SYNTAX)
    seconds = whole_seconds_of(value)

    def apply(contents: Contents) -> str:
        before = set()
        for spec in pod_specs(contents, workload(contents, subject)):
            before.add(spec.get("terminationGracePeriodSeconds", 30))
            spec["terminationGracePeriodSeconds"] = seconds
        shown = ", ".join(f"{each} s" for each in sorted(before))
        return f"pods of {subject} have {seconds} s to end, instead of {shown}"

    return apply


GRACE = ChangeKind("grace", _GRACE_SYNTAX, "terminationGracePeriodSeconds of a workload's pods", _parse_grace, names)


def _parse_replicas(text: str) -> Apply:
    subject, value = split_workload(text, _REPLICAS_SYNTAX)
    if not value.isascii() or not value.isdigit():
        raise ChangeError(f"not a number of replicas: {value!r}", "write a whole number from 0")

    def apply(contents: Contents) -> str:
        spec = workload(contents, subject, SCALED)["spec"]
        before, spec["replicas"] = spec.get("replicas", 1), int(value)
        return f"{subject} has {int(value)} replicas, instead of {before}"

    return apply


def _scaled_names(contents: Contents) -> list[str]:
    return sorted(workloads(contents, SCALED))


REPLICAS = ChangeKind(
    "replicas", _REPLICAS_SYNTAX, "replicas of a Deployment, StatefulSet or ReplicaSet", _parse_replicas, _scaled_names
)


def _parse_toleration(text: str) -> Apply:
    subject, value = split_workload(text, _TOLERATION_SYNTAX) if ":" in text else ("", text)
    seconds = whole_seconds_of(value)
    return lambda contents: _of_workload(contents, subject, seconds) if subject else _of_all(contents, seconds)


def _of_workload(contents: Contents, subject: str, seconds: int) -> str:
    for spec in pod_specs(contents, workload(contents, subject)):
        others = [item for item in spec.get("tolerations") or [] if item.get("key") not in _TAINTS]
        spec["tolerations"] = [*others, *(_toleration(key, seconds) for key in _TAINTS)]
    return f"pods of {subject} stay {seconds} s on a node that is not ready or unreachable"


def _of_all(contents: Contents, seconds: int) -> str:
    """Change the default of the API server, and the pods that have it."""
    flags = contents.header.get("apiServer") or {}
    before = [int(flags.get(flag, _DEFAULT)) for flag in _FLAGS]
    contents.header["apiServer"] = {**flags, **dict.fromkeys(_FLAGS, seconds)}
    defaults = dict(zip(_TAINTS, before, strict=True))
    for pod in contents.of("pods"):
        _replace(pod["spec"].get("tolerations") or [], defaults, seconds)
    return f"pods without other tolerations stay {seconds} s on a node that is not ready or unreachable"


def _replace(tolerations: Iterable[Object], defaults: dict[str, int], seconds: int) -> None:
    for item in tolerations:
        key = item.get("key", "")
        if key in defaults and item.get("tolerationSeconds") == defaults[key]:
            item["tolerationSeconds"] = seconds


def _toleration(key: str, seconds: int) -> Object:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


TOLERATION_SECONDS = ChangeKind(
    "tolerationSeconds",
    _TOLERATION_SYNTAX,
    "tolerationSeconds for not-ready and unreachable: of one workload, or the default of the API server",
    _parse_toleration,
    names,
)


_KINDS = (GRACE, TOLERATION_SECONDS, REPLICAS, NODES, WITHOUT, SYSTEMD, KUBERNETES, *SHUTDOWN_GRACE, *FLAGS)
CHANGES: dict[str, ChangeKind] = {kind.key: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Change:
    """``text``: KEY=VALUE."""

    text: str
    apply: Apply


def parse_change(text: str) -> Change:
    """Parse ``KEY=VALUE``. Raises ChangeError."""
    key, sign, value = text.partition("=")
    if key not in CHANGES or not sign:
        near = get_close_matches(key, CHANGES, 1, 0.5)
        hint = f"did you mean {near[0]}={CHANGES[near[0]].syntax}?" if near else f"the keys are {', '.join(CHANGES)}"
        raise ChangeError(f"unknown change {text!r}", hint)
    return Change(text, CHANGES[key].parse(value))


def apply_changes(contents: Contents, changes: Sequence[Change]) -> list[str]:
    """Change a snapshot in place, in this order; one sentence for each change. Raises ChangeError."""
    sentences = []
    for change in changes:
        try:
            sentences.append(change.apply(contents))
        except ChangeError as error:
            raise ChangeError(f"{change.text}: {error}", error.hint) from error
    return sentences
