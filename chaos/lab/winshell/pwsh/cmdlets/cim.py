"""Get-CimInstance of a few classes of WMI, and Get-Process."""

from __future__ import annotations

import re
from collections.abc import Callable

from chaos.lab.node.kubelet.node_status import WINDOWS_BUILD
from chaos.lab.windows.disk import disk_of, memory_of
from chaos.lab.windows.processes import list_processes
from chaos.lab.windows.services import Service
from chaos.lab.winshell.pwsh.dotnet.times import now
from chaos.lab.winshell.pwsh.invocation import Cmdlet, Invocation
from chaos.lab.winshell.pwsh.operators import apply
from chaos.lab.winshell.pwsh.values import TICKS, DateTime, NetObject, ScriptError, Value, to_text

Row = dict[str, Value]
_CONDITION = re.compile(r"\s*(\w+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|(\d+))\s*", re.IGNORECASE)
_MODES = {"auto": "Auto", "delayed-auto": "Auto", "demand": "Manual", "disabled": "Disabled"}
_STATES = {1: "Stopped", 2: "Start Pending", 3: "Stop Pending", 4: "Running"}


def _product(call: Invocation) -> list[Row]:
    """The UUID of the firmware, in capitals."""
    return [{"UUID": call.process.machine.system_uuid, "Name": "Virtual Machine", "Vendor": "nodefall lab"}]


def _system(call: Invocation) -> list[Row]:
    machine = call.process.machine
    return [
        {
            "LastBootUpTime": DateTime(now(call.process).ticks - int(machine.uptime * TICKS)),
            "LocalDateTime": now(call.process),
            "CSName": machine.computer,
            "Caption": "Microsoft Windows Server 2022 Datacenter",
            "Version": WINDOWS_BUILD,
            "BuildNumber": WINDOWS_BUILD.rpartition(".")[2],
            "TotalVisibleMemorySize": memory_of(machine) >> 10,
        }
    ]


def _computer(call: Invocation) -> list[Row]:
    machine = call.process.machine
    return [
        {
            "Name": machine.computer,
            "DNSHostName": machine.name,
            "Domain": "WORKGROUP",
            "PartOfDomain": False,
            "TotalPhysicalMemory": memory_of(machine),
        }
    ]


def _disk(call: Invocation) -> list[Row]:
    disk = disk_of(call.process.machine)
    return [{"DeviceID": "C:", "DriveType": 3, "FileSystem": "NTFS", "Size": disk.size, "FreeSpace": disk.free}]


def _processes(call: Invocation) -> list[Row]:
    return [
        {
            "Name": item.image,
            "ProcessId": item.pid,
            "CommandLine": item.command_line,
            "CreationDate": DateTime(round(item.started_at * TICKS)),
        }
        for item in list_processes(call.process.machine)
    ]


def _services(call: Invocation) -> list[Row]:
    def row(service: Service) -> Row:
        return {
            "Name": service.name,
            "DisplayName": service.display_name,
            "State": _STATES[service.state],
            "StartMode": _MODES[service.start_type],
            "PathName": service.binary,
            "ProcessId": service.pid,
            "ExitCode": service.exit_code,
        }

    return [row(service) for service in call.process.machine.services.all()]


_CLASSES: dict[str, Callable[[Invocation], list[Row]]] = {
    "Win32_ComputerSystem": _computer,
    "Win32_ComputerSystemProduct": _product,
    "Win32_LogicalDisk": _disk,
    "Win32_OperatingSystem": _system,
    "Win32_Process": _processes,
    "Win32_Service": _services,
}


async def _get_cim_instance(call: Invocation) -> list[Value]:
    """Raises ScriptError."""
    wanted = call.text("ClassName")
    name = next((item for item in _CLASSES if item.lower() == wanted.lower()), None)
    if name is None:
        text = "Invalid class "
        raise ScriptError(text, "HRESULT 0x80041010", f"MetadataError: (root\\cimv2:{wanted}:String) [], CimException")
    conditions = _conditions(call.text("Filter"))
    rows = [row for row in _CLASSES[name](call) if _matches(row, conditions)]
    return [NetObject(f"Microsoft.Management.Infrastructure.CimInstance#root/cimv2/{name}", row) for row in rows]


def _conditions(text: str) -> list[tuple[str, str]]:
    """``Name='x' AND Id=3``. Raises ScriptError."""
    conditions = []
    for part in re.split(r"\s+and\s+", text, flags=re.IGNORECASE) if text.strip() else ():
        match = _CONDITION.fullmatch(part)
        if not match:
            raise ScriptError("Invalid query ", "HRESULT 0x80041017", "InvalidArgument: (:) [], CimException")
        conditions.append((match[1].lower(), match[2] or match[3] or match[4] or ""))
    return conditions


def _matches(row: Row, conditions: list[tuple[str, str]]) -> bool:
    values = {name.lower(): to_text(value).lower() for name, value in row.items()}
    return all(values.get(name) == value.lower() for name, value in conditions)


async def _get_process(call: Invocation) -> list[Value]:
    """By name without .exe, or by -Id. Raises ScriptError."""
    names, ids = [to_text(name) for name in call.items("Name")], call.items("Id")
    running = list_processes(call.process.machine)
    found = [
        item
        for item in running
        if (not names and not ids) or item.pid in ids or any(apply("like", item.name, name) for name in names)
    ]
    if not found:
        missing = ", ".join(names or [to_text(item) for item in ids])
        text = f'Cannot find a process with the name "{missing}". Verify the process name and call the cmdlet again.'
        raise ScriptError(
            text, "NoProcessFoundForGivenName", f"ObjectNotFound: ({missing}:String) [], ProcessCommandException"
        )
    return [
        NetObject(
            "System.Diagnostics.Process",
            {"Id": item.pid, "ProcessName": item.name, "StartTime": DateTime(round(item.started_at * TICKS))},
        )
        for item in found
    ]


CMDLETS: dict[str, Cmdlet] = {
    "Get-CimInstance": Cmdlet(
        _get_cim_instance,
        ("ClassName", "Filter", "Property", "Namespace"),
        (),
        ("ClassName",),
        ("ClassName",),
        "CimCmdlets",
    ),
    "Get-Process": Cmdlet(_get_process, ("Name", "Id"), (), ("Name",)),
}
