"""Finds the problems for which a lab would reject a workload, without starting a lab."""

from __future__ import annotations

from chaos.lab.apiserver.admission import InvalidError
from chaos.lab.cluster import Cluster
from chaos.lab.http.resources import RESOURCES
from chaos.lab.objects import Object
from chaos.lab.spec import LabSpec, NodeSpec

_NAMESPACE = "workload"


def rejections(objects: list[Object]) -> list[tuple[int, str]]:
    """Index and reason of each object that a lab rejects, if they are created in this order in a new namespace."""
    registry = Cluster(LabSpec(nodes=[NodeSpec(name="node")])).registry
    registry.create("namespaces", {"metadata": {"name": _NAMESPACE}})
    plurals = {(item.group_version, item.kind): item.plural for item in RESOURCES.values()}
    found = []
    for index, obj in enumerate(objects):
        plural = plurals.get((obj["apiVersion"], obj["kind"]))
        if plural is None:
            found.append((index, f"the lab does not serve {obj['apiVersion']} {obj['kind']}"))
            continue
        try:
            registry.create(plural, {**obj, "metadata": {**obj.get("metadata", {}), "namespace": _NAMESPACE}})
        except InvalidError as error:
            found.append((index, str(error)))
    return found
