"""powershell.exe: a closed set of scripts, each answered by a dedicated handler.

A script has its name in a comment, and its parameters as JSON; the rest must be the very text that the handler was
written for. No language is interpreted.
Scripts that read: time, addresses, firewall, files and connections.
Scripts that read, set and restore the clock.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from xml.sax.saxutils import escape

from chaos.lab.windows.disk import PREFETCH, read_file, write_file
from chaos.lab.windows.firewall import ACTIVE_PROFILE, API_PORT
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.winshell.connections import Attempt, connect, resolve
from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.service_scripts import (
    TIME_SERVICE,
    Parameters,
    Script,
    ScriptError,
    failsafe_cancel_shutdown,
    failsafe_delete_rules,
    failsafe_run,
    failsafe_start_service,
    register_task,
    restart_service,
    resync,
    start,
    start_service,
    stop_services,
)

_OPTIONS = ["-NoProfile", "-NonInteractive", "-EncodedCommand"]
_SCRIPT = re.compile(
    r"\$ProgressPreference='SilentlyContinue';\$ErrorActionPreference='Stop';\n# nodefall (?P<name>[a-z-]+)\n"
    r"(?:\$p=ConvertFrom-Json '(?P<parameters>[^'\n]*)'\n)?(?P<body>.*)",
    re.DOTALL,
)
_CLIXML = '#< CLIXML\r\n<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">'


async def powershell(process: WinProcess, arguments: list[str]) -> int:
    """``powershell.exe -NoProfile -NonInteractive -EncodedCommand BASE64``. Errors are on stderr as CLIXML."""
    if arguments[:-1] != _OPTIONS:
        return process.fail(f"The lab has no PowerShell: it answers scripts of {' '.join(_OPTIONS)} only.")
    try:
        text = base64.b64decode(arguments[-1], validate=True).decode("utf-16-le")
    except (binascii.Error, UnicodeDecodeError):
        reason = "the value specified with -EncodedCommand is not properly encoded."
        return process.fail(f"Cannot process the command because {reason}")
    match = _SCRIPT.fullmatch(text)
    script = SCRIPTS.get(match["name"]) if match else None
    if match is None or script is None:
        return _fail(process, f"The lab has no PowerShell: it does not know this script: {text[:200]}")
    if script.digest != digest(match["body"]):
        return _fail(process, f"The lab knows another text of the script {match['name']}.")
    try:
        return await script.run(process, json.loads(match["parameters"] or "{}"))
    except ScriptError as error:
        return _fail(process, str(error))


def digest(body: str) -> str:
    """By which a handler recognizes the text of its script."""
    return hashlib.sha256(body.encode()).hexdigest()[:12]


def _fail(process: WinProcess, message: str) -> int:
    lines = "".join(f'<S S="Error">{escape(line)}_x000D__x000A_</S>' for line in message.splitlines())
    process.err(f"{_CLIXML}{lines}</Objs>")
    return 1


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
    """The lab has no group policy. Not recorded: the content of the active store."""
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


_MARK = r"C:\ProgramData\nodefall-clock"


def _boot(machine: WindowsMachine) -> tuple[int, int]:
    """Number of the boot, and its time by the present clock in milliseconds."""
    return machine.registry.number(PREFETCH, "BootId") or 0, round(
        milliseconds(machine) - stopwatch(machine) * 1000 / TICKS
    )


async def read_clock(process: WinProcess, _: Parameters) -> int:
    """The boot, and the mark of set-clock."""
    number, started = _boot(process.machine)
    process.line(f"{number} {started}")
    process.out(read_file(process.machine.files, _MARK) or "")
    return 0


async def set_clock(process: WinProcess, parameters: Parameters) -> int:
    """The mark is written before."""
    machine = process.machine
    number, started = _boot(machine)
    if read_file(machine.files, _MARK) is None:
        write_file(machine.files, _MARK, f"{number} {started} {parameters['seconds']}\r\n")
    machine.clock.adjust(float(parameters["seconds"]))
    return 0


async def restore_clock(process: WinProcess, parameters: Parameters) -> int:
    """By the mark, or after a boot by the time service."""
    machine = process.machine
    number, started = _boot(machine)
    if (mark := read_file(machine.files, _MARK)) is not None:
        marked, before, _ = map(int, mark.split())
        if marked == number:
            machine.clock.adjust((before - started) / 1000)
            write_file(machine.files, _MARK, None)
        else:
            await start(process, TIME_SERVICE)
            if resync(process):
                write_file(machine.files, _MARK, None)
    for name in parameters["services"]:
        await start(process, name)
        if name == TIME_SERVICE:
            resync(process)
    is_wrong = read_file(machine.files, _MARK) is not None
    return int(parameters["until_right"] and is_wrong)


SCRIPTS = {
    "failsafe-cancel-shutdown": Script("5b559d05a2cb", failsafe_cancel_shutdown),
    "failsafe-delete-rules": Script("deeb7435d11c", failsafe_delete_rules),
    "failsafe-run": Script("463681549e40", failsafe_run),
    "failsafe-start-service": Script("6076c1161c0f", failsafe_start_service),
    "list-addresses": Script("fea708c42a12", list_addresses),
    "list-peers": Script("544e728f1f9c", list_peers),
    "probe-endpoints": Script("d43a0b5ed246", probe_endpoints),
    "read-certificates": Script("f98872c3d81e", read_certificates),
    "read-clock": Script("a23110b33d86", read_clock),
    "read-connection": Script("432681545b92", read_connection),
    "read-firewall": Script("db1822df99d4", read_firewall),
    "read-pending-reboot": Script("a0e4391a57da", read_pending_reboot),
    "read-server": Script("121a35838742", read_server),
    "read-time": Script("2836e366ca45", read_time),
    "register-task": Script("4e82dbdccf08", register_task),
    "resolve-name": Script("7f8e8b51b942", resolve_name),
    "restart-service": Script("bd550d5e30d8", restart_service),
    "restore-clock": Script("71d76604a652", restore_clock),
    "set-clock": Script("1251b942876b", set_clock),
    "start-service": Script("de0d0be49e42", start_service),
    "stop-services": Script("2c8a5856b2de", stop_services),
}
