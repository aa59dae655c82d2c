"""w32tm.exe: /resync. No recording: texts and exit codes."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess

_NOT_STARTED = 0x80070426 - (1 << 32)
_INVALID = 0x80070057 - (1 << 32)


async def w32tm(process: WinProcess, arguments: list[str]) -> int:
    """``w32tm /resync [/force] [/rediscover] [/nowait]``: the service must run."""
    words = [word.lower() for word in arguments]
    if not words or words[0] != "/resync" or set(words[1:]) - {"/force", "/rediscover", "/nowait"}:
        process.line("The parameter is incorrect. (0x80070057)")
        return _INVALID
    process.line("Sending resync command to local computer")
    if not process.machine.services.get("w32time").is_running:
        process.line("The following error occurred: The service has not been started. (0x80070426)")
        return _NOT_STARTED
    process.machine.clock.correct()
    process.line("The command completed successfully.")
    return 0
