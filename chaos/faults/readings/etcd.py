"""kubeadm's etcd, and files of a control plane."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact, lines
from chaos.faults.readings.disks import MOUNT

MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
NAMESPACE, CONTAINER = "kube-system", "etcd"
CRICTL = '"$1" --runtime-endpoint "unix://$2"'  # in scripts: client and socket of the runtime are the first words
_PKI = "/etc/kubernetes/pki/etcd"  # on the host and in the container: cmd/kubeadm/app/phases/etcd/local.go
# The image has no shell. CRI labels: pkg/kubelet/types/labels.go.
_FIND = (
    f"id=$({CRICTL} ps --quiet --state Running "
    f"--label io.kubernetes.container.name={CONTAINER} --label io.kubernetes.pod.namespace={NAMESPACE}) && "
    'test -n "$id"'
)
# Not exec --sync, which discards what a command prints that fails (cri-tools, cmd/crictl/exec.go, ExecSync), as etcdctl
# does for the members that answer if another one does not.
_ETCDCTL = (
    f'{CRICTL} exec "$id" etcdctl --endpoints=https://127.0.0.1:2379 '
    f"--cacert={_PKI}/ca.crt --cert={_PKI}/healthcheck-client.crt --key={_PKI}/healthcheck-client.key"
)
NEEDS = ("runtime-socket", "runtime-client")


def etcdctl(known: Mapping[str, Any], *commands: str) -> HostCommand:
    """Commands of etcdctl in the container of etcd, one after the other; ``known``: values of NEEDS.

    Raises ValueError without crictl.
    """
    client = str(known["runtime-client"])
    if not client.endswith("/crictl"):
        raise ValueError("crictl is not installed")
    script = " && ".join((_FIND, *(f"{_ETCDCTL} {command}" for command in commands)))
    return HostCommand(("sh", "-c", script, "nodefall", client, str(known["runtime-socket"])), timeout=40.0)


@host_fact(
    "etcd-health",
    "whether kubeadm's etcd member on the host answers linearizable reads",
    lambda known: etcdctl(known, "endpoint health"),
    needs=NEEDS,
    form=None,
)
def etcd_health(_stdout: str, exit_code: int) -> bool:  # etcdctl prints it to either stream
    """True or false: a read that a majority of the members must confirm succeeds through the host's member.

    Of etcd as kubeadm runs it, in a static pod; false where no such container runs.
    """
    return exit_code == 0


_DIGEST = re.compile(rf"(?P<digest>[0-9a-f]{{64}}) [ *]{MANIFEST}")


@host_fact(
    "etcd-manifest",
    f"{MANIFEST}: its digest, and whether something is mounted over it",
    HostCommand(("sh", "-c", 'sha256sum "$1"; cat /proc/self/mountinfo', "nodefall", MANIFEST)),
    form=lines(_DIGEST, MOUNT),
)
def etcd_manifest(stdout: str, exit_code: int) -> dict[str, str | bool]:
    """Mapping ``{"sha256": "9f2c...", "mounted": false}``; ``sha256`` of what the kubelet reads there."""
    lines = stdout.splitlines()
    digest = next((match["digest"] for line in lines if (match := _DIGEST.fullmatch(line))), "")
    mounts = {fields[4] for line in lines if len(fields := line.split()) > 5}  # proc_pid_mountinfo(5)
    if exit_code or not mounts:
        raise ValueError("/proc/self/mountinfo was not read")
    if not digest:
        raise ValueError(f"there is no {MANIFEST}: the host runs no etcd as kubeadm's static pod")
    return {"sha256": digest, "mounted": MANIFEST in mounts}


@host_fact(
    "etcd-members",
    "voting members of kubeadm's etcd, those that are healthy, and the leader",
    lambda known: etcdctl(known, "member list -w json", "endpoint status --cluster -w json"),
    needs=NEEDS,
)
def etcd_members(stdout: str, exit_code: int) -> dict[str, Any]:
    """Mapping ``{"member": "cp-1", "leader": "cp-1", "voters": ["cp-1", "cp-2", "cp-3"], "healthy": [...]}``.

    ``member`` is the host's own; "" as ``leader`` if it knows of none. kubeadm names members after their nodes.
    ``voters`` are all members but learners, ``healthy`` those of them that follow this leader and report no error, as
    ``etcdctl member list`` and ``endpoint status --cluster`` print them (etcd, api/etcdserverpb/rpc.proto). IDs stand
    for members that have no name yet. Each member that does not answer takes 5 s (etcdctl's --command-timeout).
    """
    lines = [line for line in stdout.splitlines() if line.startswith(("{", "["))]
    if exit_code not in (0, 1) or len(lines) != 2:  # 1: one of the members does not answer
        raise ValueError("etcdctl in the container of etcd did not answer")
    try:
        return _members(*(json.loads(line) for line in lines))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("cannot parse the output of etcdctl") from error


def _members(found: Any, statuses: Any) -> dict[str, Any]:
    names = {member["ID"]: member.get("name") or f"{member['ID']:x}" for member in found["members"]}
    voters = {member["ID"] for member in found["members"] if not member.get("isLearner")}
    local = found["header"]["member_id"]
    answers = dict(_statuses(statuses))
    leader = answers[local].get("leader") or 0
    healthy = {
        identity
        for identity, status in answers.items()
        if leader and identity in voters and status.get("leader") == leader and not status.get("errors")
    }
    return {
        "member": names[local],
        "leader": names[leader] if leader else "",
        "voters": sorted(names[identity] for identity in voters),
        "healthy": sorted(names[identity] for identity in healthy),
    }


def _statuses(entries: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The members' statuses by ID, without members that did not answer."""
    for entry in entries:
        if status := entry.get("Status"):
            yield status["header"]["member_id"], status


_RANCHER = "/var/lib/rancher"
_MANIFESTS = ("/etc/kubernetes/manifests", f"{_RANCHER}/rke2/agent/pod-manifests")
# The data of an etcd member, in a separate process or in that of k3s.
_ETCD_DATA = (
    *("/var/lib/etcd/member", "/var/lib/k0s/etcd/member"),
    *(f"{_RANCHER}/{name}/server/db/etcd/member" for name in ("k3s", "rke2")),
)
_CONTROL_PLANE_PATHS = (
    *_ETCD_DATA,
    *(f"{folder}/{name}.yaml" for folder in _MANIFESTS for name in ("etcd", "kube-apiserver")),
)


@host_fact(
    "control-plane-files",
    "files that only a host of the control plane has",
    HostCommand(("find", *_CONTROL_PLANE_PATHS, "-maxdepth", "0")),
    form=lines(*map(re.escape, _CONTROL_PLANE_PATHS)),
)
def control_plane_files(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of paths: manifests of static pods and data of etcd, by kubeadm, k3s, RKE2 and k0s."""
    if exit_code not in (0, 1):  # 1: some of the paths do not exist
        raise ValueError("find did not answer")
    return sorted(stdout.splitlines())
