"""Network of a host: its addresses, those of API servers and whether they answer, and lookups of names."""

from __future__ import annotations

import ipaddress
import re
import shlex
from urllib.parse import urlsplit

from pydantic import Field

from chaos.core.command import HostCommand
from chaos.core.fact import Known, host_fact, lines
from chaos.core.field_types import DnsName, Model

# kubeadm and kind, k3s, rke2, k0s, microk8s, managed clusters.
KUBECONFIGS = (
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/lib/k0s/kubelet.conf",
    "/var/snap/microk8s/current/credentials/kubelet.config",
    "/var/lib/kubelet/kubeconfig",
)
# Of YAML in either style and of JSON, which may have all of the file in one line: only the URL leaves the host.
_PATTERN = """server"?: *["']?https://[^"' ,}]+"""
_SERVER = re.compile(r"server\"?:\s*[\"']?(https://[^\s\"',}]+)")


@host_fact(
    "kubelet-server",
    "URL of the API server in the kubelet's kubeconfig",
    HostCommand(("grep", "-hsoE", _PATTERN, *KUBECONFIGS)),
    form=lines(r"""server"?: *["']?https://[^"' ,}\n]+"""),
)
def kubelet_server(stdout: str, _exit_code: int) -> str:  # grep exits with 2 if one of the files is missing
    """Text: a URL, as ``https://10.0.0.1:6443``. Nothing else is read: the rest of the file is a secret."""
    match = _SERVER.search(stdout)
    if not match:
        raise ValueError("none of " + ", ".join(KUBECONFIGS) + " names a server")
    return match[1].rstrip("/")


_HOSTS = lines(r"\S+ +(?:STREAM|DGRAM|RAW)[^\n]*")  # of getent ahosts


def _server_addresses_command(known: Known) -> HostCommand:
    host = urlsplit(str(known["kubelet-server"])).hostname
    if not host:
        raise ValueError(f"{known['kubelet-server']} has no host")
    return HostCommand(("getent", "ahosts", host), sudo=False)


