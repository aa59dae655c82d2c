"""``sc.exe query``: state of a service. Its labels are translated, the names of states and its exit codes are not."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.windows import system_program

KUBELET = "kubelet"  # graceful shutdown works under no other name: the kubelet opens the service that is named so
RUNTIME = "containerd"
UNKNOWN_SERVICE = 1060
_STATE = re.compile(
    r":\s+\d\s+(?P<state>RUNNING|STOPPED|START_PENDING|STOP_PENDING|PAUSED|PAUSE_PENDING|CONTINUE_PENDING)"
)
# As systemd names them, so that what holds of a kubelet's state holds on both systems.
_ACTIVE_STATES = {
    "RUNNING": "active",
    "STOPPED": "inactive",
    "START_PENDING": "activating",
    "STOP_PENDING": "deactivating",
}
_ROW = re.compile(r"^\s+[^\s:][^:]*:[ \t]*(?P<value>[^\r\n]*?)[ \t\r]*$", re.MULTILINE)
_PID_ROW = -2  # the last but one: FLAGS follow


def service_key(name: str) -> str:
    """Key of a service in the registry."""
    return rf"HKLM\SYSTEM\CurrentControlSet\Services\{name}"


def query_service(name: str) -> HostCommand:
    """Command whose output :func:`parse_service_state` understands."""
    return HostCommand((system_program("sc"), "query", name), accept=(0, UNKNOWN_SERVICE))


def parse_service_name(exit_code: int, name: str) -> str:
    """``name``, if :func:`query_service` found that service. Raises ValueError."""
    if exit_code == UNKNOWN_SERVICE:
        raise ValueError(f"there is no service {name}")
    if exit_code:
        raise ValueError("sc.exe is not understood")
    return name


def parse_service_state(stdout: str, exit_code: int) -> str:
    """``active``, ``inactive``, ``activating``, ``deactivating`` or ``paused``. Raises ValueError."""
    match = _STATE.search(_require_service(stdout, exit_code))
    if not match:
        raise ValueError("sc.exe is not understood")
    return _ACTIVE_STATES.get(match["state"], "paused")


def query_process(name: str) -> HostCommand:
    """Command whose output :func:`parse_process` understands."""
    return HostCommand((system_program("sc"), "queryex", name), accept=(0, UNKNOWN_SERVICE))


def parse_process(stdout: str, exit_code: int) -> int:
    """Process ID of a service, 0 while it has no process. Raises ValueError."""
    rows = [match["value"] for match in _ROW.finditer(_require_service(stdout, exit_code))]
    if len(rows) < -_PID_ROW or not (rows[_PID_ROW].isascii() and rows[_PID_ROW].isdecimal()):
        raise ValueError("sc.exe is not understood")
    return int(rows[_PID_ROW])


def _require_service(stdout: str, exit_code: int) -> str:
    """The output for a service that exists. Raises ValueError."""
    if exit_code == UNKNOWN_SERVICE:
        raise ValueError("there is no such service")
    if exit_code:
        raise ValueError("sc.exe is not understood")
    return stdout
