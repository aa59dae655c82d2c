"""Services of Windows: the kubelet's, the container runtime's and any other, and nodefall's tasks.

``sc.exe query`` shows the state of a service. Its labels are translated, names of states and its exit codes are not.
The clock of a Windows host.
"""

from __future__ import annotations

import re

from pydantic import Field

from chaos.core.command import HostCommand
from chaos.core.fact import host_fact, lines
from chaos.core.field_types import Model
from chaos.core.windows import LIST_TASKS, parse_task_names, powershell, system_program
from chaos.faults.readings.windows._registry import (
    VALUE,
    is_missing,
    parse_number,
    parse_strings,
    parse_value,
    query_value,
)

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
        raise ValueError("cannot parse the output of sc.exe")
    return name


def parse_service_state(stdout: str, exit_code: int) -> str:
    """``active``, ``inactive``, ``activating``, ``deactivating`` or ``paused``. Raises ValueError."""
    match = _STATE.search(_require_service(stdout, exit_code))
    if not match:
        raise ValueError("cannot parse the output of sc.exe")
    return _ACTIVE_STATES.get(match["state"], "paused")


def query_process(name: str) -> HostCommand:
    """Command whose output :func:`parse_process` understands."""
    return HostCommand((system_program("sc"), "queryex", name), accept=(0, UNKNOWN_SERVICE))


def parse_process(stdout: str, exit_code: int) -> int:
    """Parse a service's process ID, 0 while it has no process. Raises ValueError."""
    rows = [match["value"] for match in _ROW.finditer(_require_service(stdout, exit_code))]
    if len(rows) < -_PID_ROW or not (rows[_PID_ROW].isascii() and rows[_PID_ROW].isdecimal()):
        raise ValueError("cannot parse the output of sc.exe")
    return int(rows[_PID_ROW])


def _require_service(stdout: str, exit_code: int) -> str:
    """The output for a service that exists. Raises ValueError."""
    if exit_code == UNKNOWN_SERVICE:
        raise ValueError("there is no such service")
    if exit_code:
        raise ValueError("cannot parse the output of sc.exe")
    return stdout


class ServiceStateParams(Model):
    service: str = Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}$", description="The name of the service, such as w32time."
    )


@host_fact(
    "service-state",
    "state of a Windows service",
    lambda _, options: query_service(options.service),
    params=ServiceStateParams,
)
def service_state(stdout: str, exit_code: int, _options: ServiceStateParams) -> str:
    """Text, in systemd's words: active, inactive, activating, deactivating, paused."""
    return parse_service_state(stdout, exit_code)


@host_fact("runtime-unit", "service of the container runtime", query_service(RUNTIME), form=None)
def runtime_unit(_stdout: str, exit_code: int) -> str:  # only whether it is there
    """Text: the service's name, ``containerd``: the only runtime of the kubelet on Windows that nodefall knows."""
    return parse_service_name(exit_code, RUNTIME)


@host_fact("runtime-state", "state of the container runtime's service", query_service(RUNTIME))
def runtime_state(stdout: str, exit_code: int) -> str:
    """Text, in systemd's words: active, inactive, activating, deactivating, paused."""
    return parse_service_state(stdout, exit_code)


@host_fact("kubelet-unit", "service of the kubelet", query_service(KUBELET), form=None)
def kubelet_unit(_stdout: str, exit_code: int) -> str:  # only whether it is there
    """Text: the service's name, ``kubelet``."""
    return parse_service_name(exit_code, KUBELET)


@host_fact("kubelet-state", "state of the kubelet's service", query_service(KUBELET))
def kubelet_state(stdout: str, exit_code: int) -> str:
    """Text, in systemd's words: active, inactive, activating, deactivating, paused."""
    return parse_service_state(stdout, exit_code)


@host_fact("kubelet-process", "process ID of the kubelet's service", query_process(KUBELET))
def kubelet_process(stdout: str, exit_code: int) -> dict[str, int]:
    """Mapping ``{"pid": 812}``, {} without a process. Under nssm it is that of nssm, which ends with the kubelet."""
    pid = parse_process(stdout, exit_code)
    return {"pid": pid} if pid else {}


@host_fact(
    "kubelet-binary",
    "command line of the kubelet's service, which shows a wrapper such as nssm",
    query_value(service_key(KUBELET), "ImagePath"),
    form=VALUE,
)
def kubelet_binary(stdout: str, exit_code: int) -> str:
    r"""Text: command line of the service, as ``C:\k\kubelet.exe --windows-service``. `sc.exe qc` has it, translated."""
    return parse_value(stdout, exit_code, "ImagePath")


