"""shutdown.exe: a countdown, or its abort. Silent on success; errors with their code on stderr. And NotMyFault."""

from __future__ import annotations

import re

from chaos.lab.node.logind import Kind
from chaos.lab.windows.power import LEGACY_REASON, PowerError, ShutdownRequest
from chaos.lab.winshell.process import SYSTEM32, WinProcess

_DEFAULT_SECONDS, _MAX_SECONDS = 30, 315_360_000
_MESSAGES = {
    1115: "A system shutdown is in progress.(1115)",
    1116: "Unable to abort the system shutdown because no shutdown was in progress.(1116)",
    1190: "A system shutdown has already been scheduled.(1190)",
}
_USAGE = "Usage: shutdown [/i | /l | /s | /sg | /r | /g | /a | /p | /h | /e | /o] [/hybrid] [/soft] [/fw] [/f]"
_REASONS = {"p:4:1": "No title for this reason could be found (Planned)|0x80040001"}  # others are not simulated
_VALUED = re.compile("[tcd]")


class _UsageError(ValueError):
    """A bad option."""


async def shutdown(process: WinProcess, arguments: list[str]) -> int:
    """``shutdown /s|/r [/t SECONDS] [/f] [/c TEXT] [/d REASON]``, ``shutdown /a``."""
    try:
        options = _parse(arguments)
        if options.keys() == {"a"}:
            process.machine.power.abort()
        else:
            process.machine.power.request(_request(process, options))
    except PowerError as error:
        process.err(_MESSAGES[error.code] + "\n")  # one byte of line end, as recorded: 40 and 52 bytes
        return error.code
    except _UsageError:
        process.line(_USAGE)
        return 1  # no recording: the exit code of the help
    return 0


def _parse(words: list[str]) -> dict[str, str]:
    """Options by lower-case letter, without their / or -. Raises _UsageError."""
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name = word[1:].lower()
        if word[:1] not in ("/", "-") or name not in ("s", "r", "a", "f", "t", "c", "d"):
            raise _UsageError(word)
        options[name] = next(rest, "") if _VALUED.fullmatch(name) else ""
    return options


def _request(process: WinProcess, options: dict[str, str]) -> ShutdownRequest:
    """Raises _UsageError."""
    seconds, comment = options.get("t", str(_DEFAULT_SECONDS)), options.get("c", "")
    if not seconds.isdecimal() or int(seconds) > _MAX_SECONDS or len(comment) > 512 or "a" in options:
        raise _UsageError(seconds)
    if options.keys().isdisjoint({"s", "r"}) or options.get("d", "p:4:1") not in _REASONS:
        raise _UsageError(" ".join(options))
    reason = _REASONS[options["d"]] if "d" in options else LEGACY_REASON
    kind: Kind = "reboot" if "r" in options else "poweroff"
    return ShutdownRequest(kind, float(seconds), SYSTEM32 + "shutdown.exe", process.user, reason, comment)


async def notmyfault(process: WinProcess, arguments: list[str]) -> int:
    """``notmyfault64 /accepteula /crash`` of Sysinternals: a bug check. No recording of what it answers else."""
    if "/crash" not in arguments:
        return process.fail("Usage: notmyfault64 /crash")
    process.machine.crash()
    return 0
