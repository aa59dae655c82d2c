"""The experiment's workload: applied in a separate namespace, labelled, and removed with it.

PriorityClasses are cluster-scoped, so they are removed by the run's label.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.api_fact import object_fact
from chaos.core.api_path import object_path, resource_path
from chaos.core.command import MERGE_PATCH, KubeCommand
from chaos.core.errors import Aborted
from chaos.core.labels import MANAGED_BY_LABEL, RUN_LABEL, name_from_run
from chaos.core.ports import KubeApi

PRIORITY_CLASSES = resource_path("scheduling.k8s.io/v1", "priorityclasses")
_GROUP = "[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # of an API, or its version: no escape and no query
_CONFINED = ("Deployment", "StatefulSet", "ReplicaSet", "Job", "Pod")
_IRREGULAR = {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}


def namespace_for(run: str) -> str:
    """A namespace that only this run uses."""
    return name_from_run(run, "nodefall-")


def namespaces_for(run: str) -> tuple[str, ...]:
    """What :func:`namespace_for` returns now, and what it did in 0.2 for names of 48 characters and more."""
    return namespace_for(run), f"nodefall-{run}"[:63].rstrip("-")


class WorkloadState(Struct, frozen=True):
    """The data for the removal of a workload: whether it has PriorityClasses, and the paths of objects with
    finalizers.
    """

    priority_classes: bool = False
    finalizers: tuple[str, ...] = ()


def workload_state(workload: Sequence[KubeCommand]) -> WorkloadState:
    """State of a workload, from the commands that create it."""
    objects = [(command.path, command.body["metadata"]) for command in workload if command.body]
    named = [(path, metadata) for path, metadata in objects if "name" in metadata]
    return WorkloadState(
        priority_classes=any(command.path == PRIORITY_CLASSES for command in workload),
        finalizers=tuple(
            object_path(path, str(metadata["name"])) for path, metadata in named if metadata.get("finalizers")
        ),
    )


def removal(state: WorkloadState, namespace: str, run: str) -> Undo:
    """The undo that removes the workload, with its proof. Raises ValueError for a path outside the workload."""
    gone = FactCheck(f"namespace/{namespace}", "gone")
    path = resource_path("v1", "namespaces", name=namespace)
    delete = KubeCommand("DELETE", path, accept=(200, 202, 404))
    label = object_fact(path, f"/metadata/labels/{RUN_LABEL.replace('/', '~1')}")
    # Only the namespace of this run: another one may have its name.
    steps, proof = [UndoStep(delete, unless=gone, when=(FactCheck(label, name_from_run(run)),))], [gone]
    steps += [_remove_finalizers(path, namespace) for path in state.finalizers]
    if state.priority_classes:
        ours = f"{PRIORITY_CLASSES}?labelSelector={quote(f'{RUN_LABEL}={name_from_run(run)}')}"
        none = FactCheck(object_fact(ours, "/items/0/metadata/name"), None)
        steps.append(UndoStep(KubeCommand("DELETE", ours), unless=none))
        proof.append(none)
    return Undo(tuple(steps), tuple(proof))


def _remove_finalizers(path: str, namespace: str) -> UndoStep:
    """Remove the finalizers of an object: no controller does, and the namespace waits for them."""
    inside = rf"/apis?/{_GROUP}(?:/{_GROUP})?/namespaces/{re.escape(namespace)}/[a-z]+|{re.escape(PRIORITY_CLASSES)}"
    if not re.fullmatch(rf"(?:{inside})/[A-Za-z0-9][A-Za-z0-9.:-]*", path):
        raise ValueError(f"{path} does not belong to the workload in {namespace}")
    free = KubeCommand("PATCH", path, {"metadata": {"finalizers": None}}, MERGE_PATCH, accept=(200, 404))
    return UndoStep(free, unless=FactCheck(object_fact(path, "/metadata/finalizers"), None))


def create_commands(
    manifests: list[dict[str, Any]], namespace: str, run: str, nodes: Sequence[str] = ()
) -> list[KubeCommand]:
    """The namespace, then every object in it. A PriorityClass that exists already is refused by the API server.

    ``nodes``: confine the pods to them, by node affinity; those of DaemonSets are not confined.
    """
    labels = {RUN_LABEL: name_from_run(run), **MANAGED_BY_LABEL}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    created = [KubeCommand("POST", "/api/v1/namespaces", body)]
    for manifest in manifests:
        obj = copy.deepcopy(manifest)
        if nodes and obj["kind"] in _CONFINED:
            _confine(obj["spec"] if obj["kind"] == "Pod" else obj["spec"]["template"]["spec"], nodes)
        own = "" if obj["kind"] == "PriorityClass" else namespace
        metadata = obj.setdefault("metadata", {})
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
        if own:
            metadata["namespace"] = own
        created.append(KubeCommand("POST", collection_path(obj, own), obj))
    return created


def _confine(pod_spec: dict[str, Any], nodes: Sequence[str]) -> None:
    """Add the nodes to the required node affinity: a term for each, as a field takes one value."""
    affinity = pod_spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*term.get("matchFields", []), _named(node)]}
        for term in required.get("nodeSelectorTerms") or [{}]
        for node in nodes
    ]


def _named(node: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def collection_path(obj: dict[str, Any], namespace: str) -> str:
    """Path to create an object of this kind at; the namespace of cluster-scoped kinds is ""."""
    version, kind = obj["apiVersion"], obj["kind"]
    plural = _IRREGULAR.get(kind) or re.sub(r"(?<=s)$", "e", re.sub(r"y$", "ie", kind.lower())) + "s"
    return resource_path(version, plural, namespace)


def apply(kube: KubeApi, todo: list[KubeCommand]) -> None:
    """Create all objects. Raises Aborted with the API server's message."""
    for command in todo:
        response = kube.request(command.method, command.path, body=command.body)
        if response.status not in command.accept:
            name = (command.body or {}).get("metadata", {}).get("name")
            raise Aborted(
                f"{command} ({name}): the API server answered {response.status}: {_status_message(response.body)}"
            )


def _status_message(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
