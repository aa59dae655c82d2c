"""Running containers as reported by the container runtime, independent of the API server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chaos.model.command import HostCommand
from chaos.model.fact import HostFact

# Some distributions install crictl outside of sudo's path.
_SCRIPT = (
    "PATH=$PATH:/usr/local/bin:/opt/bin:/var/lib/rancher/rke2/bin; export PATH;"
    ' exec crictl --runtime-endpoint "unix://$1" ps --state Running -o json'
)
_LABEL = "io.kubernetes."


class Containers(HostFact):
    """Mapping ``{"running": [{namespace, pod, uid, container, id, startedAt}]}``, as ``crictl ps`` lists them.

    ``startedAt`` is when the container was created, in seconds since the epoch; the kubelet starts it right after.
    """

    name = "containers"
    summary = "running containers, as reported by the container runtime"
    needs = ("runtime-socket",)

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:
        return HostCommand(("sh", "-c", _SCRIPT, "sh", str(known["runtime-socket"])), timeout=5.0)

    def parse(self, stdout: str, exit_code: int) -> dict[str, Any]:
        if exit_code:
            raise ValueError("crictl did not answer:")
        try:
            items = json.loads(stdout)["containers"] or []
            return {"running": sorted((_container(item) for item in items), key=lambda item: str(item["id"]))}
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError("crictl's list of containers is not understood") from error


def _container(item: dict[str, Any]) -> dict[str, Any]:
    """Entry of the fact, of a CRI runtime.v1.Container; ``createdAt`` is in nanoseconds."""
    labels = item["labels"]
    return {
        "namespace": labels[f"{_LABEL}pod.namespace"],
        "pod": labels[f"{_LABEL}pod.name"],
        "uid": labels[f"{_LABEL}pod.uid"],
        "container": labels[f"{_LABEL}container.name"],
        "id": item["id"],
        "startedAt": round(int(item["createdAt"]) / 1e9, 3),
    }


FACT = Containers()
