"""Reads what an inventory needs to know of a cluster. Changes nothing there."""

from __future__ import annotations

import msgspec

from chaos.app.discovery.distributions import KUBEADM_CONFIG
from chaos.app.discovery.nodes import ListedNode
from chaos.app.discovery.proposal import ClusterFacts
from chaos.cluster.client import ApiClient
from chaos.cluster.cluster_state import cluster_uid, server_version
from chaos.cluster.errors import KubeRejected
from chaos.cluster.reads import iter_pages
from chaos.cluster.watch_codec import DECODE_ERRORS, WatchCodec
from chaos.core.errors import NodefallError, Refused
from chaos.core.ports import KubeApi
from chaos.core.resources import RESOURCES

_CODEC = WatchCodec(RESOURCES["nodes"])
_decode_node = msgspec.json.Decoder(ListedNode).decode
_PERMISSIONS = "grant get on the namespace kube-system and list on nodes: without them there is no inventory"


def read_cluster(kube: ApiClient, name: str, kubeconfig: str, context: str) -> ClusterFacts:
    """Nodes, version and UID. Raises Refused for missing permissions and for a cluster without Nodes, NodefallError."""
    try:
        uid, version = cluster_uid(kube), server_version(kube)
        nodes = _list_nodes(kube)
    except KubeRejected as error:
        hint = _PERMISSIONS if error.status == 403 else error.hint
        raise Refused(f"the cluster cannot be read: {error.message}", hint=hint) from error
    if not nodes:
        raise Refused(f"{kube.server} has no Nodes: there is nothing to make an inventory of", hint="check --context")
    has_config, note = _has_kubeadm_config(kube)
    notes = (*(f"connection: {risk}" for risk in kube.risks), *([note] if note else []))
    return ClusterFacts(
        name, kubeconfig, context, kube.server, version, uid, nodes, has_kubeadm_config=has_config, notes=notes
    )


def _list_nodes(kube: KubeApi) -> tuple[ListedNode, ...]:
    """All Nodes by name. Raises NodefallError."""
    nodes: dict[str, ListedNode] = {}
    for page, restarts in iter_pages(kube, "/api/v1/nodes", _CODEC):
        if restarts:
            nodes.clear()
        for raw in page.items or ():
            try:
                node = _decode_node(raw)
            except DECODE_ERRORS as error:
                raise NodefallError(f"a Node cannot be decoded: {error}") from error
            nodes[node.name] = node
    return tuple(nodes[name] for name in sorted(nodes))


def _has_kubeadm_config(kube: KubeApi) -> tuple[bool, str]:
    """Whether kubeadm made the cluster, and a note where that cannot be read."""
    status = kube.request("GET", KUBEADM_CONFIG).status
    if status in (200, 404):
        return status == 200, ""
    return (
        False,
        f"whether kubeadm made the cluster is not known: get on configmap kubeadm-config was answered {status}",
    )
