"""Discovery of groups and resources, unaggregated and aggregated.

Types: k8s.io/apimachinery/pkg/apis/meta/v1 APIResourceList and k8s.io/api/apidiscovery/v2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.lab.http.resources import RESOURCES, REVIEWS, SUBRESOURCES, Resource, Subresource

AGGREGATED_CONTENT_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def group_versions() -> list[str]:
    """Group versions of all groups, the core group first."""
    return sorted({group_version for group_version, _ in [*RESOURCES, *REVIEWS]}, key=lambda name: ("/" in name, name))


def resource_list(group_version: str) -> dict[str, Any] | None:
    """APIResourceList of a group version; None if the group version is unknown."""
    entries = [entry for resource in _resources(group_version) for entry in _entries(resource)]
    entries += [_entry(name, "", False, kind, ("create",)) for name, kind in _reviews(group_version)]
    if not entries:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def group_list() -> dict[str, Any]:
    """APIGroupList of all groups but the core group."""
    groups = [_group(name) for name in group_versions() if "/" in name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(name: str) -> dict[str, Any] | None:
    """APIGroup by name; None if the group is unknown."""
    groups = [_group(known) for known in group_versions() if known.partition("/")[0] == name and "/" in known]
    return {"kind": "APIGroup", "apiVersion": "v1", **groups[0]} if groups else None


def aggregated_discovery(core: bool) -> dict[str, Any]:
    """APIGroupDiscoveryList of the core group, or of all other groups."""
    items = [
        {
            "metadata": {"name": name.rpartition("/")[0], "creationTimestamp": None},
            "versions": [
                {
                    "version": name.rpartition("/")[2],
                    "freshness": "Current",
                    "resources": list(_resource_discovery(name)),
                }
            ],
        }
        for name in group_versions()
        if ("/" in name) != core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _resources(group_version: str) -> list[Resource]:
    result = [resource for (known, _), resource in RESOURCES.items() if known == group_version]
    return sorted(result, key=lambda resource: resource.plural)


def _reviews(group_version: str) -> list[tuple[str, str]]:
    return [(name, kind) for (known, name), kind in REVIEWS.items() if known == group_version]


def _subresources(resource: Resource) -> dict[str, Subresource]:
    result = {name: sub for (plural, name), sub in SUBRESOURCES.items() if plural == resource.plural}
    if resource.has_status:
        result["status"] = Subresource(resource.kind, resource.group_version, ("get", "patch", "update"))
    return result


def _group(group_version: str) -> dict[str, Any]:
    version = {"groupVersion": group_version, "version": group_version.rpartition("/")[2]}
    return {"name": group_version.partition("/")[0], "versions": [version], "preferredVersion": version}


def _entry(name: str, singular: str, namespaced: bool, kind: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": list(verbs)}


def _entries(resource: Resource) -> Iterator[dict[str, Any]]:
    """APIResources of a resource and its subresources; group and version only where they differ from the list's."""
    names = {"shortNames": [resource.short_name]} if resource.short_name else {}
    categories = {"categories": ["all"]} if resource.in_all else {}
    entry = _entry(resource.plural, resource.kind.lower(), resource.namespaced, resource.kind, _VERBS)
    yield {**entry, **names, **categories}
    for name, sub in sorted(_subresources(resource).items()):
        group, _, version = sub.group_version.rpartition("/")
        other = {} if sub.group_version == resource.group_version else {"group": group, "version": version}
        yield {**_entry(f"{resource.plural}/{name}", "", resource.namespaced, sub.kind, sub.verbs), **other}


def _resource_discovery(group_version: str) -> Iterator[dict[str, Any]]:
    for resource in _resources(group_version):
        subresources = [
            {"subresource": name, "responseKind": _gvk(sub.group_version, sub.kind), "verbs": list(sub.verbs)}
            for name, sub in sorted(_subresources(resource).items())
        ]
        yield {
            "resource": resource.plural,
            "responseKind": _gvk(group_version, resource.kind),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": resource.kind.lower(),
            "verbs": list(_VERBS),
            **({"shortNames": [resource.short_name]} if resource.short_name else {}),
            **({"categories": ["all"]} if resource.in_all else {}),
            **({"subresources": subresources} if subresources else {}),
        }
    for name, kind in _reviews(group_version):
        response = {"responseKind": _gvk(group_version, kind)}
        yield {"resource": name, "scope": "Cluster", "singularResource": "", "verbs": ["create"], **response}


def _gvk(group_version: str, kind: str) -> dict[str, str]:
    group, _, version = group_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}
