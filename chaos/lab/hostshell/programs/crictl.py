"""crictl ps, in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.programs.options import UnknownOptionError, split_options
from chaos.lab.node.kubelet.runtime import Container

SOCKET = "/run/containerd/containerd.sock"
_VALUED = {
    "-r": "endpoint",
    "--runtime-endpoint": "endpoint",
    "-o": "output",
    "--output": "output",
    "--state": "state",
    "-s": "state",
}


async def crictl(process: Process, argv: list[str]) -> int:
    """``crictl -r unix://SOCKET ps --state Running -o json``, with the fields of the CRI's ListContainers."""
    try:
        options, words = split_options(argv[1:], {}, _VALUED)
    except UnknownOptionError as error:
        return process.fail(f"crictl: {error}")
    endpoint = options.get("endpoint", [""])[-1]
    if words != ["ps"] or options.get("output") != ["json"] or options.get("state", ["Running"]) != ["Running"]:
        return process.fail("crictl: the lab simulates only crictl ps --state Running -o json")
    if endpoint != f"unix://{SOCKET}":
        return _no_endpoint(process, endpoint, "no such file or directory")
    if not process.is_root:
        return _no_endpoint(process, endpoint, "permission denied")
    if not process.host.machine.runtime.is_available:
        return _no_endpoint(process, endpoint, "connection refused")
    process.out(json.dumps({"containers": list(_running_containers(process.host))}, indent=2) + "\n")
    return 0


def _no_endpoint(process: Process, endpoint: str, reason: str) -> int:
    path = endpoint.removeprefix("unix://")
    return process.fail(
        f'FATA[0000] validate service connection: validate CRI v1 runtime API for endpoint "{endpoint}": rpc error: '
        f'code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix {path}: '
        f'connect: {reason}"'
    )


def _running_containers(host: HostSystem) -> Iterator[dict[str, Any]]:
    runtime = host.machine.runtime
    for uid in runtime.pods():
        namespace, name = runtime.names[uid]
        for container in runtime.containers(uid):
            if container.state == "running":
                yield _container_entry(container, namespace, name, uid)


def _container_entry(container: Container, namespace: str, pod: str, uid: str) -> dict[str, Any]:
    """One item of ListContainersResponse; createdAt is in nanoseconds, as a string."""
    return {
        "id": container.id.removeprefix("containerd://"),
        "metadata": {"name": container.name, "attempt": container.restart_count},
        "state": "CONTAINER_RUNNING",
        "createdAt": f"{container.started_at:.6f}".replace(".", "") + "000",
        "labels": {
            "io.kubernetes.container.name": container.name,
            "io.kubernetes.pod.name": pod,
            "io.kubernetes.pod.namespace": namespace,
            "io.kubernetes.pod.uid": uid,
        },
    }


PROGRAMS: dict[str, Program] = {"crictl": crictl}
