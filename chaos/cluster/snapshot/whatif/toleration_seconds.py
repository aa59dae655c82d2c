"""``tolerationSeconds=[NAMESPACE/NAME:]SECONDS``: how long pods stay on a node that is not ready or unreachable."""

from __future__ import annotations

from collections.abc import Iterable

from chaos.cluster.snapshot.contents import Contents, Object
from chaos.cluster.snapshot.whatif.change import Apply, ChangeKind, split_workload, whole_seconds_of
from chaos.cluster.snapshot.whatif.workloads import names, pod_specs, workload

_SYNTAX = "[NAMESPACE/NAME:]SECONDS"
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_FLAGS = ("defaultNotReadyTolerationSeconds", "defaultUnreachableTolerationSeconds")
_DEFAULT = 300


def _parse(text: str) -> Apply:
    subject, value = split_workload(text, _SYNTAX) if ":" in text else ("", text)
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


KIND = ChangeKind(
    "tolerationSeconds",
    _SYNTAX,
    "tolerationSeconds for not-ready and unreachable: of one workload, or the default of the API server",
    _parse,
    names,
)