_DEPENDENCIES = "DependOnService"


@host_fact(
    "kubelet-dependencies",
    "services that the kubelet's service depends on",
    query_value(rf"HKLM\SYSTEM\CurrentControlSet\Services\{KUBELET}", _DEPENDENCIES),
    form=VALUE,
)
def kubelet_dependencies(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of names in lower case, as ``["containerd"]``: none of them can be stopped while the kubelet runs."""
    if exit_code == 1 and not stdout.strip():  # no such value, as of a service without dependencies
        return []
    return sorted(name.lower() for name in parse_strings(stdout, exit_code, _DEPENDENCIES))


_FLAGS = re.compile(r"\([A-Z_]+(?:, ?[A-Z_]+)*\)")
_NOTICES = {"ACCEPTS_PRESHUTDOWN": "preshutdown", "ACCEPTS_SHUTDOWN": "shutdown"}


@host_fact(
    "kubelet-shutdown-control",
    "notice of a shutdown that the kubelet's service accepts while it runs",
    query_service(KUBELET),
)
def kubelet_shutdown_control(stdout: str, exit_code: int) -> str:
    """Text: ``preshutdown``, ``shutdown`` or ``none``: a service that runs accepts one of both, or neither."""
    if exit_code == UNKNOWN_SERVICE:
        raise ValueError(f"there is no service {KUBELET}")
    flags = _FLAGS.search(stdout)
    if exit_code or flags is None:
        raise ValueError("the service does not run")
    words = flags[0].strip("()").replace(" ", "").split(",")
    return next((notice for flag, notice in _NOTICES.items() if flag in words), "none")


_TIMEOUT = "PreshutdownTimeout"


@host_fact(
    "preshutdown-timeout",
    "seconds that Windows waits for the kubelet's service after the pre-shutdown notice",
    query_value(service_key(KUBELET), _TIMEOUT),
    form=VALUE,
)
def preshutdown_timeout(stdout: str, exit_code: int) -> float | None:
    """Number of seconds; null where the registry has none for the service, and the default of Windows holds."""
    return None if is_missing(stdout, exit_code) else parse_number(stdout, exit_code, _TIMEOUT) / 1000


_ORDER = "PreshutdownOrder"


@host_fact(
    "preshutdown-order",
    "services in the order in which they get the pre-shutdown notice",
    query_value(r"HKLM\SYSTEM\CurrentControlSet\Control", _ORDER),
    form=VALUE,
)
def preshutdown_order(stdout: str, exit_code: int) -> list[str] | None:
    """List of service names; null where the registry has none, and a kubelet's shutdown manager does not start."""
    if is_missing(stdout, exit_code):
        return None
    return [name for name in parse_value(stdout, exit_code, _ORDER).split("\\0") if name]


@host_fact(
    "failsafe-timers",
    "failsafe tasks of nodefall that the host still has",
    LIST_TASKS,
    form=lines(r'"[^\n]*"', r"(?![^\n]*nodefall-)[^\n]*"),
)
def failsafe_timers(stdout: str, exit_code: int) -> list[str]:
    """Sorted list of task names, as ``["nodefall-0a1b2c-cut"]``."""
    if exit_code:
        raise ValueError("cannot parse the output of schtasks.exe")
    # a task with several triggers has as many rows
    return sorted({name for name in parse_task_names(stdout) if name.startswith("nodefall-")})


@host_fact(
    "host-time",
    "time by the host's clock, in seconds since the epoch",
    HostCommand(powershell("read-time"), timeout=10.0),
)
def host_time(stdout: str, exit_code: int) -> float:
    """Number: seconds since the epoch, with milliseconds."""
    text = stdout.strip()
    if exit_code or not (text.isascii() and text.isdigit()):
        raise ValueError("cannot parse the time")
    return int(text) / 1000


@host_fact(
    "clock-skew",
    "seconds by which nodefall has set the clock ahead",
    HostCommand(powershell("read-clock")),
)
def clock_skew(stdout: str, exit_code: int) -> int:
    """Whole number: seconds, 0 for a clock that nodefall has not set.

    After a boot with a wrong clock it is what was set: the hardware's clock keeps it until the synchronisation is back.
    """
    numbers = [int(word) for word in stdout.split()]
    if exit_code or len(numbers) not in (2, 5):
        raise ValueError("the boot time was not printed")
    boot, now = numbers[:2]
    if len(numbers) == 2:
        return 0
    marked_boot, before, skew = numbers[2:]
    return round((now - before) / 1000) if boot == marked_boot else skew
