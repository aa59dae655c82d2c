"""Scripts that read, set and restore the clock."""

from __future__ import annotations

from chaos.lab.windows.files import read_file, write_file
from chaos.lab.windows.machine import WindowsMachine
from chaos.lab.windows.registry import PREFETCH
from chaos.lab.winshell.process import WinProcess
from chaos.lab.winshell.scripts.readings import TICKS, milliseconds, stopwatch
from chaos.lab.winshell.scripts.script import Parameters
from chaos.lab.winshell.scripts.services import TIME_SERVICE, resync, start

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
