"""Addresses of nodes, and certificates of kubelets by address."""

from __future__ import annotations

import json
from typing import Any

import pytest

import chaos.faults.readings
from chaos.app.wiring.connect import host_address, kubelet_certificate, node_address, with_move
from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.fact import HostFact
from chaos.core.ports import Response
from chaos.core.registry import discover
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
V4, V6 = {"type": "InternalIP", "address": "172.18.0.3"}, {"type": "InternalIP", "address": "fc00:f853::3"}
NAME = {"type": "Hostname", "address": "x-worker"}


def node(name: str, *addresses: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name}, "spec": {}, "status": {"addresses": list(addresses)}}


def kube(*nodes: dict[str, Any]) -> FakeKube:
    answers = {f"/api/v1/nodes/{n['metadata']['name']}": Response(200, json.dumps(n).encode(), {}) for n in nodes}
    answers["/api/v1/nodes"] = Response(200, json.dumps({"items": nodes}).encode(), {})
    return FakeKube(answers)


@pytest.mark.parametrize(
    ("addresses", "reached"),
    [
        ([V4, V6, NAME], "172.18.0.3"),
        ([V6, V4, NAME], "fc00:f853::3"),
        ([NAME, {"type": "ExternalIP", "address": "192.0.2.1"}], "192.0.2.1"),
        ([NAME], "x-worker"),
    ],
)
def test_the_first_address_of_the_best_type(addresses: list[dict[str, str]], reached: str) -> None:
    assert node_address(kube(node("n", *addresses)), "n") == reached


def test_a_node_without_an_address_is_refused() -> None:
    with pytest.raises(Refused, match="node n has no address"):
        node_address(kube(node("n")), "n")
    with pytest.raises(Refused, match="node other has no address"):
        node_address(kube(), "other")


class Machine:
    """The addresses of a container; None: docker does not answer."""

    def __init__(self, *interfaces: str | None) -> None:
        self._interfaces = interfaces

    def interfaces(self) -> tuple[str, ...]:
        if None in self._interfaces:
            raise NodefallError("docker inspect x-worker timed out")
        return tuple(filter(None, self._interfaces))


@pytest.mark.parametrize(
    ("machine", "address"),
    [
        (Machine("172.18.0.5/16"), "172.18.0.5"),
        (Machine("172.18.0.3/16"), "172.18.0.3"),
        (Machine("10.9.0.2/24"), "172.18.0.3"),
        (Machine(), "172.18.0.3"),
        (Machine(None), "172.18.0.3"),
        (None, "172.18.0.3"),
    ],
)
def test_the_container_has_moved_before_its_node_says_it(machine: Machine | None, address: str) -> None:
    assert host_address(kube(node("n", V4)), "n", machine) == address


def test_an_error_names_the_present_address() -> None:
    error = Unreachable("n (chaos@172.18.0.3:22) cannot be reached: No route to host", hint="check address")
    moved = with_move(error, "n", "172.18.0.3", Machine("172.18.0.5/16"))
    assert isinstance(moved, Unreachable)
    assert moved.message == f"{error.message}; n is now at 172.18.0.5, and the inventory has 172.18.0.3"
    assert moved.hint == "set address of the host to 172.18.0.5, or remove it: nodefall then reads the current address"


@pytest.mark.parametrize("machine", [Machine("172.18.0.3/16"), Machine("10.9.0.2/24"), Machine(None), None])
def test_an_error_of_a_host_that_has_not_moved_stays(machine: Machine | None) -> None:
    error = Refused("n has another host key")
    assert with_move(error, "n", "172.18.0.3", machine) is error


class Shell:
    """A session on the host of one node."""

    def __init__(self, name: str) -> None:
        self._name = name

    def run(self, command: HostCommand) -> Outcome:
        assert command.argv == ("cat", "/var/lib/kubelet/pki/kubelet.crt")
        return Outcome(Delivery.ANSWERED, 0, stdout=PEM.replace("AAAA", self._name))

    def arm(self, command: HostCommand) -> Any:
        raise AssertionError("not used here")

    def close(self) -> None:
        return None


def test_the_certificate_is_that_of_the_node_with_the_address() -> None:
    """For both IP families; there is none for an address that no node has."""
    api = kube(node("a", V4), node("b", {"type": "InternalIP", "address": "172.18.0.4"}, V6))
    hosts = Hosts(Shell, lambda _: None, api, discover(chaos.faults.readings, HostFact), FakeClock())
    certificates = {address: kubelet_certificate(address, api, hosts) for address in ("172.18.0.3", "fc00:f853::3")}
    assert certificates == {"172.18.0.3": PEM.replace("AAAA", "a"), "fc00:f853::3": PEM.replace("AAAA", "b")}
    with pytest.raises(NodefallError, match=r"no node has the address 172\.18\.0\.9"):
        kubelet_certificate("172.18.0.9", api, hosts)
