"""netsh.exe."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess


async def netsh(process: WinProcess, argv: list[str]) -> int:
    """netsh."""
    return process.fail(argv[0])
