"""Network of a Windows host: its addresses, and those of API servers and whether they answer.

The Windows firewall.
"""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from chaos.core.action import failsafe_unit
from chaos.core.command import HostCommand
from chaos.core.fact import Known, host_fact, lines
from chaos.core.power_identity import plain_address
from chaos.core.windows import powershell, system_program
from chaos.faults.readings.network import api_endpoints

Address = IPv4Address | IPv6Address


def parse_endpoints(stdout: str) -> list[tuple[Address, int]]:
    """Lines ``ADDRESS PORT``, sorted, each once, without loopback. Raises ValueError."""
    found = set()
    for line in stdout.splitlines():
        if line.strip():
            address, _, port = line.strip().partition(" ")
            found.add((plain_address(address), int(port)))
    return sorted((pair for pair in found if not pair[0].is_loopback), key=lambda pair: (str(pair[0]), pair[1]))


# kubeadm, GCE, rke2, EKS, AKS, OpenShift.
KUBECONFIGS = (
    r"C:\etc\kubernetes\kubelet.conf",
    r"C:\etc\kubernetes\kubelet.kubeconfig",
    r"C:\var\lib\rancher\rke2\agent\kubelet.kubeconfig",
    r"C:\ProgramData\kubernetes\kubeconfig",
    r"C:\k\config",
    r"C:\k\kubeconfig",
)
_SERVER = re.compile(r"^\s*server:\s*[\"']?(https://[^\s\"']+)", re.MULTILINE)


@host_fact(
    "kubelet-server",
    "URL of the API server in the kubelet's kubeconfig",
    HostCommand(powershell("read-server", files=KUBECONFIGS)),
)
def kubelet_server(stdout: str, exit_code: int) -> str:
    """Text: a URL, as ``https://10.0.0.1:6443``. Only that line is read: the rest of the file is a secret."""
    match = _SERVER.search(stdout)
    if exit_code or not match:
        raise ValueError("none of " + ", ".join(KUBECONFIGS) + " names a server")
    return match[1].rstrip("/")


_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,253}")  # of a name or an address


def _server_addresses_command(known: Known) -> HostCommand:
    host = urlsplit(str(known["kubelet-server"])).hostname
    if not host or not _HOST.fullmatch(host):
        raise ValueError(f"{known['kubelet-server']} has no host")
    return HostCommand(powershell("resolve-name", name=host))


