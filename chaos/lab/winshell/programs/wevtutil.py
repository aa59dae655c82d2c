"""wevtutil.exe."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess


async def wevtutil(process: WinProcess, argv: list[str]) -> int:
    """wevtutil."""
    return process.fail(argv[0])
