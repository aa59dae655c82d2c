"""Inspection of hosts: concurrent, and one that does not answer does not delay the others."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec
import pytest

import chaos.faults.readings
from chaos.core.cluster_view import ClusterView
from chaos.core.command import Outcome
from chaos.core.errors import NodefallError, Unreachable
from chaos.core.fact import HostFact
from chaos.core.kube import Node
from chaos.core.ports import PowerControl, Response, Session
from chaos.core.power_identity import PowerRisk
from chaos.core.registry import discover
from chaos.engine.inspection import inspect_hosts, list_objects
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeSession, answered

BOOT = "cat /proc/sys/kernel/random/boot_id"
FACTS = discover(chaos.faults.readings, HostFact)
MACHINE = "a34188058e584bab8c51cd34df85c05c"
WANTED = frozenset({"host-time", "root"})
ANSWERS: dict[str, Outcome | Callable[[], Outcome]] = {
    str(FACTS[name].command): answered(text)
    for name, text in (
        ("machine-id", f"{MACHINE}\n"),
        ("boot-id", "f4dc55dd-fb0c-4e07-97b3-1883fa27ab8b\n"),
        ("pid1-start", "1 0\n"),
        ("host-time", "1012.5\n"),
    )
}


def view(*names: str) -> ClusterView:
    nodes = {name: msgspec.convert({"metadata": {"name": name}}, Node) for name in names}
    return ClusterView("uid", nodes)


def hosts_of(session: Callable[[str], Session], power: Callable[[str], PowerControl | None] = lambda _: None) -> Hosts:
    return Hosts(session, power, FakeKube({}), FACTS, FakeClock())


def answers() -> dict[str, Outcome | Callable[[], Outcome]]:
    stat = " ".join(["1", "(systemd)", "S", *["0"] * 18, "100", *["0"] * 20])
    outputs = {str(FACTS["pid1-start"].command): answered(f"{stat}\nbtime 1000\n")}
    return ANSWERS | outputs


def test_hosts_are_inspected_concurrently() -> None:
    """Each waits until all are there: one after the other would wait for ever."""
    meeting = threading.Barrier(3, timeout=60)

    def session(_: str) -> Session:
        meeting.wait()
        raise Unreachable("no route")

    done: list[str] = []
    found = inspect_hosts(
        dict.fromkeys("abc", WANTED), view(*"abc"), hosts_of(session), FakeKube({}), FakeClock(), done.append
    )
    assert sorted(done) == ["a", "b", "c"]
    assert [signs.error for signs in found.values()] == ["no route"] * 3


def test_a_host_that_does_not_answer_does_not_affect_the_others() -> None:
    def session(name: str) -> Session:
        if name == "a":
            raise Unreachable("no route", hint="mend it")
        return FakeSession(answers())

    found = inspect_hosts({"a": WANTED, "b": WANTED}, view("a", "b"), hosts_of(session), FakeKube({}), FakeClock(), str)
    assert (found["a"].error, found["a"].hint, found["a"].is_reachable) == ("no route", "mend it", False)
    assert found["b"].is_reachable, found["b"].error
    assert found["b"].fact("machine-id") == MACHINE
    assert (found["b"].clock_offset, found["b"].clock_uncertainty) == (12.5, 0.0)
    assert found["b"].fact("root") is None
    assert "connection lost" in found["b"].unknown_reason("root")


@pytest.mark.parametrize(
    ("power", "error"),
    [
        (FakePower("on"), ""),
        (FakePower("off"), "belongs to another machine: it reports off, but a is up"),
        (FakePower(broken=True), "the power control of a: the BMC does not answer"),
    ],
)
def test_its_power_control(power: FakePower, error: str) -> None:
    hosts = hosts_of(lambda _: FakeSession(answers()), lambda _: power)
    signs = inspect_hosts({"a": WANTED}, view("a"), hosts, FakeKube({}), FakeClock(), str)["a"]
    assert error in signs.target.power_error
    assert bool(signs.target.power_error) == bool(error)
    assert signs.target.power == ("" if error else "power")


def test_what_its_provider_would_do() -> None:
    class Risky(FakePower):
        def risks(self) -> tuple[PowerRisk, ...]:
            return (PowerRisk("it is a spot instance", "choose another"),)

    hosts = hosts_of(lambda _: FakeSession(answers()), lambda _: Risky())
    (found,) = inspect_hosts({"a": WANTED}, view("a"), hosts, FakeKube({}), FakeClock(), str).values()
    assert [risk.message for risk in found.power_risks] == ["it is a spot instance"]


def test_a_power_control_that_cannot_be_opened_is_an_error() -> None:
    def power(_: str) -> PowerControl | None:
        raise NodefallError("no secret", hint="set it")

    signs = inspect_hosts(
        {"a": WANTED}, view("a"), hosts_of(lambda _: FakeSession(answers()), power), FakeKube({}), FakeClock(), str
    )["a"]
    assert (signs.target.power_error, signs.target.power_hint) == ("the power control of a: no secret", "set it")


def test_collections_that_cannot_be_listed_are_errors() -> None:
    kube = FakeKube(
        {
            "/good": Response(200, b'{"items": [{"a": 1}]}', {}),
            "/null": Response(200, b'{"items": null}', {}),
            "/torn": Response(200, b'{"items": [', {}),
            "/no": Response(403, b'{"message": "you may not"}', {}),
        }
    )
    found, why = list_objects(kube, ["/good", "/null", "/torn", "/no", "/absent"])
    assert found == {"/good": [{"a": 1}], "/null": [], "/absent": []}
    assert why["/no"] == "403: you may not"
    assert sorted(why) == ["/no", "/torn"]
