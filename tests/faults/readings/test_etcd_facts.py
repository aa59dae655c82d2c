"""kubeadm's etcd: what etcdctl 3.5 and 3.6 print, and the manifest."""

from __future__ import annotations

import json
from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.fact import HostFact
from chaos.core.registry import discover

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
DIGEST = "9f2c" * 16
KNOWN = {"runtime-client": "/usr/local/bin/crictl", "runtime-socket": "/run/crio/crio.sock"}
ONE, TWO, THREE = 10276657743932975437, 9372538179322589801, 18249187646912138824  # floats would be equal
ROOT = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
MOUNT = f"690 22 0:5 /null {MANIFEST} rw,nosuid,relatime shared:2 - devtmpfs udev rw,size=4009800k,mode=755\n"


def members(*more: dict[str, Any], local: int = ONE) -> str:
    known = [{"ID": identity, "name": f"n{number}"} for number, identity in enumerate((ONE, TWO, THREE), start=1)]
    return json.dumps({"header": {"cluster_id": 7, "member_id": local, "raft_term": 3}, "members": [*known, *more]})


def status(identity: int, leader: int = ONE, **more: Any) -> dict[str, Any]:
    header = {"cluster_id": 7, "member_id": identity, "revision": 12, "raft_term": 3}
    found = {"header": header, "version": "3.6.5", "leader": leader, "raftTerm": 3} | more
    return {"Endpoint": "https://10.0.0.1:2379", "Status": {key: value for key, value in found.items() if value}}


ALL = [status(ONE), status(TWO), status(THREE)]


@pytest.mark.parametrize(
    ("first", "statuses", "code", "leader", "voters", "healthy"),
    [
        (members(), ALL, 0, "n1", "n1 n2 n3", "n1 n2 n3"),
        (members(), ALL[:2], 1, "n1", "n1 n2 n3", "n1 n2"),
        (members(), [*ALL[:2], {"Endpoint": "https://10.0.0.3:2379", "Status": None}], 1, "n1", "n1 n2 n3", "n1 n2"),
        (members({"ID": 255, "isLearner": True}), [*ALL, status(255, isLearner=True)], 0, "n1", "n1 n2 n3", "n1 n2 n3"),
        (members({"ID": 255}), ALL, 1, "n1", "ff n1 n2 n3", "n1 n2 n3"),  # added, and not started
        (members(), [status(ONE), status(TWO, leader=THREE), status(THREE)], 0, "n1", "n1 n2 n3", "n1 n3"),
        (members(), [status(ONE), status(TWO, errors=["memberID:1 alarm:NOSPACE "]), status(THREE)], 0,
         "n1", "n1 n2 n3", "n1 n3"),
        (members(), [status(n, leader=0, errors=["etcdserver: no leader"]) for n in (ONE, TWO, THREE)], 0,
         "", "n1 n2 n3", ""),
        (members(local=TWO), ALL, 0, "n1", "n1 n2 n3", "n1 n2 n3"),
    ],
)  # fmt: skip
def test_members(first: str, statuses: list[Any], code: int, leader: str, voters: str, healthy: str) -> None:
    found = FACTS["etcd-members"].parse(f"{first}\n{json.dumps(statuses)}\n", code)
    assert (found["leader"], found["voters"], found["healthy"]) == (leader, voters.split(), healthy.split())
    assert found["member"] == ("n2" if f'"member_id": {TWO}' in first else "n1")


@pytest.mark.parametrize(
    ("stdout", "code", "why"),
    [
        ("", 1, "did not answer"),
        (f"{members()}\n", 1, "did not answer"),
        (f"{members()}\n[]\n", 137, "did not answer"),
        (f"{members()}\n[]\n", 1, "cannot parse"),
        ("{}\n[]\n", 0, "cannot parse"),
        ("[]\n{}\n", 0, "cannot parse"),
        ('{"header": 1, "members": []}\n[1]\n', 0, "cannot parse"),
        (f"{members()}\n[{{\n", 0, "cannot parse"),
        (f"{members()}\n{json.dumps([status(ONE, leader=999)])}\n", 0, "cannot parse"),
    ],
)
def test_members_that_are_not_understood(stdout: str, code: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FACTS["etcd-members"].parse(stdout, code)


@pytest.mark.parametrize(
    ("name", "verbs"),
    [
        ("etcd-members", ["member list -w json", "endpoint status --cluster -w json"]),
        ("etcd-health", ["endpoint health"]),
    ],
)
def test_etcdctl_reads_in_the_container(name: str, verbs: list[str]) -> None:
    command = FACTS[name].command_for(KNOWN)
    parts = command.argv[2].split(" && ")
    assert parts[0].startswith('id=$("$1" --runtime-endpoint "unix://$2" ps --quiet --state Running --label ')
    assert parts[1] == 'test -n "$id"'
    head = '"$1" --runtime-endpoint "unix://$2" exec "$id" etcdctl --endpoints=https://127.0.0.1:2379 --cacert='
    assert [part.rpartition(".key ")[2] for part in parts[2:]] == verbs
    assert all(part.startswith(head) for part in parts[2:])
    assert command.argv[3:] == ("nodefall", "/usr/local/bin/crictl", "/run/crio/crio.sock")
    with pytest.raises(ValueError, match="crictl is not installed"):
        FACTS[name].command_for(KNOWN | {"runtime-client": "/usr/bin/ctr"})


@pytest.mark.parametrize(("code", "value"), [(0, True), (1, False), (127, False)])
def test_health(code: int, value: bool) -> None:
    assert FACTS["etcd-health"].parse("https://127.0.0.1:2379 is healthy: successfully committed\n", code) is value


@pytest.mark.parametrize(
    ("stdout", "code", "value"),
    [
        (f"{DIGEST}  {MANIFEST}\n{ROOT}", 0, {"sha256": DIGEST, "mounted": False}),
        (f"{DIGEST} *{MANIFEST}\n{ROOT}{MOUNT}", 0, {"sha256": DIGEST, "mounted": True}),
        (f"{DIGEST}  {MANIFEST}\n{MOUNT.replace('etcd.y', 'other.y')}", 0, {"sha256": DIGEST, "mounted": False}),
    ],
)
def test_manifest(stdout: str, code: int, value: object) -> None:
    assert FACTS["etcd-manifest"].parse(stdout, code) == value


@pytest.mark.parametrize(
    ("stdout", "code", "why"),
    [
        (ROOT, 0, f"there is no {MANIFEST}"),
        (f"{DIGEST}  /other.yaml\n{ROOT}", 0, f"there is no {MANIFEST}"),
        (f"{DIGEST}  {MANIFEST}\n", 0, "mountinfo was not read"),
        (f"{DIGEST}  {MANIFEST}\n{ROOT}", 1, "mountinfo was not read"),
        ("", 127, "mountinfo was not read"),
    ],
)
def test_a_manifest_that_is_not_there(stdout: str, code: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FACTS["etcd-manifest"].parse(stdout, code)
