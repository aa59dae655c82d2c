"""The container runtime and its containers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from chaos.core.command import HostCommand
from chaos.core.fact import ANY_TEXT, Known, host_fact, lines

SOCKETS = (
    "/run/k3s/containerd/containerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
    "/run/cri-dockerd.sock",
    "/run/crio/crio.sock",
    "/run/containerd/containerd.sock",
)


@host_fact(
    "runtime-socket",
    "socket of the container runtime",
    HostCommand(("find", *SOCKETS, "-maxdepth", "0", "-type", "s")),
    form=lines(*map(re.escape, SOCKETS)),
)
def runtime_socket(stdout: str, exit_code: int) -> str:
    """Text: path of the first socket that exists, those of distributions before the common ones."""
    existing = [path for path in SOCKETS if path in stdout.split()]
    if exit_code not in (0, 1) or not existing:
        raise ValueError("none of " + ", ".join(SOCKETS) + " exists")
    return existing[0]


# Those of distributions are not in the path of sudo: rke2 and k3s, k0s, Flatcar, microk8s, NixOS.
_CLIENT_DIRECTORIES = (
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/opt/bin",
    "/var/lib/rancher/rke2/bin",
    "/var/lib/rancher/k3s/data/current/bin",
    "/var/lib/k0s/bin",
    "/snap/microk8s/current/bin",
    "/run/current-system/sw/bin",
)
CLIENT_PATHS = tuple(f"{directory}/{name}" for name in ("crictl", "ctr") for directory in _CLIENT_DIRECTORIES)


@host_fact(
    "runtime-client",
    "program that lists the containers of the runtime: crictl or ctr",
    HostCommand(("find", *CLIENT_PATHS, "-maxdepth", "0")),
    form=lines(*map(re.escape, CLIENT_PATHS)),
)
def runtime_client(stdout: str, exit_code: int) -> str:
    """Text: path of ``crictl``, else of ``ctr``, containerd's own client."""
    existing = [path for path in CLIENT_PATHS if path in stdout.split()]
    if exit_code not in (0, 1):
        raise ValueError("find did not answer")
    if not existing:
        raise ValueError("neither crictl nor ctr is installed")
    return existing[0]


_LABEL = "io.kubernetes."
_FIELDS = {
    "namespace": f"{_LABEL}pod.namespace",
    "pod": f"{_LABEL}pod.name",
    "uid": f"{_LABEL}pod.uid",
    "container": f"{_LABEL}container.name",
}
# `containers info` prints the environment of a container too, which must not leave the host. A container that ended
# between the two commands makes the list incomplete, and then unknown.
_CTR_SCRIPT = r"""
list=$("$1" --connect-timeout 3s -a "$2" -n k8s.io tasks ls) || exit
echo ctr
printf '%s\n' "$list" | while read -r id pid status; do
  [ "$status" != RUNNING ] || "$1" -a "$2" -n k8s.io containers info "$id" || echo incomplete
done | sed -nE '/^ *"(ID|CreatedAt|io\.kubernetes\.(container\.name|pod\.(name|namespace|uid)))": "[^"]*",?$/s/^ *//p
/^incomplete$/p'
"""


def _containers_command(known: Known) -> HostCommand:
    client, socket = str(known["runtime-client"]), str(known["runtime-socket"])
    if client.endswith("/ctr"):
        return HostCommand(("sh", "-c", _CTR_SCRIPT, "sh", client, socket), timeout=10.0)
    argv = (client, "--runtime-endpoint", f"unix://{socket}", "ps", "--state", "Running", "-o", "json")
    return HostCommand(argv, timeout=5.0)


# Running containers as reported by the container runtime, independent of the API server.
@host_fact(
    "containers",
    "running containers, as reported by the container runtime",
    _containers_command,
    needs=("runtime-socket", "runtime-client"),
    form=ANY_TEXT,
)
def containers(stdout: str, exit_code: int) -> dict[str, Any]:
    """Mapping ``{"running": [{namespace, pod, uid, container, id, startedAt}]}``, as ``crictl ps`` lists them.

    Where there is no crictl, ``ctr`` of containerd is used. ``startedAt`` is when the container was created, in seconds
    since the epoch; the kubelet starts it right after.
    """
    if exit_code:
        raise ValueError("the container runtime's client did not answer:")
    try:
        found = _of_ctr(stdout) if stdout.startswith("ctr\n") else _of_crictl(stdout)
        return {"running": sorted(found, key=lambda item: str(item["id"]))}
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("cannot parse the list of containers") from error


def _of_crictl(stdout: str) -> Iterator[dict[str, Any]]:
    """Entries of CRI runtime.v1.Containers; ``createdAt`` is in nanoseconds."""
    for item in json.loads(stdout)["containers"] or ():
        yield _entry(item["labels"], item["id"], int(item["createdAt"]) / 1e9)


def _of_ctr(stdout: str) -> Iterator[dict[str, Any]]:
    """Entries of containerd's containers: lines of their JSON, the ID first, the labels before the time of creation.

    The same names follow as annotations. The sandbox of a pod has no name of a container.
    """
    labels: dict[str, str] | None = None
    for line in stdout.splitlines()[1:]:
        ((key, value),) = json.loads(f"{{{line.rstrip(',')}}}").items()
        if key == "ID":
            labels = {key: value}
        elif labels is not None and key != "CreatedAt":
            labels[key] = value
        elif labels is not None:
            if _FIELDS["container"] in labels:
                yield _entry(labels, labels["ID"], datetime.fromisoformat(value).timestamp())
            labels = None


def _entry(labels: Mapping[str, Any], identity: Any, created: float) -> dict[str, Any]:
    return {name: labels[label] for name, label in _FIELDS.items()} | {"id": identity, "startedAt": round(created, 3)}


# kubeadm; k3s; rke2.
MANIFEST_FOLDERS = (
    "/etc/kubernetes/manifests",
    "/var/lib/rancher/k3s/agent/pod-manifests",
    "/var/lib/rancher/rke2/agent/pod-manifests",
)


def _static_pod_files_command(known: Known) -> HostCommand:
    folder = known["kubelet-flags"].get("pod-manifest-path")
    folders = (folder,) if folder else MANIFEST_FOLDERS
    return HostCommand(("find", *folders, "-maxdepth", "1", "-type", "f", "!", "-name", ".*"))


@host_fact(
    "static-pod-files",
    "manifests of static pods on the host",
    _static_pod_files_command,
    needs=("kubelet-flags",),
    form=lines("/[^\\n]+"),
)
def static_pod_files(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of paths, without names that begin with a dot, which the kubelet ignores."""
    if exit_code not in (0, 1):  # 1: some of the folders do not exist
        raise ValueError("find did not answer")
    return sorted(stdout.splitlines())
