"""A leader of etcd that is killed: what is sent, what is restored, and what is refused."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.faults.actions.etcd_leader_kill import LeaderState
from tests.kit.actionkit import describe, prepare

MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
DIGEST = "9f" * 32
THREE = ["n1", "n2", "n3"]
MEMBERS: dict[str, Any] = {"member": "n1", "leader": "n1", "voters": THREE, "healthy": THREE}
FORMER = {"sha256": DIGEST, "mounted": False}
CRICTL, SOCKET = "/usr/bin/crictl", "/run/containerd/containerd.sock"


def target(without: str = "", mounted: bool = False, client: str = CRICTL, **members: Any) -> Target:
    facts: dict[str, Any] = {
        "etcd-manifest": FORMER | {"mounted": mounted},
        "etcd-members": MEMBERS | members,
        "runtime-client": client,
        "runtime-socket": SOCKET,
    }
    facts.pop(without, None)
    return Target("n1", facts=facts, tag="run-do", max_duration=600.0)


@pytest.mark.parametrize(("given", "seconds"), [({}, 600), ({"duration": "1m"}, 60), ({"duration": "1h"}, 600)])
def test_the_manifest_is_hidden_and_shown_again(given: dict[str, Any], seconds: int) -> None:
    done = describe("etcd-leader-kill", given, target())
    words = shlex.split(done.inject[0])
    assert words[:2] == ["sh", "-c"]
    assert words[3:] == ["nodefall", CRICTL, SOCKET, MANIFEST, "n1"]
    # never killed without the mount, which would only be a restart, and no longer than it lasts
    assert words[2].startswith('mount --bind /dev/null "$3" && while test -c "$3" && ')
    assert "stop --timeout 0 $id" in words[2]
    assert done.failsafe == f"nodefall-run-do after {seconds}s: umount --lazy {MANIFEST}"
    assert done.undo == [f"umount --lazy {MANIFEST} unless etcd-manifest is {FORMER}"]
    assert done.proof == [f"etcd-manifest is {FORMER}", "etcd-health is True", "the node is Ready"]
    assert done.preconditions == [f"etcd-manifest is {FORMER}", f"etcd-members is {MEMBERS}"]
    assert done.disarm == "nodefall-run-do"


@pytest.mark.parametrize(
    ("node", "why", "hint"),
    [
        (target(leader="n2"), "n1 is not the leader of etcd: n2 is", "target n2"),
        (target(leader=""), "no leader now", "etcdctl"),
        (target(member="other", leader="other"), "another name, other", "name members"),
        (target(voters=["n1"], healthy=["n1"]), "only 0 of 1 voting members", "at least 3"),
        (target(voters=["n1", "n2"], healthy=["n1", "n2"]), "only 1 of 2 voting members", "at least 3"),
        (target(healthy=["n1", "n2"]), "only 1 of 3 voting members .* it needs 2", "at least 3"),
        (target(voters=[*THREE, "n4", "n5"], healthy=THREE), "only 2 of 5 voting members .* it needs 3", "at least 3"),
        (target(voters=[*THREE, "n4"], healthy=THREE), "only 2 of 4 voting members .* it needs 3", "at least 3"),
        (target(mounted=True), "something is mounted over", "undo --list"),
    ],
)
def test_it_is_refused(node: Target, why: str, hint: str) -> None:
    with pytest.raises(Unsupported, match=why) as refused:
        describe("etcd-leader-kill", {}, node)
    assert hint in refused.value.hint


@pytest.mark.parametrize("fact", ["etcd-manifest", "etcd-members", "runtime-client", "runtime-socket"])
def test_it_is_refused_where_a_fact_is_not_known(fact: str) -> None:
    with pytest.raises(Unsupported, match=f"the fact {fact} is not known"):
        describe("etcd-leader-kill", {}, target(without=fact))


def test_five_members_may_lack_one() -> None:
    node = target(voters=[*THREE, "n4", "n5"], healthy=[*THREE, "n4"])
    assert prepare("etcd-leader-kill", {}, node).healthy == (*THREE, "n4")


@pytest.mark.parametrize("given", [{"duration": "59s"}, {"duration": "never"}, {"node": "n1"}])
def test_parameters_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        describe("etcd-leader-kill", given, target())


@pytest.mark.parametrize(
    "forged",
    [
        {"client": "/tmp/crictl"},
        {"client": "/usr/bin/ctr"},
        {"client": "sh"},
        {"socket": "/tmp/x.sock"},
        {"node": "-n"},
        {"node": "n1 --all"},
        {"sha256": "x"},
        {"tag": "-x"},
    ],
)
def test_a_forged_state_is_not_decoded(forged: dict[str, Any]) -> None:
    good = msgspec.to_builtins(prepare("etcd-leader-kill", {}, target()))
    assert msgspec.convert(good, LeaderState).node == "n1"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(good | forged, LeaderState)
