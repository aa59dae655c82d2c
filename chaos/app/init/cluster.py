"""Which kubeconfig an inventory is made from, and what it needs to know of that cluster. Changes nothing there."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from chaos.app.discovery.nodes import KUBEADM_CONFIG, ListedNode
from chaos.app.discovery.proposal import ClusterFacts
from chaos.cluster.client import ApiClient
from chaos.cluster.cluster_state import cluster_uid, server_version
from chaos.cluster.errors import KubeRejected
from chaos.cluster.reads import iter_pages
from chaos.cluster.watch_codec import DECODE_ERRORS, WatchCodec
from chaos.core.errors import NodefallError, Refused, UsageError, bad_input
from chaos.core.ports import KubeApi
from chaos.core.resources import RESOURCES
from chaos.documents.document import read_document
from chaos.documents.yaml_tree import to_builtins

_CODEC = WatchCodec(RESOURCES["nodes"])
_decode_node = msgspec.json.Decoder(ListedNode).decode
_PERMISSIONS = "grant get on the namespace kube-system and list on nodes: without them there is no inventory"
_MAX_NAME = 63  # characters, as of a label's value


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


def default_kubeconfig() -> Path:
    """That of KUBECONFIG, else ~/.kube/config. Raises UsageError if the variable names several."""
    paths = [text for text in os.environ.get("KUBECONFIG", "").split(os.pathsep) if text]
    if len(paths) > 1:
        raise UsageError("KUBECONFIG names several files, and an inventory has one", hint="give --kubeconfig FILE")
    return Path(paths[0]) if paths else Path("~/.kube/config").expanduser()


def inventory_name(context: str) -> str:
    """A context as the name of an inventory and its file: of an ARN, say, what follows the last slash."""
    name = re.sub(r"[^a-z0-9]+", "-", context.rpartition("/")[2].lower()).strip("-")[:_MAX_NAME].strip("-")
    return name or "cluster"


def context_names(kubeconfig: Path) -> tuple[list[str], str]:
    """Names of the contexts, and the current one, "" for none. Raises BadInput for a file that is no kubeconfig."""
    if not kubeconfig.is_file():
        raise bad_input(str(kubeconfig), "there is no such kubeconfig", "give --kubeconfig FILE")
    document: Any = to_builtins(read_document(kubeconfig))
    contexts = document.get("contexts") or []
    try:
        return [str(each["name"]) for each in contexts], str(document.get("current-context") or "")
    except (TypeError, KeyError) as error:
        raise bad_input(str(kubeconfig), "its contexts have no names", "kubectl config get-contexts") from error


def written_path(kubeconfig: Path) -> str:
    """The path as an inventory has it: from the home directory, else absolute."""
    path, home = kubeconfig.absolute(), Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
