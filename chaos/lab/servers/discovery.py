"""Discovery: which groups and resources there are."""

from __future__ import annotations

from typing import Any

from chaos.lab.servers.resources import EVICTION, RESOURCES, REVIEW

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def discovery(group_version: str) -> dict[str, Any] | None:
    """The APIResourceList of a group's version, None if there is no such group."""
    found = [resource for (known, _), resource in RESOURCES.items() if known == group_version]
    entries: list[dict[str, Any]] = [
        {"name": r.plural, "singularName": r.kind.lower(), "namespaced": r.namespaced, "kind": r.kind, "verbs": VERBS}
        for r in found
    ]
    if group_version == REVIEW[0]:
        kind = "SelfSubjectAccessReview"
        entries = [{"name": REVIEW[1], "singularName": "", "namespaced": False, "kind": kind, "verbs": ["create"]}]
    if group_version == "v1":  # kubectl drain looks for it
        eviction = {"name": "/".join(EVICTION), "singularName": "", "namespaced": True, "kind": "Eviction"}
        entries.append({**eviction, "group": "policy", "version": "v1", "verbs": ["create"]})
    if not entries:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def groups() -> dict[str, Any]:
    """The APIGroupList."""
    names = sorted({group_version for group_version, _ in [*RESOURCES, REVIEW] if "/" in group_version})
    versions = [{"groupVersion": name, "version": name.rpartition("/")[2]} for name in names]
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {"name": name.partition("/")[0], "versions": [version], "preferredVersion": version}
            for name, version in zip(names, versions, strict=True)
        ],
    }
