"""References of facts: names, parameters, and the names of 0.1.0."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chaos.faults.readings
from chaos.cluster.cluster_state import UnknownFact
from chaos.core.action import FactCheck, Target
from chaos.core.command import Delivery, Outcome
from chaos.core.decode import decode
from chaos.core.errors import Unsupported
from chaos.core.fact import FORMER_NAMES, FactRef, HostFact, current_fact, find_fact
from chaos.core.recording import RecordingEntry
from chaos.core.registry import discover
from chaos.core.timeline import Timeline
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube, FakeSession, answered

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)


@given(st.text(st.characters(exclude_characters="?"), min_size=1), st.dictionaries(st.text(min_size=1), st.text()))
def test_a_reference_is_read_as_it_is_written(name: str, params: dict[str, str]) -> None:
    reference = FactRef(name, params)
    if name not in FORMER_NAMES:
        assert FactRef.parse(str(reference)) == reference


def test_parameters_are_sorted_and_quoted() -> None:
    assert str(FactRef("f", {"b": "x y", "a": "1/2"})) == "f?a=1%2F2&b=x+y"


@pytest.mark.parametrize("text", ["unit-state?unit", "unit-state?unit=a&unit=b"])
def test_references_that_are_not_understood(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        FactRef.parse(text)


@pytest.mark.parametrize(
    ("reference", "command"),
    [
        ("unit-state?unit=cron.service", "systemctl show --property=ActiveState cron.service"),
        ("sysctl?key=vm.swappiness", "sudo cat /proc/sys/vm/swappiness"),
        ("sysctl?key=net.ipv4.conf.eth0%2F1.forwarding", "sudo cat /proc/sys/net/ipv4/conf/eth0.1/forwarding"),
        ("sysctl?key=net%2Fipv4%2Fconf%2Feth0.1%2Fforwarding", "sudo cat /proc/sys/net/ipv4/conf/eth0.1/forwarding"),
    ],
)
def test_commands_of_facts_with_parameters(reference: str, command: str) -> None:
    made = find_fact(FACTS, reference).command_for({})
    assert " ".join(made.argv) == command.removeprefix("sudo ")
    assert made.sudo is command.startswith("sudo ")


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("no-such-fact", "unknown fact 'no-such-fact'"),
        ("swap?unit=x", "fact swap takes no parameters"),
        ("unit-state", "fact unit-state: unit: Field required"),
        ("unit-state?unit=a&host=b", "fact unit-state: host: Extra inputs"),
        ("unit-state?unit=--all", "fact unit-state: unit: "),
        ("unit-state?unit=a%20b", "fact unit-state: unit: "),
        ("sysctl?key=../../etc/shadow", "fact sysctl: key: "),
        ("sysctl?key=vm..x", "fact sysctl: key: "),
        ("sysctl?key=swappiness", "fact sysctl: key: "),
        ("sysctl?key=-w.x", "fact sysctl: key: "),
    ],
)
def test_references_that_are_refused(reference: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        find_fact(FACTS, reference)


def test_binding_leaves_the_fact_unchanged() -> None:
    bound = FACTS["unit-state"].bind({"unit": "a.service"})
    assert (bound.options.unit, FACTS["unit-state"].options) == ("a.service", None)


def test_values_of_facts_with_parameters() -> None:
    sysctl = find_fact(FACTS, "sysctl?key=net.ipv4.ip_local_port_range")
    assert sysctl.parse("32768\t60999\n", 0) == "32768 60999"
    with pytest.raises(ValueError, match=r"no kernel parameter net\.ipv4\.ip_local_port_range"):
        sysctl.parse("", 1)
    assert find_fact(FACTS, "unit-state?unit=x.service").parse("ActiveState=failed\n", 0) == "failed"


def hosts(answers: dict[str, Any]) -> Hosts:
    session = FakeSession(answers)
    return Hosts(lambda _: session, lambda _: None, FakeKube({}), FACTS, FakeClock())


def test_hosts_read_references() -> None:
    pool = hosts({"systemctl show --property=ActiveState cron.service": answered("ActiveState=active\n")})
    check = FactCheck("unit-state?unit=cron.service", "active")
    assert pool.check("n1", check) == (True, "unit-state?unit=cron.service is active")
    with pytest.raises(UnknownFact, match="of n1: unknown fact 'no-such-fact'"):
        pool.read("n1", "no-such-fact")


def test_the_name_of_the_node_is_a_fact() -> None:
    """It may not be that of the host: peers in other zones are found by it."""
    pool = hosts({})
    assert (pool.has_fact("n1", "node-name"), pool.read("n1", "node-name")) == (True, "n1")
    needs = find_fact(FACTS, "round-trips?by=zone").needs
    assert [name for name in needs if not pool.has_fact("n1", name)] == []


def test_a_fact_that_cannot_be_read_is_named_once_with_the_reason_of_the_host() -> None:
    """In the refusal of an action, as shown to a person."""
    failed = Outcome(Delivery.ANSWERED, 1, stderr="cat: /proc/sys/vm/nope: No such file or directory\n")
    fact = "sysctl?key=vm.nope"
    with pytest.raises(UnknownFact) as unknown:
        hosts({"sudo cat /proc/sys/vm/nope": failed, "cat /proc/sys/vm/nope": failed}).read("n1", fact)
    target = Target("n1", unknown={fact: unknown.value.message})
    with pytest.raises(Unsupported) as refused:
        target.require_fact(fact, "only a parameter that exists can be set")
    assert refused.value.message == (
        "n1: only a parameter that exists can be set, but the fact sysctl?key=vm.nope is not known: there is no kernel "
        "parameter vm.nope on the host: cat: /proc/sys/vm/nope: No such file or directory"
    )


def test_checks_of_a_journal_of_0_1_0_are_read() -> None:
    pool = hosts({str(FACTS["failsafe-timers"].command): answered("")})
    assert pool.check("n1", msgspec.json.decode('{"fact": "planted-timers", "value": []}', type=FactCheck))[0]


def test_recordings_of_0_1_0_are_read() -> None:
    recorded = RecordingEntry(5.0, "host", "lock-holders", msgspec.Raw(b'["kubelet"]'), "n1")
    timeline = Timeline()
    entry = decode(recorded, 1)
    assert entry
    timeline.add(entry)
    assert [fact.value for fact in timeline.readings("n1", "inhibitor-holders")] == [["kubelet"]]


def test_every_former_name_has_a_successor() -> None:
    assert set(FORMER_NAMES.values()) <= set(FACTS)
    assert current_fact("lock-holders") == "inhibitor-holders"
    assert current_fact("sysctl?key=vm.swappiness") == "sysctl?key=vm.swappiness"
