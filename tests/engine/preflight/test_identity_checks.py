"""Hosts and power controls that are, or are not, those of their Nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.kube import Node
from chaos.core.power_identity import PowerIdentity
from chaos.engine.observations import ClusterObservations, HostObservations
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.findings import refuse, run_checks
from tests.kit.preflightkit import CHECKS, USE, diagnoses, host, inventory, messages, observed

NAMES = ("n1", "n2", "n3")
REDFISH = {"kind": "redfish", "url": "https://bmc-1/redfish/v1/Systems/1"}


def digits(number: int) -> str:
    return f"{number:x}" * 32


def uuid_of(number: int) -> str:
    return f"{number:x}" * 8 + "-0000-4000-8000-" + f"{number:x}" * 12


def node(
    number: int,
    *,
    machine_id: str | None = None,
    address: str | None = None,
    uuid: str | None = None,
    system: str = "linux",
) -> Node:
    info = {"machineID": digits(number) if machine_id is None else machine_id}
    info["systemUUID"] = uuid_of(number) if uuid is None else uuid
    info |= {"bootID": f"boot-{number}", "operatingSystem": system}
    addresses = [{"type": "InternalIP", "address": address or f"10.0.0.{number}"}]
    value = {"metadata": {"name": f"n{number}"}, "status": {"addresses": addresses, "nodeInfo": info}}
    return msgspec.convert(value, Node)


def machine(number: int, name: str = "", power: PowerIdentity | None = None, **facts: Any) -> HostObservations:
    """The host of ``name`` that is in truth machine ``number``."""
    own = {
        "machine_id": digits(number),
        "system_uuid": uuid_of(number),
        "boot_id": f"boot-{number}",
        "host_addresses": [f"10.0.0.{number}"],
        "kubelet_user": f"system:node:n{number}",
    }
    made = host(name or f"n{number}", **(own | facts))
    return replace(made, power_identity=power or PowerIdentity(uuid_of(number)))


def cluster(*hosts: HostObservations, nodes: tuple[Node, ...] = (), **settings: Any) -> ClusterObservations:
    entries = settings.pop("hosts", {name: {"power": REDFISH | {"url": f"https://{name}/x"}} for name in NAMES})
    view = nodes or (node(1), node(2), node(3))
    made = inventory(hosts=entries, **settings)
    return observed(*hosts, nodes=view, inventory=made, experiments=(replace(USE, nodes=NAMES),))


UNREAD: dict[str, Any] = {"kubelet_user": None, "system_uuid": None, "boot_id": None}
CLONES = tuple(node(number, machine_id="a" * 32, uuid="") for number in (1, 2, 3))
LOOPBACK = (node(1, address="127.0.0.1"), node(2), node(3))


WINDOWS = (node(1, system="windows"), node(2), node(3))


@pytest.mark.parametrize(
    ("observations", "severity", "text"),
    [
        (cluster(machine(1)), "ok", "by the kubelet's client certificate, machine ID, system UUID, boot ID"),
        (cluster(machine(1, **UNREAD)), "ok", "it is the machine of its Node by machine ID"),
        (cluster(machine(2, "n1")), "refusal", "host n1 is not the machine of the Node n1: the kubelet's client"),
        (cluster(machine(2, "n1", **UNREAD)), "refusal", f"but the host has {digits(2)} (that of n2)"),
        (cluster(machine(1, **UNREAD | {"machine_id": "a" * 32}), nodes=CLONES), "refusal", "no proof that host n1"),
        (cluster(machine(1, machine_id="a" * 32), nodes=CLONES), "ok", "by the kubelet's client certificate"),
        (cluster(machine(2, "n1", machine_id="a" * 32), nodes=CLONES), "refusal", "is that of system:node:n2"),
        (cluster(machine(1), hosts={"w1": {"node": "n1"}, "n7": {}}), "refusal", "host n7 of the inventory: the"),
        (cluster(machine(1), hosts={"w": {"node": "n7"}}, defaults={"proxyJump": ["w"]}), "refusal", "has no Node n7"),
        (cluster(machine(1), hosts={"b": {}}, defaults={"proxyJump": ["b"]}), "ok", "it is the machine"),  # a bastion
        (cluster(machine(1), hosts={}), "ok", "it is the machine"),  # by the address of its Node
        (cluster(machine(1), nodes=LOOPBACK, hosts={}), "refusal", "n1 is not in the inventory, and its Node has only"),
        (cluster(replace(machine(1), error="x"), nodes=LOOPBACK, hosts={}), "refusal", "has only a loopback address"),
        (cluster(machine(1), nodes=LOOPBACK), "ok", "it is the machine"),
        (cluster(machine(1), nodes=WINDOWS), "refusal", "host n1 of the inventory has os linux, but its Node n1 runs"),
        (cluster(machine(1), nodes=WINDOWS, hosts={}), "refusal", "n1 runs windows, and is not in the inventory"),
        (cluster(machine(1), nodes=WINDOWS, hosts={"n1": {"os": "windows"}}), "ok", "it is the machine"),
        (cluster(machine(1), hosts={"n1": {"os": "windows"}}), "refusal", "has os windows, but its Node n1 runs linux"),
        (cluster(machine(1), nodes=(node(1, address="10.0.0.99"),), hosts={}), "refusal", "10.0.0.99 of this machine"),
    ],
)
def test_host_identity(observations: ClusterObservations, severity: str, text: str) -> None:
    found = [(level, message) for level, _, message in messages("host-identity", observations)]
    assert max(found, key=lambda each: list(Severity).index(Severity(each[0])))[0] == severity
    assert any(text in message for level, message in found if level == severity), found


def test_a_host_without_a_node_is_guessed() -> None:
    (found,) = [d for d in diagnoses("host-identity", cluster(machine(1), hosts={"n1": {}, "n11": {}})) if d.hint]
    assert found.message == "host n11 of the inventory: the cluster has no Node n11"
    assert found.hint.startswith("did you mean n1? correct its key or node")


CONTAINER = {"kind": "docker"}
AT_HAND = {"kind": "manual"}


def power_case(power: PowerIdentity, settings: dict[str, Any], **facts: Any) -> ClusterObservations:
    return cluster(machine(1, power=power, **facts), hosts={"n1": {"power": settings}})


@pytest.mark.parametrize(
    ("observations", "severity", "text"),
    [
        (cluster(machine(1)), "ok", "it switches the machine of its Node by system UUID"),
        (power_case(PowerIdentity(uuid_of(1).upper()), REDFISH), "ok", "system UUID"),
        (power_case(PowerIdentity(uuid_of(2)), REDFISH), "refusal", f"is that of {uuid_of(2)} (that of n2)"),
        (power_case(PowerIdentity(uuid_of(9)), REDFISH), "refusal", f"is that of {uuid_of(9)}"),
        (power_case(PowerIdentity(uuid_of(9)), REDFISH | {"identity": uuid_of(9)}), "ok", "identity in the inventory"),
        (power_case(PowerIdentity(uuid_of(1)), REDFISH | {"identity": uuid_of(9)}), "refusal", "expects the identity"),
        (power_case(PowerIdentity(), REDFISH | {"identity": uuid_of(9)}), "refusal", "power control reports none"),
        (
            cluster(machine(1), nodes=(node(1), node(2, uuid=uuid_of(1)), node(3))),
            "refusal",
            f"the power control of host n1 may be that of n2: they have its system UUID {uuid_of(1)} too",
        ),
        (power_case(PowerIdentity(), REDFISH), "warning", "nothing shows that its power control (redfish) is that"),
        (power_case(PowerIdentity(), AT_HAND), "warning", "nothing shows that its power control (manual)"),
        (power_case(PowerIdentity(names=("n1", "x")), CONTAINER), "ok", "by name"),
        (power_case(PowerIdentity(names=("a", "b"), addresses=("10.0.0.1",)), CONTAINER), "ok", "by address"),
        (power_case(PowerIdentity(names=("a", "b"), addresses=("10.0.0.2",)), CONTAINER), "refusal", "a / b with 10"),
        (power_case(PowerIdentity(names=("n2",), addresses=("10.0.0.1",)), CONTAINER), "refusal", "of the Node n2"),
        (power_case(PowerIdentity(names=("a", "b")), CONTAINER), "warning", "nothing shows"),
        (
            cluster(machine(1, power=PowerIdentity()), hosts={"n1": {"power": REDFISH}, "n2": {"power": REDFISH}}),
            "refusal",
            "the hosts n1 and n2 of the inventory have the same power control",
        ),
    ],
)
def test_power_identity(observations: ClusterObservations, severity: str, text: str) -> None:
    ((level, _, message),) = messages("power-identity", observations)
    assert (level, text in message) == (severity, True), message


def test_a_host_without_power_control_has_no_finding() -> None:
    assert messages("power-identity", observed(host(power=""))) == []


def test_refusals_are_final() -> None:
    assert CHECKS["host-identity"].is_final
    assert CHECKS["power-identity"].is_final


ENTRY = st.sampled_from([1, 2, 3])


@st.composite
def inventories(draw: st.DrawFn) -> tuple[ClusterObservations, dict[str, tuple[int, int]]]:
    """Hosts whose connections and power controls lead to any of three machines; some of their values are hidden."""
    clones = draw(st.booleans())
    nodes = CLONES if clones else (node(1), node(2), node(3))
    hosts, truth = [], {}
    for name in NAMES:
        reached, switched = draw(ENTRY), draw(ENTRY)
        hidden = draw(st.sets(st.sampled_from(["kubelet_user", "system_uuid", "boot_id", "host_addresses"])))
        facts: dict[str, Any] = dict.fromkeys(hidden) | ({"machine_id": "a" * 32} if clones else {})
        uuid = draw(st.sampled_from(["", uuid_of(switched)]))
        names = draw(st.sampled_from([(), (f"n{switched}", "container")]))
        hosts.append(machine(reached, name, PowerIdentity(uuid, names), **facts))
        truth[name] = (reached, switched)
    return cluster(*hosts, nodes=nodes), truth


@given(inventories())
def test_no_other_machine_passes(case: tuple[ClusterObservations, dict[str, tuple[int, int]]]) -> None:
    """Whatever is swapped: no host and no power control of another machine is in order."""
    observations, truth = case
    hosts = {name: level for level, name, _ in messages("host-identity", observations)}
    powers = {name: level for level, name, _ in messages("power-identity", observations)}
    for name in NAMES:
        reached, switched = truth[name]
        own = int(name[1:])
        assert hosts[name] == "refusal" or reached == own
        if hosts[name] == "ok" and observations.hosts[name].power_identity.key:
            assert powers[name] != "ok" or switched == own
            assert powers[name] == "refusal" or switched == own or observations.view.nodes["n1"] == CLONES[0]


@given(inventories())
def test_the_override_does_not_help(case: tuple[ClusterObservations, dict[str, tuple[int, int]]]) -> None:
    observations, truth = case
    checks = {name: CHECKS[name] for name in ("host-identity", "power-identity")}
    findings = run_checks(checks, observations)
    wrong = any(reached != int(name[1:]) for name, (reached, _) in truth.items())
    if wrong:
        with pytest.raises(Exception, match=r"is not the machine|no proof"):
            refuse([f for f in findings if f.check == "host-identity"], anyway=True)