@host_fact(
    "server-addresses",
    "addresses of the API server that the kubelet's kubeconfig names",
    _server_addresses_command,
    needs=("kubelet-server",),
    form=_HOSTS,
)
def server_addresses(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of addresses, without loopback: that is a load balancer on the host (k3s) and not a control plane."""
    if exit_code:
        raise ValueError("the name of the API server is not resolved")
    addresses = {ipaddress.ip_address(line.split()[0].split("%")[0]) for line in stdout.splitlines() if line.strip()}
    return sorted(str(_unmapped_address(address)) for address in addresses if not address.is_loopback)


def _unmapped_address(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """getent prints mapped addresses (::ffff:192.0.2.1) for some hosts files."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


_KUBELETS = ("kubelet", "kubelite", "k3s", "rke2", "k0s")
_PEER = re.compile(r"(?P<address>\S+):(?P<port>\d+)\s+users:\(\(\"(?P<program>[^\"]+)\"")
_PORTS = (443, 6443)


def _api_peers_command(known: Known) -> HostCommand:
    port = urlsplit(str(known["kubelet-server"])).port or _PORTS[0]
    ports = sorted({port, *_PORTS})
    ports_filter = " or ".join(f"dport = :{number}" for number in ports)
    return HostCommand(("ss", "-Htnp", "state", "established", f"( {ports_filter} )"))


# Open connections of the kubelet: control planes that neither its kubeconfig nor a Node object names.
@host_fact(
    "api-peers",
    "addresses of API servers that the kubelet has open connections to",
    _api_peers_command,
    needs=("kubelet-server",),
    form=lines(r" *\d+ +\d+ +\S+:\S+ +\S+:\d+[^\n]*"),
)
def api_peers(stdout: str, exit_code: int) -> list[list[str | int]]:
    """Sorted list of [address, port], ``[["10.0.0.1", 6443]]``: a load balancer on the host (k3s) has another port."""
    if exit_code:
        raise ValueError("ss did not answer")
    peers = set()
    for line in stdout.splitlines():
        match = _PEER.search(line)
        if match and match["program"].startswith(_KUBELETS):
            address = ipaddress.ip_address(match["address"].strip("[]").removeprefix("::ffff:").split("%")[0])
            if not address.is_loopback:
                peers.add((str(address), int(match["port"])))
    return [list(peer) for peer in sorted(peers)]


CURL_TIMEOUT = 3  # seconds for each address
# curl(1): 7 no connection, 28 timed out; any other exit code means that a server answered.
_UNREACHABLE, _NO_CURL = (7, 28), 127


def api_endpoints(known: Known) -> list[tuple[str, int]]:
    """Sorted addresses and ports of the API servers that the host knows. Raises ValueError if it knows none."""
    port = urlsplit(str(known["kubelet-server"])).port or 443
    endpoints = {*((address, port) for address in known["server-addresses"]), *map(tuple, known["api-peers"])}
    if not endpoints:
        raise ValueError("no address of an API server is known on the host")
    return sorted(endpoints)


def _api_reachable_command(known: Known) -> HostCommand:
    probes = " & ".join(_probe_command(address, port) for address, port in api_endpoints(known))
    return HostCommand(("sh", "-c", f"{probes} & wait"), timeout=15.0 + CURL_TIMEOUT, sudo=False)


@host_fact(
    "api-reachable",
    "whether new connections to the API server succeed, by address family",
    _api_reachable_command,
    needs=("kubelet-server", "server-addresses", "api-peers"),
    form=lines(r"[0-9A-Fa-f:.]+ \d+"),
)
def api_reachable(stdout: str, exit_code: int) -> dict[str, bool]:
    """Mapping ``{"ipv4": true, "ipv6": false}`` of the families with a known address; true if an address answers."""
    if exit_code:
        raise ValueError("the probes did not run")
    reachable: dict[str, bool] = {}
    for line in stdout.splitlines():
        address, _, code = line.rpartition(" ")
        if int(code) == _NO_CURL:
            raise ValueError("there is no curl on the host")
        family = f"ipv{ipaddress.ip_address(address).version}"
        reachable[family] = reachable.get(family, False) or int(code) not in _UNREACHABLE
    return reachable


def _probe_command(address: str, port: int) -> str:
    """The command of one probe. All run in parallel: in sequence, a partition in between would affect only some."""
    host = f"[{address}]" if ":" in address else address
    script = f'curl -s -k --noproxy "*" -o /dev/null -m {CURL_TIMEOUT} https://{host}:{port}/readyz; echo {address} $?'
    return shlex.join(("sh", "-c", script))


_FOUND, _NOT_FOUND = 0, 2  # getent(1)


class DnsLookupParams(Model):
    name: DnsName = Field(description="The name to look up, such as kubernetes.io.")


def _dns_lookup_command(_: Known, options: DnsLookupParams) -> HostCommand:
    limits = "RES_OPTIONS=timeout:2 attempts:1"
    argv = ("env", limits, "getent", "-s", "dns", "ahosts", f"{options.name}.")
    return HostCommand(argv, accept=(_FOUND, _NOT_FOUND), timeout=30.0, sudo=False)


@host_fact(
    "dns-lookup",
    "whether the host can look up a name at its DNS server",
    _dns_lookup_command,
    params=DnsLookupParams,
    form=_HOSTS,
)
def dns_lookup(stdout: str, exit_code: int, _options: DnsLookupParams) -> bool:
    """True or false: whether the name is resolved over port 53, without /etc/hosts and other sources."""
    if exit_code not in (_FOUND, _NOT_FOUND) or (exit_code == _FOUND) != bool(stdout.strip()):
        raise ValueError("getent did not answer")
    return exit_code == _FOUND


# Addresses of the host: there may be more than in its Node object, such as that of the API server.
@host_fact(
    "host-addresses",
    "addresses of the host's interfaces",
    HostCommand(("hostname", "-I"), sudo=False),
    form=r"[0-9A-Fa-f:. ]*\n",
)
def host_addresses(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of addresses, as ``["10.0.0.11", "fd00::11"]``, without loopback and link-local ones."""
    if exit_code:
        raise ValueError("hostname failed")
    return sorted(str(ipaddress.ip_address(word)) for word in stdout.split())


_ADDRESS = r"[0-9A-Fa-f:.]+(?:%[\w.-]+)?"


# Peer of the host's SSH connection: nodefall, a jump host or a translated address.
@host_fact(
    "ssh-peer",
    "peer of nodefall's connection, as seen by the host",
    HostCommand(("printenv", "SSH_CONNECTION"), accept=(0, 1), sudo=False),
    form=rf"(?:{_ADDRESS} \d+ {_ADDRESS} \d+\n)?",
)
def ssh_peer(stdout: str, exit_code: int) -> dict[str, str | int]:
    """Mapping ``{"address": "10.0.0.9", "port": 22}``: the peer's address, the port of sshd; {} without SSH."""
    words = stdout.split()
    if exit_code == 1 and not words:
        return {}
    if len(words) != 4 or not words[3].isdecimal():
        raise ValueError(f"SSH_CONNECTION is {stdout.strip()[:80]!r}")
    return {"address": words[0].split("%")[0], "port": int(words[3])}
