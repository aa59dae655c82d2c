"""Static pods of a recording: their manifests on the machines, so that the lab's kubelets run them."""

from __future__ import annotations

from typing import Any

import msgspec

from chaos.lab.cluster import Cluster
from chaos.lab.node.kubelet.static_pods import MANIFESTS, is_mirror, read_manifests
from chaos.lab.objects.accessors import Object, condition_status, name_of, namespace_of, node_of

_MIRROR = "kubernetes.io/config.mirror"
_FIELDS = ("containers", "priority", "priorityClassName", "terminationGracePeriodSeconds", "hostNetwork")


def restore_static_pod(cluster: Cluster, mirror: Object) -> None:
    """Write the manifest of a restored mirror pod that is Ready; the mirror names it. Others stay as they are."""
    machine = cluster.machines.get(node_of(mirror))
    if machine is None or not is_mirror(mirror) or condition_status(mirror, "Ready") != "True":
        return
    name = name_of(mirror).removesuffix(f"-{machine.name}")
    spec: dict[str, Any] = {key: mirror["spec"][key] for key in _FIELDS if mirror["spec"].get(key) is not None}
    notes = {key: value for key, value in mirror["metadata"]["annotations"].items() if not key.startswith("kubernetes")}
    metadata = {"name": name, "namespace": namespace_of(mirror), "annotations": notes}
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).decode()
    path = f"{MANIFESTS}{name}.yaml"
    machine.files[path] = text
    mirror["metadata"]["annotations"][_MIRROR] = read_manifests({path: text}, machine.name)[0]["metadata"]["uid"]
