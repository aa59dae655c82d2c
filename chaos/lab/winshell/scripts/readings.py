"""Scripts that read: time, addresses, firewall, files and connections."""

from __future__ import annotations

from chaos.lab.windows.files import read_file
from chaos.lab.windows.firewall import ACTIVE_PROFILE, API_PORT
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.connections import Attempt, connect, resolve
from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.scripts.script import Parameters, ScriptError

TICKS = 10_000_000  # a second
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_VERSION = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion"
_MARKS = {
    "PackagesPending": "Component Based Servicing",
    "RebootInProgress": "Component Based Servicing",
    "RebootPending": "Component Based Servicing",
    "RebootRequired": r"WindowsUpdate\Auto Update",
}


def milliseconds(machine: WindowsMachine) -> int:
    """The time by the machine's clock, since the epoch."""
    return round(machine.clock.now * TICKS) // (TICKS // 1000)


def stopwatch(machine: WindowsMachine) -> int:
    """Ticks since the boot."""
    return int(machine.uptime * TICKS)


async def read_time(process: WinProcess, _: Parameters) -> int:
    """The time by the clock, in milliseconds."""
    process.line(str(milliseconds(process.machine)))
    return 0


async def list_addresses(process: WinProcess, _: Parameters) -> int:
    """Addresses, those of loopback last."""
    machine = process.machine
    for address in (*machine.network.resolve(machine.name).values(), "127.0.0.1", "::1"):
        process.line(address)
    return 0


async def read_connection(process: WinProcess, _: Parameters) -> int:
    """SSH_CONNECTION of the environment."""
    process.line(process.connection)
    return 0


async def read_firewall(process: WinProcess, _: Parameters) -> int:
    """The lab has no policy of a group. No recording: what the active store has."""
    for name, is_on in process.machine.firewall.state.items():
        process.line(f"profile {name} {is_on} True")
    process.line(f"network {ACTIVE_PROFILE}")
    return 0


async def read_pending_reboot(process: WinProcess, _: Parameters) -> int:
    """Whether each key is there."""
    for name, key in _MARKS.items():
        found = process.machine.registry.values("\\".join((_VERSION, key, name)))
        process.line(f"{name} {found is not None}")
    return 0


async def read_server(process: WinProcess, parameters: Parameters) -> int:
    """The lines of kubeconfig files that name a server."""
    for path in parameters["files"]:
        for line in (read_file(process.machine.files, path) or "").splitlines():
            if line.lstrip().startswith("server:"):
                process.line(line)
    return 0


async def read_certificates(process: WinProcess, parameters: Parameters) -> int:
    """Certificates without private keys."""
    for path in parameters["files"]:
        inside = False
        for line in (read_file(process.machine.files, path) or "").splitlines():
            inside = inside or line == _BEGIN
            if inside:
                process.line(line)
            inside = inside and line != _END
    return 0


async def list_peers(process: WinProcess, parameters: Parameters) -> int:
    """Of the simulated connections, the kubelet has that to the API server."""
    machine = process.machine
    family = machine.kubelet.connection_family
    if family is not None and API_PORT in parameters["ports"]:
        process.line(f"{machine.network.server_addresses[family]} {API_PORT}")
    return 0


async def resolve_name(process: WinProcess, parameters: Parameters) -> int:
    """Addresses of a node, or of a literal."""
    addresses = resolve(process.machine, parameters["name"])
    if not addresses:
        raise ScriptError('Exception calling "GetHostAddresses" with "1" argument(s): "No such host is known"')
    for address in addresses:
        process.line(address)
    return 0


async def probe_endpoints(process: WinProcess, parameters: Parameters) -> int:
    """All connections are attempted at once; the script waits for one after the other, for seconds in all."""
    machine, now = process.machine, process.host.sim.now
    attempts = [Attempt(item["address"], int(item["port"]), now) for item in parameters["endpoints"]]
    end = stopwatch(machine) + parameters["seconds"] * TICKS
    for attempt in attempts:
        wait = max(1, round((end - stopwatch(machine)) * 1000 / TICKS))
        process.line(f"{attempt.address} {await connect(process, attempt, wait / 1000) == 'open'}")
    return 0
