"""Running containers as reported by the container runtime, independent of the API server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

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


class Containers(HostFact):
    """Mapping ``{"running": [{namespace, pod, uid, container, id, startedAt}]}``, as ``crictl ps`` lists them.

    Where there is no crictl, ``ctr`` of containerd is used. ``startedAt`` is when the container was created, in seconds
    since the epoch; the kubelet starts it right after.
    """

    name = "containers"
    summary = "running containers, as reported by the container runtime"
    needs = ("runtime-socket", "runtime-client")

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        client, socket = str(known["runtime-client"]), str(known["runtime-socket"])
        if client.endswith("/ctr"):
            return HostCommand(("sh", "-c", _CTR_SCRIPT, "sh", client, socket), timeout=10.0)
        argv = (client, "--runtime-endpoint", f"unix://{socket}", "ps", "--state", "Running", "-o", "json")
        return HostCommand(argv, timeout=5.0)

    def parse(self, stdout: str, exit_code: int) -> dict[str, Any]:
        if exit_code:
            raise ValueError("the container runtime's client did not answer:")
        try:
            found = _of_ctr(stdout) if stdout.startswith("ctr\n") else _of_crictl(stdout)
            return {"running": sorted(found, key=lambda item: str(item["id"]))}
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError("the list of containers is not understood") from error


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


FACT = Containers()
