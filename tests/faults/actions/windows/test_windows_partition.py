"""Partition of a Windows node: the rules, what stays reachable, refusals, failsafe task and undo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.action import Target
from chaos.core.encoded_script import read_script
from chaos.core.errors import Unsupported
from chaos.faults.readings.windows.network import find_rules
from chaos.lab.windows.firewall import FirewallRule
from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.programs import PROGRAMS
from chaos.machines.windows_command_line import quote_argument
from tests.kit.actionkit import WINDOWS_ACTIONS, describe, line_length, prepare
from tests.kit.win_host import WindowsHost


def node(name: str, addresses: list[str], pods: list[str], *, plane: bool = False) -> dict[str, Any]:
    labels = {"node-role.kubernetes.io/control-plane": ""} if plane else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDRs": pods},
        "status": {"addresses": [{"type": "InternalIP", "address": a} for a in addresses]},
    }


NODES = {
    "items": [
        node("cp", ["10.0.0.1", "fd00::1"], [], plane=True),
        node("w1", ["10.0.0.2", "fd00::2"], ["10.244.1.0/24"]),
        node("w2", ["10.0.0.3", "fd00::3"], ["10.244.2.0/24"]),
    ]
}
FACTS: dict[str, Any] = {
    "firewall-state": {"Public": "on"},
    "firewall-rules": [],
    "connection-peers": ["10.9.9.9"],
    "login-domain": "worker-with-a-l",
    "machine-id": "Worker-with-a-long-name",
    "server-addresses": ["10.0.0.100"],
    "api-peers": [["10.0.0.1", 6443]],
    "api-reachable": {"ipv4": True, "ipv6": True},
}
WINDOWS = Target("w1", "windows", facts=FACTS, objects={"/api/v1/nodes": NODES}, tag="run-cut", max_duration=600.0)
DELETE = "netsh.exe advfirewall firewall delete rule name=nodefall-run-cut"
ADD = "netsh.exe advfirewall firewall add rule name=nodefall-run-cut dir={} action=block profile=any protocol=any"


def changed(**facts: Any) -> Target:
    names = {name.replace("_", "-"): value for name, value in facts.items()}
    return replace(WINDOWS, facts=FACTS | names)


def test_the_control_plane_is_every_known_address_of_it_and_outbound_rules_come_last() -> None:
    described = describe("partition", {"duration": "100s"}, WINDOWS)
    ranges = "enable=yes remoteip=10.0.0.1,10.0.0.100,fd00::1"
    assert described.inject == [f"{ADD.format('in')} {ranges}", f"{ADD.format('out')} {ranges}"]
    assert described.preconditions == [
        "firewall-rules is []",
        "firewall-state is {'Public': 'on'}",
        "connection-peers is ['10.9.9.9']",  # which the ranges leave out
    ]
    assert described.failsafe == 'nodefall-run-cut after 100s: failsafe-delete-rules {"rule":"nodefall-run-cut"}'
    assert described.undo == [f"{DELETE} unless firewall-rules is []"]
    assert described.proof == [
        "firewall-rules is []",
        "api-reachable is {'ipv4': True, 'ipv6': True}",
        "the node is Ready",
    ]
    assert described.disarm == "nodefall-run-cut"


def test_the_failsafe_script_searches_and_deletes_as_the_undo_does() -> None:
    script = read_script("failsafe-delete-rules")
    program, *search = find_rules("TAG").argv
    assert f"& '{program}' {search[0]} '{search[1]}' {search[2]} \"Name=$($p.rule)|\" {search[4]}" in script
    assert search[3] == "Name=nodefall-TAG|"
    deletion = DELETE.replace("netsh.exe", "'C:\\Windows\\System32\\netsh.exe'")
    assert deletion.replace("name=nodefall-run-cut", '"name=$($p.rule)"') in script


def test_one_direction() -> None:
    assert [" dir=out " in command for command in describe("partition", {"direction": "out"}, WINDOWS).inject] == [True]


def test_everything_but_us_leaves_out_the_operator_and_the_own_pods() -> None:
    ranges = prepare("partition", {"from": "everything-but-us"}, WINDOWS).ranges
    assert "10.9.9.10-10.244.0.255" in ranges
    assert any(text.endswith("-10.9.9.8") for text in ranges)
    assert "10.244.2.0-126.255.255.255" in ranges
    assert not any(text.lower().startswith(("fe80", "ff")) for text in ranges)


REFUSED: list[tuple[dict[str, Any], Target, str]] = [
    ({"traffic": "pods"}, WINDOWS, "does not see the traffic of pods"),
    ({"from": "nodes"}, WINDOWS, "from: nodes cannot be proven"),
    ({"from": "other-zones"}, WINDOWS, "from: other-zones cannot be proven"),
    ({"from": "cidr", "cidrs": ["10.0.0.0/8"]}, WINDOWS, "from: cidr cannot be proven"),
    ({"from": "port", "ports": [443]}, WINDOWS, "from: port cannot be proven"),
    ({"direction": "in"}, WINDOWS, "judges a connection by its first packet"),
    ({"families": ["ipv4"]}, WINDOWS, "one address family"),
    ({}, changed(firewall_state={"Domain": "on", "Public": "off"}), "firewall is off in profile Public"),
    ({}, changed(firewall_state={"Domain": "policy"}), "ignores local rules"),
    ({}, changed(firewall_rules=["nodefall-x"]), "rules of an earlier partition"),
    ({}, changed(connection_peers=["10.0.0.100"]), "comes from 10.0.0.100, the address of the API server"),
    ({"from": "everything-but-us"}, changed(connection_peers=["10.0.0.1"]), "the address of the API server"),
    ({}, changed(api_reachable={"ipv4": False}), "does not reach the API server now"),
    ({}, changed(server_addresses=["10.0.0.2"]), "runs the API server that it uses"),
    ({}, changed(connection_peers=["x"]), "no rules can be made"),
    ({"from": "everything-but-us"}, changed(login_domain="corp"), "an account of corp needs its domain controller"),
]


@pytest.mark.parametrize(("given_", "target", "why"), REFUSED)
def test_refused(given_: dict[str, Any], target: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        prepare("partition", given_, target)


@pytest.mark.parametrize("missing", sorted(FACTS))
def test_an_unknown_fact_is_a_refusal_and_its_name_is_in_it(missing: str) -> None:
    facts = {name: value for name, value in FACTS.items() if name != missing}
    with pytest.raises(Unsupported, match=missing):
        prepare("partition", {"from": "everything-but-us"}, replace(WINDOWS, facts=facts))


def test_an_account_of_a_domain_may_cut_the_control_plane() -> None:
    assert prepare("partition", {}, changed(login_domain="corp")).ranges


@given(st.integers(1, 2000))
def test_no_command_line_is_longer_than_cmd_takes(count: int) -> None:
    """Every second address of a network, so that no two of them are one range."""
    planes = {
        "items": [
            *NODES["items"],
            node("cp2", [f"10.1.{n // 128}.{n % 128 * 2}" for n in range(count)], [], plane=True),
        ]
    }
    target = replace(WINDOWS, objects={"/api/v1/nodes": planes})
    action = WINDOWS_ACTIONS["partition"]
    commands = action.program(prepare("partition", {}, target)).commands
    assert all(0 < line_length(command) < 8191 for command in commands)
    listed = " ".join(map(str, commands))
    assert all(f"10.1.{n // 128}.{n % 128 * 2}" in listed for n in range(count))


@pytest.mark.parametrize("key", ["ranges", "directions", "tag"])
def test_a_state_names_no_other_rule(key: str) -> None:
    action = WINDOWS_ACTIONS["partition"]
    encoded = action.encode_state(prepare("partition", {}, WINDOWS))
    assert action.decode_state(encoded)
    bad: Any = "all & calc" if key == "tag" else ["any", "& calc"]
    with pytest.raises(msgspec.ValidationError):
        action.decode_state(encoded | {key: bad})


def test_the_failsafe_task_is_done_once_no_rule_is_left() -> None:
    host = WindowsHost()
    timer = WINDOWS_ACTIONS["partition"].program(prepare("partition", {}, WINDOWS)).failsafe
    assert timer is not None
    line = " ".join(map(quote_argument, timer.argv))
    for name in ("nodefall-run-cut", "nodefall-run-cut", "nodefall-run-cut-2"):
        host.machine.firewall.add(FirewallRule(name, "out", ("10.0.0.1",)))
    assert host.run(line, cmd=False)[0] == 0
    assert [rule.name for rule in host.machine.firewall.rules if rule.name.startswith("nodefall")] == [
        "nodefall-run-cut-2"
    ]
    assert host.run(line, cmd=False)[0] == 0  # at a boot


def test_the_failsafe_task_tries_again_while_the_firewall_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """netsh.exe exits with 1 then, as it does where there is no rule: at a boot the task may be earlier."""
    host = WindowsHost()
    timer = WINDOWS_ACTIONS["partition"].program(prepare("partition", {}, WINDOWS)).failsafe
    assert timer is not None
    line = " ".join(map(quote_argument, timer.argv))
    host.machine.firewall.add(FirewallRule("nodefall-run-cut", "out", ("10.0.0.1",)))
    begin, works = host.sim.now, PROGRAMS["netsh"]

    async def netsh(process: WinProcess, arguments: list[str]) -> int:
        if host.sim.now < begin + 30.0:
            process.line("An error occurred while attempting to contact the Windows Defender Firewall service.")
            return 1
        return await works(process, arguments)

    monkeypatch.setitem(PROGRAMS, "netsh", netsh)
    assert host.run(line, cmd=False)[0] == 0
    assert not [rule for rule in host.machine.firewall.rules if rule.name.startswith("nodefall")]
    assert host.sim.now >= begin + 30.0


def test_the_failsafe_task_stays_if_its_rule_does(monkeypatch: pytest.MonkeyPatch) -> None:
    host = WindowsHost()
    timer = WINDOWS_ACTIONS["partition"].program(prepare("partition", {}, WINDOWS)).failsafe
    assert timer is not None
    host.machine.firewall.add(FirewallRule("nodefall-run-cut", "out", ("10.0.0.1",)))

    async def netsh(process: WinProcess, arguments: list[str]) -> int:
        return 1

    monkeypatch.setitem(PROGRAMS, "netsh", netsh)
    assert host.run(" ".join(map(quote_argument, timer.argv)), cmd=False)[0] == 1
