"""Taints that Kubernetes puts on a node because of a fault, and removes some time after its end (facts 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_fact import node_path
from chaos.core.errors import NodefallError
from chaos.core.kube import Node
from chaos.core.ports import Clock, KubeApi

# evictionPressureTransitionPeriod of the kubelet, by default 5 min, and some heartbeats.
TAINT_SECONDS = 330.0
_POLL = 2.0
_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_BY_PEOPLE = ("node.kubernetes.io/out-of-service",)


def lifecycle_taints(kube: KubeApi, node: str) -> frozenset[str]:
    """``KEY:EFFECT`` of the taints that controllers put on the node; none if there is no such node.

    Raises NodefallError.
    """
    response = kube.request("GET", node_path(node))
    if response.status == 404:
        return frozenset()
    if response.status != 200:
        raise NodefallError(f"node {node}: the API server answered {response.status}")
    try:
        found = msgspec.json.decode(response.body, type=Node)
    except DECODE_ERRORS as error:
        raise NodefallError(f"node {node}: {error}") from error
    return taints_of(found)


def taints_of(node: Node) -> frozenset[str]:
    """``KEY:EFFECT`` of the taints that controllers have put on a Node."""
    taints = (node.spec.taints if node.spec else None) or ()
    return frozenset(
        f"{taint.key}:{taint.effect}"
        for taint in taints
        if taint.key.startswith(_PREFIXES) and taint.key not in _BY_PEOPLE
    )


def read_taints(kube: KubeApi, nodes: Iterable[str]) -> dict[str, frozenset[str]]:
    """The lifecycle taints of the nodes whose taints can be read."""
    found = {}
    for node in nodes:
        with suppress(NodefallError):
            found[node] = lifecycle_taints(kube, node)
    return found


def await_taints(
    kube: KubeApi,
    clock: Clock,
    before: Mapping[str, frozenset[str]],
    nodes: Iterable[str],
    seconds: float,
    on_wait: Callable[[Sequence[str]], None] = lambda _remaining: None,
) -> list[str]:
    """Wait until the nodes have no lifecycle taints but those of ``before``; what remains, for people.

    Waits for at most ``seconds`` of cluster time, and not beyond a signal. ``on_wait`` is called before each pause.
    """
    deadline = clock.now() + seconds
    waiting = sorted({*nodes} & before.keys())
    while True:
        remaining = [text for node in waiting for text in _remaining(kube, node, before[node])]
        if not remaining or clock.now() >= deadline:
            return remaining
        on_wait(remaining)
        if not clock.sleep(_POLL):
            return remaining


def _remaining(kube: KubeApi, node: str, before: frozenset[str]) -> list[str]:
    try:
        return [
            f"taint {taint} of {node}: Kubernetes has not removed it yet"
            for taint in sorted(lifecycle_taints(kube, node) - before)
        ]
    except NodefallError as error:
        return [f"the taints of {node} are unknown: {error.message}"]
