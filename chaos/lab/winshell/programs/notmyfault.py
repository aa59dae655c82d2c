"""notmyfault64.exe of Sysinternals, which is not part of Windows."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess


async def notmyfault(process: WinProcess, arguments: list[str]) -> int:
    """``notmyfault64 /accepteula /crash``: a bug check. No recording: what it answers without /crash."""
    if "/crash" not in [word.lower() for word in arguments]:
        return process.fail("Usage: notmyfault64 /crash")
    process.machine.crash()
    return 0
