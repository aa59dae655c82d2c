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


async def etcdctl(process: Process, argv: list[str]) -> int:
    """``member list -w json``, ``endpoint status --cluster -w json`` and ``endpoint health``, with kubeadm's paths."""
    machine = process.host.machine
    if argv[1:5] != _ACCESS:
        return process.fail(f"etcdctl: the lab simulates only etcdctl {' '.join(_ACCESS)}", 128)
    match argv[5:]:
        case ["member", "list", "-w", "json"]:
            process.out(json.dumps(_members(machine.etcd, machine.name)) + "\n")
            return 0
        case ["endpoint", "status", "--cluster", "-w", "json"]:
            return _status(process, machine.etcd)
        case ["endpoint", "health"]:
            return await _health(process, machine.etcd)
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


def _status(process: Process, etcd: EtcdCluster) -> int:
    """Of the members that answer; the others are errors, and the exit code is 1."""
    leader, running = etcd.leader(), etcd.running()
    found = []
    for name in etcd.members:
        if name not in running:
            process.err(f"Failed to get the status of endpoint {_url(process, name)} (context deadline exceeded)\n")
            continue
        header = {**_header(etcd, name), "revision": _REVISION}
        status = {"header": header, "version": "3.6.5", "dbSize": 4096, "leader": member_id(leader) if leader else 0}
        problems = {} if leader else {"errors": ["etcdserver: no leader"]}
        found.append({"Endpoint": _url(process, name), "Status": {**status, "raftTerm": etcd.term, **problems}})
    process.out(json.dumps(found) + "\n")
    return 0 if len(found) == len(etcd.members) else 1


async def _health(process: Process, etcd: EtcdCluster) -> int:
    """A read that needs a majority."""
    host = process.host
    end = host.sim.now + _TIMEOUT
    when = etcd.ready_at()
    await host.lockstep.wait_until(end if when is None else min(when, end))
    if etcd.leader():
        process.out("https://127.0.0.1:2379 is healthy: successfully committed proposal: took = 9.1ms\n")
        return 0
    process.err("https://127.0.0.1:2379 is unhealthy: failed to commit proposal: context deadline exceeded\n")
    return process.fail("Error: unhealthy cluster")