@host_fact(
    "server-addresses",
    "addresses of the API server that the kubelet's kubeconfig names",
    _server_addresses_command,
    needs=("kubelet-server",),
)
def server_addresses(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of addresses, without loopback: that is a load balancer on the host and not a control plane."""
    if exit_code:
        raise ValueError("the name of the API server is not resolved")
    addresses = map(plain_address, stdout.split())
    return sorted({str(address) for address in addresses if not address.is_loopback})


_PORTS = (443, 6443)


def _api_peers_command(known: Known) -> HostCommand:
    port = urlsplit(str(known["kubelet-server"])).port or _PORTS[0]
    return HostCommand(powershell("list-peers", ports=sorted({port, *_PORTS})))


# Open connections of the kubelet: control planes that neither its kubeconfig nor a Node object names.
@host_fact(
    "api-peers",
    "addresses of API servers that the kubelet has open connections to",
    _api_peers_command,
    needs=("kubelet-server",),
)
def api_peers(stdout: str, exit_code: int) -> list[list[str | int]]:
    """Sorted list of [address, port], as ``[["10.0.0.1", 6443]]``."""
    if exit_code:
        raise ValueError("the connections were not listed")
    return [[str(address), port] for address, port in parse_endpoints(stdout)]


CONNECT_TIMEOUT = 3  # seconds for all addresses together, as they are tried at once


def _api_reachable_command(known: Known) -> HostCommand:
    probes = [_probe(address, int(port)) for address, port in api_endpoints(known)]
    script = powershell("probe-endpoints", endpoints=probes, seconds=CONNECT_TIMEOUT)
    return HostCommand(script, timeout=30.0 + CONNECT_TIMEOUT)


@host_fact(
    "api-reachable",
    "whether new connections to the API server succeed, by address family",
    _api_reachable_command,
    needs=("kubelet-server", "server-addresses", "api-peers"),
)
def api_reachable(stdout: str, exit_code: int) -> dict[str, bool]:
    """Mapping ``{"ipv4": true, "ipv6": false}`` of the families with a known address; true if an address answers."""
    if exit_code:
        raise ValueError("the probes did not run")
    reachable: dict[str, bool] = {}
    for line in stdout.splitlines():
        address, _, word = line.strip().partition(" ")
        if word not in ("True", "False"):
            raise ValueError(f"a probe printed {line[:80]!r}")
        family = f"ipv{ipaddress.ip_address(address).version}"
        reachable[family] = reachable.get(family, False) or word == "True"
    if not reachable:
        raise ValueError("the probes did not run")
    return reachable


def _probe(address: str, port: int) -> dict[str, str | int]:
    family = "InterNetworkV6" if ipaddress.ip_address(address).version == 6 else "InterNetwork"
    return {"address": address, "family": family, "port": port}


# Addresses of the host, also those that are not in its Node object.
@host_fact("host-addresses", "addresses of the host's interfaces", HostCommand(powershell("list-addresses")))
def host_addresses(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of addresses, as ``["10.0.0.11", "fd00::11"]``, without loopback and link-local ones."""
    if exit_code or not stdout.strip():
        raise ValueError("Get-NetIPAddress failed")
    found = {ipaddress.ip_address(word.partition("%")[0]) for word in stdout.split()}
    return sorted(str(address) for address in found if not (address.is_loopback or address.is_link_local))


# Peer of the host's SSH connection: nodefall, a jump host or a translated address.
@host_fact(
    "connection-peers",
    "address that nodefall's connection comes from, as seen by the host",
    HostCommand(powershell("read-connection")),
)
def connection_peers(stdout: str, exit_code: int) -> list[str]:
    """List of one address, as ``["10.0.0.9"]``. WinRM shows its client to no program: its service reports it."""
    words = stdout.split()
    if exit_code or len(words) != 4:
        raise ValueError(f"SSH_CONNECTION is {stdout.strip()[:80]!r}")
    return [str(plain_address(words[0]))]


# Where the firewall stores its rules. netsh.exe would print all of them, hundreds, with labels that are translated.
_RULES_KEY = r"HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules"
_RULE = re.compile(r"    REG_SZ    v[\d.]+\|[^\r\n]*?\|Name=(?P<name>nodefall-[^|\r\n]*)\|")


def find_rules(tag: str = "") -> HostCommand:
    """Lists the rules of the step with ``tag``, or of every step; 1 and a line of output if there are none."""
    name = f"{failsafe_unit(tag)}|" if tag else "nodefall-"
    return HostCommand((system_program("reg"), "query", _RULES_KEY, "/f", f"Name={name}", "/d"), accept=(0, 1))


@host_fact(
    "firewall-rules",
    "rules of nodefall in the Windows firewall",
    find_rules(),
    form=lines(r"    \S[^\n]*    REG_SZ    v[\d.]+\|[^\n]*", r"(?![^\n]*nodefall-)[^\n]*"),
)
def firewall_rules(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of names, as ``["nodefall-0a1b2c-cut"]``; rules of the same name count once."""
    if exit_code == 1 and stdout.strip():  # the number of matches, which is none; of a bad key there is no output
        return []
    if exit_code:
        raise ValueError("the registry has no firewall rules")
    return sorted({match["name"] for match in _RULE.finditer(stdout)})


_DOMAIN = "DomainAuthenticated"  # category of a network whose profile is Domain


@host_fact(
    "firewall-state", "state of the Windows firewall by profile in use", HostCommand(powershell("read-firewall"))
)
def firewall_state(stdout: str, exit_code: int) -> dict[str, str]:
    """Mapping ``{"Public": "on"}`` of the profiles in use; ``off``, or ``policy`` where local rules do not act.

    All profiles without a network that has one.
    """
    states: dict[str, str] = {}
    used: set[str] = set()
    for words in map(str.split, stdout.splitlines()):
        match words:
            case ["profile", name, "True" | "1", *rest]:
                states[name] = "policy" if rest in (["False"], ["0"]) else "on"
            case ["profile", name, *_]:
                states[name] = "off"
            case ["network", category]:
                used.add("Domain" if category == _DOMAIN else category)
    if exit_code or not states or not used <= states.keys():
        raise ValueError("the profiles were not listed")
    return {name: states[name] for name in sorted(used or states)}
