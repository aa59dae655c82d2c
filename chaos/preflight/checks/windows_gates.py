"""Version and feature gates of kubelets on Windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chaos.model.kube import Node
from chaos.model.kubernetes_version import parse_minor
from chaos.preflight.check import Check, Diagnosis, note, ok, refusal
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

_GATE, _BASE_GATE = "WindowsGracefulNodeShutdown", "GracefulNodeShutdown"
_ALPHA, _BETA = (1, 32), (1, 34)  # since when there is the gate, and since when it is on (pkg/features)
_GRACEFUL = frozenset({Need.GRACEFUL})


class WindowsGates(Check):
    """The gate is alpha and off in v1.32, beta and on since v1.34; a configuration may set it."""

    name = "windows-gates"
    summary = "the kubelet on Windows has the feature gate WindowsGracefulNodeShutdown, and it is on"
    facts = ("configz",)
    systems = frozenset({"windows"})

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for name, host in sorted(observations.hosts.items()):
            if not host.error and host.shutdown_grace != 0:
                yield _diagnose(host, observations.view.nodes[name])


def _diagnose(host: HostObservations, node: Node) -> Diagnosis:
    name, text = host.node, _kubelet_version(node)
    version = parse_minor(text)
    gates: Mapping[str, Any] = (host.fact("configz") or {}).get("featureGates") or {}
    if version is None:
        message = (
            f"{name}: the kubelet's version is unknown ({text!r}), so it is unknown whether a shutdown is graceful"
        )
        return note(message, "", name, _GRACEFUL)
    if version < _ALPHA:
        message = f"{name}: kubelet {text} ends no pods when Windows shuts down: that came with v1.32"
        return refusal(message, "upgrade the kubelet to v1.34 or later", name, _GRACEFUL)
    is_on = gates.get(_GATE, version >= _BETA) and gates.get(_BASE_GATE, True)
    if not is_on:
        message = f"{name}: the feature gate {_GATE} is off in kubelet {text}, so no shutdown is graceful"
        hint = f"set {_GATE}: true under featureGates in the kubelet's configuration, restart the kubelet"
        return refusal(message, hint, name, _GRACEFUL)
    return ok(f"kubelet {text}", name)


def _kubelet_version(node: Node) -> str:
    info = node.status.node_info if node.status else None
    return info.kubelet_version if info else ""


CHECK = WindowsGates()
