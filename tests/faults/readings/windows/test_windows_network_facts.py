"""Facts of a Windows host's network: scripts, and their output."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.core.encoded_script import decode_script, read_script
from chaos.core.power_identity import plain_address
from chaos.engine.registry import load_windows_facts
from tests.kit.actionkit import command_text, line_length

FACTS = load_windows_facts()
SERVER = {"kubelet-server": "https://cp.example:6443"}
KNOWN = SERVER | {"server-addresses": ["10.0.0.1", "fd00::1"], "api-peers": [["10.0.0.1", 6443]]}
COMMANDS = [
    ("server-addresses", SERVER, 'resolve-name {"name":"cp.example"}'),
    ("server-addresses", {"kubelet-server": "https://[fd00::1]:6443"}, '{"name":"fd00::1"}'),
    ("api-peers", SERVER, 'list-peers {"ports":[443,6443]}'),
    ("api-peers", {"kubelet-server": "https://lb:8443"}, '{"ports":[443,6443,8443]}'),
    (
        "api-reachable",
        KNOWN,
        'probe-endpoints {"endpoints":[{"address":"10.0.0.1","family":"InterNetwork","port":6443}',
    ),
    ("api-reachable", KNOWN, '{"address":"fd00::1","family":"InterNetworkV6","port":6443}],"seconds":3}'),
    ("firewall-rules", {}, r"\FirewallPolicy\FirewallRules' /f Name=nodefall- /d"),
]


@pytest.mark.parametrize(("name", "known", "part"), COMMANDS)
def test_commands(name: str, known: dict[str, Any], part: str) -> None:
    assert part in command_text(FACTS[name].command_for(known))


@pytest.mark.parametrize("server", ["https://", "https://a'b:6443", "https://a$(x)", "https://a;b"])
def test_no_script_is_made_of_a_name_that_is_none(server: str) -> None:
    with pytest.raises(ValueError, match="has no host"):
        FACTS["server-addresses"].command_for({"kubelet-server": server})


def test_no_probe_without_an_address() -> None:
    with pytest.raises(ValueError, match="no address of an API server"):
        FACTS["api-reachable"].command_for(SERVER | {"server-addresses": [], "api-peers": []})


@given(st.lists(st.ip_addresses().map(str), min_size=1, max_size=8, unique=True))
def test_every_address_is_tried_and_fits_a_command_line(addresses: list[str]) -> None:
    known = SERVER | {"server-addresses": addresses, "api-peers": []}
    command = FACTS["api-reachable"].command_for(known)
    probed = json.loads(decode_script(command.argv).partition(" ")[2])["endpoints"]
    assert sorted(item["address"] for item in probed) == sorted(addresses)
    assert line_length(command) < 8191


def test_every_probe_begins_before_one_is_waited_for() -> None:
    begin, end = read_script("probe-endpoints").split("$end =")
    assert "ConnectAsync" in begin
    assert ".Wait(" not in begin
    assert ".Wait(" in end


KEY = "\r\nHKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\...\\FirewallPolicy\\FirewallRules\r\n"
RULE = "v2.31|Action=Block|Active=TRUE|Dir={}|RA4=10.0.0.1|Name=nodefall-{}|"
RULES = KEY + "".join(
    f"    {{5C01}}    REG_SZ    {RULE.format(direction, 'r1-cut')}\r\n" for direction in ("In", "Out")
)
OTHER = f"{KEY}    {{5C03}}    REG_SZ    v2.31|Action=Allow|Active=TRUE|Dir=In|Name=x|Desc=Name=nodefall-1|\r\n"
PROFILES = "profile Domain True True\r\nprofile Private True NotConfigured\r\nprofile Public True False\r\n"
GOOD: list[tuple[str, str, int, Any]] = [
    ("kubelet-server", "    server: https://10.0.0.1:6443\r\n", 0, "https://10.0.0.1:6443"),
    ("kubelet-server", '    server: "https://cp:6443/"\r\n', 0, "https://cp:6443"),
    ("server-addresses", "fd00::1\r\n10.0.0.1\r\n127.0.0.1\r\n::1\r\n::ffff:10.0.0.1\r\n", 0, ["10.0.0.1", "fd00::1"]),
    ("api-peers", "", 0, []),
    (
        "api-peers",
        "fd00::1 6443\r\n10.0.0.1 6443\r\n10.0.0.1 6443\r\n127.0.0.1 6443\r\n",
        0,
        [["10.0.0.1", 6443], ["fd00::1", 6443]],
    ),
    ("api-reachable", "10.0.0.1 True\r\nfd00::1 False\r\n", 0, {"ipv4": True, "ipv6": False}),
    ("api-reachable", "10.0.0.1 False\r\n10.0.0.2 True\r\n10.0.0.3 False\r\n", 0, {"ipv4": True}),
    ("connection-peers", "192.0.2.1 40000 10.0.0.9 22\r\n", 0, ["192.0.2.1"]),
    ("connection-peers", "fe80::1%4 40000 fe80::2%4 22\r\n", 0, ["fe80::1"]),
    ("connection-peers", "::ffff:10.0.0.8 40000 10.0.0.9 22\r\n", 0, ["10.0.0.8"]),
    ("login-domain", "win1\\administrator\r\n", 0, "win1"),
    ("login-domain", "CORP\\ann\r\n", 0, "corp"),
    ("firewall-rules", "End of search: 0 match(es) found.\r\n", 1, []),
    ("firewall-rules", "Suche abgeschlossen: 0 Übereinstimmung(en) gefunden.\r\n", 1, []),
    ("firewall-rules", f"{RULES}\r\nEnd of search: 2 match(es) found.\r\n", 0, ["nodefall-r1-cut"]),
    ("firewall-rules", f"{OTHER}\r\nEnd of search: 1 match(es) found.\r\n", 0, []),
    ("firewall-state", f"{PROFILES}network Public\r\n", 0, {"Public": "policy"}),
    ("firewall-state", f"{PROFILES}network DomainAuthenticated\r\n", 0, {"Domain": "on"}),
    ("firewall-state", PROFILES, 0, {"Domain": "on", "Private": "on", "Public": "policy"}),
    ("firewall-state", "profile Public False NotConfigured\r\n", 0, {"Public": "off"}),
]
BAD = [
    ("kubelet-server", "", 0, "names a server"),
    ("kubelet-server", "server: http://10.0.0.1", 0, "names a server"),
    ("server-addresses", "", 1, "not resolved"),
    ("server-addresses", "cp", 0, "cp"),
    ("api-peers", "", 1, "not listed"),
    ("api-peers", "10.0.0.1", 0, "invalid literal"),
    ("api-reachable", "", 0, "did not run"),
    ("api-reachable", "10.0.0.1 maybe", 0, "'10.0.0.1 maybe'"),
    ("api-reachable", "10.0.0.1 True", 1, "did not run"),
    ("connection-peers", "\r\n", 0, "SSH_CONNECTION is ''"),
    ("connection-peers", "10.0.0.8 40000 10.0.0.9 22", 1, "SSH_CONNECTION is"),
    ("connection-peers", "x 40000 10.0.0.9 22", 0, "'x'"),
    ("login-domain", "administrator", 0, "cannot parse"),
    ("login-domain", "win1\\x", 1, "cannot parse"),
    ("firewall-rules", "", 1, "no firewall rules"),
    ("firewall-state", "", 0, "not listed"),
    ("firewall-state", "profile Public True True\r\nnetwork Private\r\n", 0, "not listed"),
]


@pytest.mark.parametrize(("name", "stdout", "code", "value"), GOOD)
def test_parsed(name: str, stdout: str, code: int, value: Any) -> None:
    assert FACTS[name].parse(stdout, code) == value


@pytest.mark.parametrize(("name", "stdout", "code", "why"), BAD)
def test_output_that_is_not_understood(name: str, stdout: str, code: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FACTS[name].parse(stdout, code)


@given(st.ip_addresses(), st.sampled_from(["", "%4"]))
def test_addresses_lose_their_zone_only(address: Any, zone: str) -> None:
    expected = getattr(address, "ipv4_mapped", None) or address
    assert plain_address(f"{str(address).partition('%')[0]}{zone}") == expected
