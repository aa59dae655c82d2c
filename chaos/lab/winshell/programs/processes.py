"""taskkill.exe and tasklist.exe."""

from __future__ import annotations

import csv
import io
import itertools
import re

from chaos.lab.windows.machine import KUBELET
from chaos.lab.windows.processes import WindowsProcess, list_processes
from chaos.lab.windows.services import Service
from chaos.lab.winshell.process import WinProcess

_NOT_FOUND = 128
_FILTER = re.compile(r"(imagename|pid)\s+eq\s+(\S+)", re.IGNORECASE)
_COLUMNS = ["Image Name", "PID", "Session Name", "Session#", "Mem Usage"]


async def taskkill(process: WinProcess, arguments: list[str]) -> int:
    """``taskkill /f /im NAME`` or ``/f /pid ID`` of a service's process; its failure action may start it again."""
    words = [word.lower() for word in arguments]
    options = dict(itertools.pairwise(words))
    image, pid = options.get("/im", ""), options.get("/pid", "")
    found = [item for item in list_processes(process.machine) if image == item.image.lower() or pid == str(item.pid)]
    if not found:
        return process.fail(f'ERROR: The process "{image or pid}" not found.', _NOT_FOUND)
    for item in found:
        if "/f" not in words:
            process.err(f'ERROR: The process "{item.image}" with PID {item.pid} could not be terminated.\r\n')
            process.err("Reason: This process can only be terminated forcefully (with /F option).\r\n")
            return 1
        _kill(process, item)
        process.line(f'SUCCESS: The process "{item.image}" with PID {item.pid} has been terminated.')
    return 0


def _kill(process: WinProcess, item: WindowsProcess) -> None:
    machine = process.machine
    owner = next((service for service in machine.services.all() if service.pid == item.pid), None)
    if owner is None or owner.name == KUBELET:
        machine.kubelet.kill()  # its service follows
    else:
        _end(process, owner)


def _end(process: WinProcess, service: Service) -> None:
    service.on_stop()
    process.machine.services.kill(service)


async def tasklist(process: WinProcess, arguments: list[str]) -> int:
    """``tasklist /fo csv [/nh] [/fi "IMAGENAME eq NAME"]``: processes of services."""
    words = [word.lower() for word in arguments]
    options = dict(itertools.pairwise(words))
    wanted = _FILTER.fullmatch(options.get("/fi", "").strip()) if "/fi" in options else None
    if options.get("/fo") != "csv" or ("/fi" in options and wanted is None):
        return process.fail("ERROR: The lab simulates only tasklist /fo csv, with a filter on IMAGENAME or PID.")
    rows = [
        [item.image, str(item.pid), "Services", "0", "20,000 K"]  # invented: the memory
        for item in list_processes(process.machine)
        if wanted is None or wanted[2] == (item.image.lower() if wanted[1] == "imagename" else str(item.pid))
    ]
    if not rows:
        process.line("INFO: No tasks are running which match the specified criteria.")
        return 0
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerows(rows if "/nh" in words else [_COLUMNS, *rows])
    process.out(text.getvalue())
    return 0
