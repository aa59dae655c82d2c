"""schtasks.exe."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess


async def schtasks(process: WinProcess, argv: list[str]) -> int:
    """schtasks."""
    return process.fail(argv[0])
