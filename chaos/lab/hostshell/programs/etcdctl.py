"""etcdctl, of the image of etcd: the list of members, their status, and the health of the local one."""

from __future__ import annotations

import json

from chaos.lab.hostshell.process import Process
from chaos.lab.node.etcd import EtcdCluster, member_id

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
    """Of the members that answer, one after the other; each of the others takes time, and the exit code is 1."""
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
