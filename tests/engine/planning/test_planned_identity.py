"""The identity that a plan records, and which of its checks belong to a step and to its undo."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chaos.core.action import FactCheck, Undo, UndoStep
from chaos.core.command import Command, HostCommand, KubeCommand, PowerCommand, PowerVerb
from chaos.core.identity import HostIdentity, NodeIdentity
from chaos.core.kube import Node
from chaos.engine.planning.identity import (
    HOST_FACTS,
    host_identity,
    identity_checks,
    identity_preconditions,
    node_identity,
)

FACTS: dict[str, Any] = {
    "host-key": "ssh-rsa SHA256:a",
    "machine-id": "m",
    "stable-id": "machine m",
    "system-uuid": "u",
    "kubelet-user": "system:node:n1",
    "power-identity": "p",
    "boot-id": "b",
}
HOST, API = HostCommand(("true",)), KubeCommand("DELETE", "/x")
ON = PowerCommand(PowerVerb.ON)
H, M, K, U, P = (
    FactCheck(name, FACTS[name]) for name in ("host-key", "stable-id", "kubelet-user", "system-uuid", "power-identity")
)
PROOF = (FactCheck("boot-id", "b"),)


def undo(*commands: Command) -> Undo:
    return Undo(tuple(UndoStep(command) for command in commands))


@pytest.mark.parametrize(
    ("commands", "after", "unknown", "checks"),
    [
        ((HOST,), undo(), (), (H, M, K)),
        ((HOST,), undo(), ("kubelet-user",), (H, M, U)),
        ((HOST,), undo(), ("kubelet-user", "system-uuid"), (H, M)),
        ((HOST,), undo(ON), (), (H, M, K, P)),
        ((HOST,), undo(ON), ("power-identity",), (H, M, K)),
        ((HOST,), undo(), ("host-key",), (M, K)),
        ((ON,), undo(HOST), (), (P,)),  # the machine may be off
        ((API,), undo(API, HOST), (), ()),
        ((), undo(), (), ()),
    ],
)
def test_preconditions(
    commands: tuple[Command, ...], after: Undo, unknown: tuple[str, ...], checks: tuple[FactCheck, ...]
) -> None:
    facts = {name: value for name, value in FACTS.items() if name not in unknown}
    assert identity_preconditions(facts, commands, after) == checks


@pytest.mark.parametrize(
    ("after", "checks"),
    [
        (undo(HOST), (H, M, K)),
        (undo(ON), (P,)),
        (undo(ON, HOST), (H, M, K, P)),
        (undo(API), ()),
        (Undo((UndoStep(ON),), PROOF), (H, M, K, P)),  # the proof is read on the host
        (Undo(disarm="nodefall-x"), (H, M, K)),
        (Undo(), ()),
    ],
)
def test_checks_of_an_undo(after: Undo, checks: tuple[FactCheck, ...]) -> None:
    assert identity_checks(FACTS, after) == checks
    assert identity_checks({}, after) == ()


@pytest.mark.parametrize(
    ("stable_id", "checks"),
    [
        ("", (H, K)),  # nothing is known to last: the machine ID is that of a boot
        ("container c", (H, FactCheck("stable-id", "container c"), K)),
        (None, (H, FactCheck("machine-id", "m"), K)),  # a plan of 0.2.0
    ],
)
def test_checks_by_what_lasts(stable_id: str | None, checks: tuple[FactCheck, ...]) -> None:
    facts = {name: value for name, value in (FACTS | {"stable-id": stable_id}).items() if value is not None}
    assert identity_checks(facts, undo(HOST)) == checks


def test_the_identity_of_a_node() -> None:
    info = {"machineID": "m", "systemUUID": "u", "bootID": "b"}
    addresses = [{"type": "InternalIP", "address": text} for text in ("fd00::0:1", "127.0.0.1", "10.0.0.1")]
    status = {"nodeInfo": info, "addresses": addresses}
    value = {"metadata": {"name": "n1"}, "spec": {"providerID": "aws:///z/i-1"}, "status": status}
    expected = NodeIdentity("n1", "m", "u", "b", ("10.0.0.1", "fd00::1"), "aws:///z/i-1")
    assert node_identity(msgspec.convert(value, Node)) == expected
    assert node_identity(msgspec.convert({"metadata": {"name": "n1"}}, Node)) == NodeIdentity("n1")


def test_the_identity_of_a_host() -> None:
    flags = {"hostname-override": "n1"}
    facts = FACTS | {"host-addresses": ["10.0.0.1", "127.0.0.1"], "kubelet-flags": flags}
    assert host_identity(facts) == HostIdentity("m", "u", "b", ("10.0.0.1",), "system:node:n1", "n1")
    assert host_identity(dict.fromkeys(HOST_FACTS)) == host_identity({}) == HostIdentity(has_stable_machine_id=False)
    assert not host_identity(FACTS | {"stable-id": "container c"}).has_stable_machine_id
