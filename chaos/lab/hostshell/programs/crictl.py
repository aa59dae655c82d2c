"""crictl: ps in JSON; ps, pods, stop and exec for the pods of a label."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.programs.etcdctl import etcdctl
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
    "--label": "label",
    "--timeout": "timeout",
}
_FLAGS = {"--quiet": "quiet"}
_LABEL = "io.kubernetes."


_VERBS = {"ps": "Running", "pods": "Ready", "stop": "", "exec": ""}  # and the only state that is asked for
_KILLED = 137


async def crictl(process: Process, argv: list[str]) -> int:
    """``crictl -r unix://SOCKET ps --state Running -o json``, with the fields of the CRI's ListContainers.

    Also ``ps`` and ``pods`` with ``--quiet --label KEY=VALUE``, ``stop --timeout 0 ID`` and ``exec ID etcdctl``.
    """
    program = argv.index("etcdctl") if "etcdctl" in argv else len(argv)
    try:
        options, words = split_options(argv[1:program], _FLAGS, _VALUED)
    except UnknownOptionError as error:
        return process.fail(f"crictl: {error}")
    endpoint = options.get("endpoint", [""])[-1]
    verb = words[0] if words else ""
    is_known = verb in _VERBS and ("quiet" in options or options.get("output") == ["json"] or verb in ("stop", "exec"))
    if not is_known or options.get("state", [_VERBS[verb]]) != [_VERBS[verb]]:
        return process.fail(f"crictl: the lab simulates only {', '.join(_VERBS)}, and not {' '.join(argv[1:])}")
    if why := _unreachable(process, endpoint):
        return _no_endpoint(process, endpoint, why)
    return await _run(process, options, words, argv[program:])


def _unreachable(process: Process, endpoint: str) -> str:
    if endpoint != f"unix://{SOCKET}":
        return "no such file or directory"
    if not process.is_root:
        return "permission denied"
    return "" if process.host.machine.runtime.is_available else "connection refused"


async def _run(process: Process, options: dict[str, list[str]], words: list[str], program: list[str]) -> int:
    labels = dict(label.split("=", 1) for label in options.get("label", []))
    match words:
        case ["ps"]:
            return _list(process, labels, is_quiet="quiet" in options)
        case ["pods"]:
            process.out("".join(f"{uid.replace('-', '')}\n" for uid in _ready_pods(process.host, labels)))
            return 0
        case ["stop", *ids] if options.get("timeout") == ["0"]:
            return max((_kill(process, identity) for identity in ids), default=1)
        case ["exec", identity]:
            return await _exec(process, identity, program)
    return process.fail(f"crictl: the lab does not simulate {' '.join(words)} with these options")


def _list(process: Process, labels: dict[str, str], *, is_quiet: bool) -> int:
    found = [item for item in _running_containers(process.host) if labels.items() <= item["labels"].items()]
    if is_quiet:
        process.out("".join(f"{item['id']}\n" for item in found))
    else:
        process.out(json.dumps({"containers": found}, indent=2) + "\n")
    return 0


def _ready_pods(host: HostSystem, labels: dict[str, str]) -> Iterator[str]:
    """UIDs of the pods whose sandbox is ready: containers run in it, or have exited by themselves."""
    runtime = host.machine.runtime
    for uid in runtime.pods():
        namespace, name = runtime.names[uid]
        known = {f"{_LABEL}pod.name": name, f"{_LABEL}pod.namespace": namespace, f"{_LABEL}pod.uid": uid}
        containers = runtime.containers(uid)
        if labels.items() <= known.items() and any(c.state == "running" or c.has_own_exit for c in containers):
            yield uid


def _kill(process: Process, identity: str) -> int:
    """SIGKILL, as the time-out is 0."""
    runtime = process.host.machine.runtime
    for uid in runtime.pods():
        if any(item.id == f"containerd://{identity}" and item.state == "running" for item in runtime.containers(uid)):
            runtime.end(uid, _KILLED)
            process.host.machine.etcd.leader()  # its end is noticed
            process.out(f"{identity}\n")
            return 0
    return process.fail(
        f'E0101 00:00:00.000000 1 log.go:32] "StopContainer failed" containerID="{identity}": not found'
    )


async def _exec(process: Process, identity: str, argv: list[str]) -> int:
    """A program in the container of etcd."""
    machine = process.host.machine
    member = machine.etcd.process(machine.name) if machine.name in machine.etcd.members else None
    if member is None or member.id != f"containerd://{identity}" or not argv:
        return process.fail(f"crictl: the lab runs only etcdctl, in the container of etcd, and not in {identity}")
    code = await etcdctl(process, argv)
    return (
        process.fail(f"execing command in container {identity}: command terminated with exit code {code}")
        if code
        else 0
    )


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
