"""Addresses and TCP connections of a Windows machine, as it sees them itself."""

from __future__ import annotations

from typing import NamedTuple

from chaos.lab.node.network import Family
from chaos.lab.windows.firewall import API_PORT
from chaos.lab.windows.machine import (
    KUBELET,
    KUBELET_PORT,
    SSH_PORT,
    SSHD,
    WINRM,
    WINRM_PORT,
    WINRM_TLS_PORT,
    WindowsMachine,
)

INTERFACE = "Ethernet"
_LOOPBACK = "Loopback Pseudo-Interface 1"
_SYSTEM_PID = 4  # http.sys listens for WinRM
_CLIENT_PORT = 49700  # of the kubelet's connection; invented
_ANY = "0.0.0.0"  # noqa: S104 - what Windows shows for a listener


class Socket(NamedTuple):
    """``state``: Listen or Established."""

    local_address: str
    local_port: int
    remote_address: str
    remote_port: int
    state: str
    pid: int


def addresses_of(machine: WindowsMachine) -> list[tuple[str, Family, str, int]]:
    """(address, family, interface, length of the prefix), those of loopback last."""
    own = machine.network.resolve(machine.name)
    found: list[tuple[str, Family, str, int]] = [
        (address, family, INTERFACE, 24 if family == "ipv4" else 64) for family, address in own.items()
    ]
    return [*found, ("127.0.0.1", "ipv4", _LOOPBACK, 8), ("::1", "ipv6", _LOOPBACK, 128)]


def list_sockets(machine: WindowsMachine) -> list[Socket]:
    """Listeners, the clients of WinRM and SSH, and the kubelet's connection to the API server."""
    kubelet, sshd = machine.services.get(KUBELET), machine.services.get(SSHD)
    found = []
    if machine.services.get(WINRM).is_running:
        found += [Socket(_ANY, port, _ANY, 0, "Listen", _SYSTEM_PID) for port in (WINRM_PORT, WINRM_TLS_PORT)]
    if sshd.is_running:
        found.append(Socket(_ANY, SSH_PORT, _ANY, 0, "Listen", sshd.pid))
    if machine.kubelet.is_running:
        found.append(Socket(_ANY, KUBELET_PORT, _ANY, 0, "Listen", kubelet.pid))
    local = next(iter(machine.network.resolve(machine.name).values()))
    for port, address, remote_port in sorted(client for clients in machine.client_lists for client in clients()):
        pid = sshd.pid if port == SSH_PORT else _SYSTEM_PID
        found.append(Socket(local, port, address, remote_port, "Established", pid))
    if (family := machine.kubelet.connection_family) is not None:
        own, server = machine.network.resolve(machine.name)[family], machine.network.server_addresses[family]
        found.append(Socket(own, _CLIENT_PORT, server, API_PORT, "Established", kubelet.pid))
    return found
