"""etcdctl, of the image of etcd: the list of members, their status, and the health of the local one.

crictl: ps in JSON; ps, pods, stop and exec for the pods of a label.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from chaos.lab.hostshell.process import HostSystem, Process, Program, UnknownOptionError, split_options
from chaos.lab.node.etcd import EtcdCluster, member_id
from chaos.lab.node.kubelet.runtime import Container

_PKI = "/etc/kubernetes/pki/etcd"
_ACCESS = [
    "--endpoints=https://127.0.0.1:2379",
    f"--cacert={_PKI}/ca.crt",
    f"--cert={_PKI}/healthcheck-client.crt",
    f"--key={_PKI}/healthcheck-client.key",
]
_CLUSTER_ID, _REVISION = 14841639068965178418, 5120
_TIMEOUT = 5.0  # --command-timeout
_LATE = "context deadline exceeded"


async def etcdctl(process: Process, argv: list[str]) -> int:
    """``member list -w json``, ``endpoint status --cluster -w json`` and ``endpoint health``, with kubeadm's paths."""
    machine = process.host.machine
    if argv[1:5] != _ACCESS:
        return process.fail(f"etcdctl: the lab simulates only etcdctl {' '.join(_ACCESS)}", 128)
    match argv[5:]:
        case ["member", "list", "-w", "json"]:
            return await _member_list(process, machine.etcd)
        case ["endpoint", "status", "--cluster", "-w", "json"]:
            return await _status(process, machine.etcd)
        case ["endpoint", "health"]:
            return await _health(process)
    return process.fail(f"etcdctl: the lab does not simulate {' '.join(argv[5:])}", 128)


def _header(etcd: EtcdCluster, member: str) -> dict[str, int]:
    return {"cluster_id": _CLUSTER_ID, "member_id": member_id(member), "raft_term": etcd.term}


def _url(process: Process, member: str) -> str:
    return f"https://{process.host.machine.network.resolve(member)['ipv4']}:2379"


def _members(etcd: EtcdCluster, local: str) -> dict[str, object]:
    """A MemberListResponse; the URLs are those of names."""
    members = [
        {
            "ID": member_id(name),
            "name": name,
            "peerURLs": [f"https://{name}:2380"],
            "clientURLs": [f"https://{name}:2379"],
        }
        for name in etcd.members
    ]
    return {"header": _header(etcd, local), "members": members}


async def _member_list(process: Process, etcd: EtcdCluster) -> int:
    if not await _is_led(process):
        return process.fail(f"Error: {_LATE}")
    process.out(json.dumps(_members(etcd, process.host.machine.name)) + "\n")
    return 0


async def _status(process: Process, etcd: EtcdCluster) -> int:
    """The status of each member that answers, in turn. Each silent member takes time, and makes the exit code 1."""
    if not await _is_led(process):
        return process.fail(f"Error: failed to fetch endpoints from etcd cluster member list: {_LATE}")
    found = []
    for name in etcd.members:
        if name not in etcd.running():
            await process.host.lockstep.wait_until(process.host.sim.now + _TIMEOUT)
            process.err(f"Failed to get the status of endpoint {_url(process, name)} ({_LATE})\n")
            continue
        leader = etcd.leader()
        header = {**_header(etcd, name), "revision": _REVISION}
        status = {"header": header, "version": "3.6.5", "dbSize": 4096, "leader": member_id(leader) if leader else 0}
        problems = {} if leader else {"errors": ["etcdserver: no leader"]}
        found.append({"Endpoint": _url(process, name), "Status": {**status, "raftTerm": etcd.term, **problems}})
    process.out(json.dumps(found) + "\n")
    return 0 if len(found) == len(etcd.members) else 1


async def _is_led(process: Process) -> bool:
    """Whether a majority confirms a read before it times out; a list of members is one since etcd 3.5."""
    host = process.host
    etcd, end = host.machine.etcd, host.sim.now + _TIMEOUT
    when = etcd.ready_at()
    await host.lockstep.wait_until(end if when is None else min(when, end))
    return bool(etcd.leader())


async def _health(process: Process) -> int:
    if await _is_led(process):
        process.out("https://127.0.0.1:2379 is healthy: successfully committed proposal: took = 9.1ms\n")
        return 0
    process.err(f"https://127.0.0.1:2379 is unhealthy: failed to commit proposal: {_LATE}\n")
    return process.fail("Error: unhealthy cluster")


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


PROGRAMS: dict[str, Program] = {
    "crictl": crictl,
}
