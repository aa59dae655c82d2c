"""Versions of Node objects with field managers, for stories."""

from __future__ import annotations

from typing import Any

from tests.kit.story import Story, stamp


def node(
    story: Story,
    t: float,
    name: str = "n2",
    *,
    ready: str = "True",
    message: str = "",
    cordoned: bool = False,
    taints: str = "",
    owners: dict[str, str] | None = None,
    type_: str = "MODIFIED",
    uid: str = "",
    note: str = "",
    labels: dict[str, str] | None = None,
    created: float | None = None,
    **info: str,
) -> Story:
    """A version of a Node. ``owners``: field managers by field; ``info``: of nodeInfo."""
    entries = [
        {"manager": manager, "operation": "Update", "time": stamp(t), "fieldsV1": {"f:spec": {f"f:{field}": {}}}}
        for field, manager in (owners or {}).items()
    ]
    metadata: dict[str, Any] = {"name": name, "uid": uid or f"uid-{name}", "managedFields": entries, "labels": labels}
    if created is not None:
        metadata["creationTimestamp"] = stamp(created)
    spec: dict[str, Any] = {"unschedulable": True} if cordoned else {}
    spec["taints"] = [dict(zip(("key", "effect"), taint.split(":"), strict=True)) for taint in taints.split()]
    status = {
        "conditions": [{"type": "Ready", "status": ready, "message": message}],
        "nodeInfo": {"bootID": f"boot-{name}"} | info,
    }
    return story.add(t, "nodes", type_, {"metadata": metadata, "spec": spec, "status": status}, note=note)
