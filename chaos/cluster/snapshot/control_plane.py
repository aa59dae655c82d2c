"""Flags of kube-controller-manager and kube-apiserver that the lab has, read from their static pods' arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MANAGER = (
    "node-monitor-period node-monitor-grace-period node-eviction-rate secondary-node-eviction-rate "
    "large-cluster-size-threshold unhealthy-zone-threshold terminated-pod-gc-threshold disable-force-detach-on-timeout"
)
_SERVER = "default-not-ready-toleration-seconds default-unreachable-toleration-seconds"
FLAGS = {"kube-controller-manager": frozenset(_MANAGER.split()), "kube-apiserver": frozenset(_SERVER.split())}


def visible_flags(pod: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Component and known flags, in camel case, of a pod of the control plane; None for other pods."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    component = (metadata.get("labels") or {}).get("component")
    if metadata.get("namespace") != "kube-system" or component not in FLAGS:
        return None
    found: dict[str, Any] = {}
    for container in spec.get("containers") or []:
        for argument in [*(container.get("command") or []), *(container.get("args") or [])]:
            name, sign, value = str(argument).removeprefix("--").partition("=")
            if sign and name in FLAGS[component]:
                found[_camel(name)] = _value(value)
    return component, found


def _camel(name: str) -> str:
    first, *others = name.split("-")
    return first + "".join(word.capitalize() for word in others)


def _value(text: str) -> Any:
    """A boolean, a number, or the text of a duration."""
    if text in ("true", "false"):
        return text == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
