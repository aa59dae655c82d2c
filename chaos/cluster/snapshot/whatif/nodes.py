"""``nodes=-1``, ``nodes=+2``: fewer workers, or more that are as the last one."""

from __future__ import annotations

import re

from chaos.cluster.snapshot.contents import Contents, Object, name_of
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind, node_named
from chaos.cluster.snapshot.whatif.without import remove_node

_VALUE = re.compile(r"([+-])(\d{1,3})(?::(.+))?", re.ASCII)
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_HOSTNAME = "kubernetes.io/hostname"


def _parse(text: str) -> Apply:
    found = _VALUE.fullmatch(text)
    if not found or not int(found[2]):
        raise ChangeError(
            f"not a change of the number of nodes: {text!r}", "write -1, +2, or +1:NODE for one like NODE"
        )
    sign, number, like = found[1], int(found[2]), found[3]
    if sign == "-" and like:
        raise ChangeError(f"not a change of the number of nodes: {text!r}", f"write without={like}")
    return lambda contents: _remove(contents, number) if sign == "-" else _add(contents, number, like)


def _remove(contents: Contents, number: int) -> str:
    names = _workers(contents)[-number:]
    if len(names) < number or len(names) == len(_workers(contents)):
        raise ChangeError(f"the snapshot has only {len(_workers(contents))} workers", "leave a worker")
    pods = sum(remove_node(contents, name) for name in names)
    return f"{', '.join(names)} not there; {pods} pods are placed again"


def _add(contents: Contents, number: int, like: str | None) -> str:
    name = like or (_workers(contents) or [""])[-1]
    template = node_named(contents, name)
    taken = {name_of(node) for node in contents.of("nodes")}
    added: list[str] = []
    for index in range(1, number + len(taken) + 1):
        if (new := f"{name}-more-{index}") not in taken and len(added) < number:
            _copy(contents, template, new)
            added.append(new)
    return f"{', '.join(added)} as {name}"


def _copy(contents: Contents, template: Object, name: str) -> None:
    metadata = template["metadata"]
    labels = {**(metadata.get("labels") or {}), _HOSTNAME: name}
    new = {**template, "metadata": {**metadata, "name": name, "uid": f"node-{name}", "labels": labels}}
    spec = {key: value for key, value in (template.get("spec") or {}).items() if key != "unschedulable"}
    status = {**(template.get("status") or {}), "conditions": [{"type": "Ready", "status": "True"}]}
    contents.of("nodes").append({**new, "spec": spec, "status": status})
    for by_node in (contents.configs, contents.hosts):
        if name_of(template) in by_node:
            by_node[name] = dict(by_node[name_of(template)])


def _workers(contents: Contents) -> list[str]:
    """Names of the workers, sorted."""
    return sorted(
        name_of(node)
        for node in contents.of("nodes")
        if not any(key in (node["metadata"].get("labels") or {}) for key in _CONTROL_PLANE)
    )


KIND = ChangeKind("nodes", "-N or +N[:NODE]", "fewer workers, or more that are as NODE (default: the last one)", _parse)
