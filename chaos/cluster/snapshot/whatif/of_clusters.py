"""Changes of the cluster: fewer or more nodes, versions, and settings of kubelets and of kube-controller-manager."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from chaos.cluster.snapshot.document import Contents, Object, is_control_plane, name_of
from chaos.cluster.snapshot.whatif.change import Apply, ChangeError, ChangeKind, node_named, seconds_of
from chaos.core.labels import HOSTNAME_LABEL

_VALUE = re.compile(r"([+-])(\d{1,3})(?::(.+))?", re.ASCII)
_VERSION = re.compile(r"v1\.\d{1,3}(\.\d{1,3})?", re.ASCII)
_OLDEST = 251
_BY_PRIORITY = "shutdownGracePeriodByPodPriority"
_GRACE_PERIODS = ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods")


def remove_node(contents: Contents, name: str) -> int:
    """Remove a node and everything that is bound to it. Returns the number of pods. Raises ChangeError."""
    node_named(contents, name)
    if len(contents.of("nodes")) == 1:
        raise ChangeError(f"{name} is the only node", "leave a node")
    contents.objects["nodes"] = [node for node in contents.of("nodes") if name_of(node) != name]
    contents.configs.pop(name, None)
    contents.hosts.pop(name, None)
    pods = contents.of("pods")
    contents.objects["pods"] = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") != name]
    attachments = contents.of("volumeattachments")
    contents.objects["volumeattachments"] = [each for each in attachments if _node(each) != name]
    return len(pods) - len(contents.objects["pods"])


def _node(attachment: Object) -> str:
    return str((attachment.get("spec") or {}).get("nodeName", ""))


def _parse_without(text: str) -> Apply:
    def apply(contents: Contents) -> str:
        pods = remove_node(contents, text)
        return f"{text} does not exist; its {pods} pods are placed again"

    return apply


def _node_names(contents: Contents) -> list[str]:
    return sorted(name_of(node) for node in contents.of("nodes"))


WITHOUT = ChangeKind("without", "NODE", "the cluster without that node", _parse_without, _node_names)


def _parse_nodes(text: str) -> Apply:
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
    labels = {**(metadata.get("labels") or {}), HOSTNAME_LABEL: name}
    new = {**template, "metadata": {**metadata, "name": name, "uid": f"node-{name}", "labels": labels}}
    spec = {key: value for key, value in (template.get("spec") or {}).items() if key != "unschedulable"}
    status = {**(template.get("status") or {}), "conditions": [{"type": "Ready", "status": "True"}]}
    contents.of("nodes").append({**new, "spec": spec, "status": status})
    for by_node in (contents.configs, contents.hosts):
        if name_of(template) in by_node:
            by_node[name] = dict(by_node[name_of(template)])


def _workers(contents: Contents) -> list[str]:
    """Names of the workers, sorted."""
    return sorted(name_of(node) for node in contents.of("nodes") if not is_control_plane(node))


NODES = ChangeKind(
    "nodes", "-N or +N[:NODE]", "fewer workers, or more workers like NODE (default: the last one)", _parse_nodes
)


def _parse_kubernetes(text: str) -> Apply:
    version = text if text.startswith("v") else f"v{text}"
    if not _VERSION.fullmatch(version):
        raise ChangeError(f"not a version of Kubernetes: {text!r}", "write v1.33 or v1.33.4")

    def apply(contents: Contents) -> str:
        before, contents.header["kubernetes"] = contents.header.get("kubernetes"), version
        return f"Kubernetes {version}, instead of {before}"

    return apply


KUBERNETES = ChangeKind("kubernetes", "VERSION", "version of Kubernetes, v1.31 to v1.36", _parse_kubernetes)


def _parse_systemd(text: str) -> Apply:
    if not text.isascii() or not text.isdigit() or not _OLDEST <= int(text) < 1000:
        raise ChangeError(f"not a version of systemd: {text!r}", f"write a number from {_OLDEST}, as 257")

    def apply(contents: Contents) -> str:
        for node in contents.of("nodes"):
            contents.hosts.setdefault(name_of(node), {})["systemd"] = int(text)
        return f"every host has systemd {int(text)}"

    return apply


SYSTEMD = ChangeKind("systemd", "VERSION", "version of systemd on all hosts, from 251", _parse_systemd)


def _parse_shutdown_grace(name: str, text: str) -> Apply:
    seconds = seconds_of(text)

    def apply(contents: Contents) -> str:
        for node in contents.of("nodes"):
            config = contents.configs.setdefault(name_of(node), {})
            config.pop(_BY_PRIORITY, None)  # excludes the two others
            config[name] = f"{seconds:g}s"
        return f"every kubelet has {name} {seconds:g}s"

    return apply


SHUTDOWN_GRACE = tuple(
    ChangeKind(
        name, "DURATION", f"{name} of all kubelets, without a list by priority", partial(_parse_shutdown_grace, name)
    )
    for name in _GRACE_PERIODS
)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise ChangeError(f"not a number: {text!r}", "write a number from 0")
    return number


def _count(text: str) -> int:
    if _number(text) != int(_number(text)):
        raise ChangeError(f"not a whole number: {text!r}", "write a whole number from 0")
    return int(_number(text))


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ChangeError(f"neither true nor false: {text!r}", "write true or false")
    return text == "true"


def _period(text: str) -> str:
    seconds = seconds_of(text)
    if not seconds:
        raise ChangeError("the period is 0", "write a duration such as 20s")
    return f"{seconds:g}s"


def _parse_flag(name: str, convert: Callable[[str], Any], text: str) -> Apply:
    value = convert(text)

    def apply(contents: Contents) -> str:
        contents.header["controllerManager"] = {**(contents.header.get("controllerManager") or {}), name: value}
        return f"kube-controller-manager has {name} {text}"

    return apply


def _flag(name: str, syntax: str, summary: str, convert: Callable[[str], Any]) -> ChangeKind:
    return ChangeKind(name, syntax, summary, partial(_parse_flag, name, convert))


FLAGS = (
    _flag("nodeMonitorGracePeriod", "DURATION", "silence after which a node is Unknown", _period),
    _flag("nodeEvictionRate", "NUMBER", "nodes per second that are tainted in a zone that is healthy", _number),
    _flag("secondaryNodeEvictionRate", "NUMBER", "the same, in a zone in which many nodes are lost", _number),
    _flag("unhealthyZoneThreshold", "NUMBER", "share of lost nodes from which a zone is that", _number),
    _flag("largeClusterSizeThreshold", "N", "nodes up to which such a zone is not evicted at all", _count),
    _flag("disableForceDetachOnTimeout", "true|false", "volumes stay attached to a lost node", _boolean),
)
