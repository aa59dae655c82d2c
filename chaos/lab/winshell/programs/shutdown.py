"""shutdown.exe: a countdown, or its abort. Silent on success; errors with their code on stderr."""

from __future__ import annotations

import re

from chaos.lab.windows.power import LEGACY_REASON, PowerError, ShutdownRequest
from chaos.lab.winshell.process import SYSTEM32, WinProcess

_DEFAULT_SECONDS, _MAX_SECONDS = 30, 315_360_000
_MESSAGES = {
    1115: "A system shutdown is in progress.(1115)",
    1116: "Unable to abort the system shutdown because no shutdown was in progress.(1116)",
    1190: "A system shutdown has already been scheduled.(1190)",
}
_USAGE = "Usage: shutdown [/i | /l | /s | /sg | /r | /g | /a | /p | /h | /e | /o] [/hybrid] [/soft] [/fw] [/f]"
# Codes that exist as planned; other planned codes are refused. Documented examples, the whole list is longer.
_PLANNED = {(0, 0), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (2, 4), (2, 16), (2, 17), (4, 1), (4, 2), (5, 19)}
_REASON_TITLES = {(0, 0): "Other", (1, 1): "Hardware: Maintenance", (2, 3): "Operating System: Upgrade"}
_REASON = re.compile(r"(?:([pu]):)?(\d{1,3}):(\d{1,5})", re.IGNORECASE)


class _UsageError(ValueError):
    """A bad option."""


async def shutdown(process: WinProcess, arguments: list[str]) -> int:
    """``shutdown /s|/r|/p [/t SECONDS] [/f] [/c TEXT] [/d REASON]``, ``shutdown /a``."""
    try:
        options = _parse(arguments)
    except _UsageError:
        process.line(_USAGE)
        return 1  # no recording: the exit code of the help
    try:
        if "a" in options:
            process.machine.power.abort()
        elif not options.keys() & {"s", "r", "p", "sg", "g"}:
            process.line(_USAGE)
            return 1
        else:
            process.machine.power.request(_request(process, options))
    except PowerError as error:
        process.err(_MESSAGES[error.code] + "\n")  # one byte of line end, as recorded: 40 and 52 bytes
        return error.code
    except _UsageError:
        process.line(_USAGE)
        return 1
    return 0


def _parse(words: list[str]) -> dict[str, str]:
    """Options by lower-case letter, without their / or -. Raises _UsageError."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = word[1:].lower()
        if word[:1] not in ("/", "-"):
            raise _UsageError(word)
        if name in ("t", "c", "d", "m"):
            if not rest:
                raise _UsageError(word)
            options[name] = rest.pop(0)
        elif name in ("s", "r", "a", "p", "f", "sg", "g", "soft", "hybrid"):
            options[name] = ""
        else:
            raise _UsageError(word)
    return options


def _request(process: WinProcess, options: dict[str, str]) -> ShutdownRequest:
    """Raises _UsageError."""
    seconds = options.get("t", str(_DEFAULT_SECONDS))
    if not seconds.isdecimal() or int(seconds) > _MAX_SECONDS or len(options.get("c", "")) > 512:
        raise _UsageError(seconds)
    if "p" in options:
        if options.keys() - {"p", "d", "f"}:
            raise _UsageError("p")
        seconds = "0"
    is_restart = bool(options.keys() & {"r", "g"})
    return ShutdownRequest(
        "reboot" if is_restart else "poweroff",
        float(seconds),
        SYSTEM32 + "shutdown.exe",
        process.user,
        _reason(options["d"]) if "d" in options else LEGACY_REASON,
        options.get("c", ""),
    )


def _reason(text: str) -> str:
    """Title and code of ``/d [p|u:]MAJOR:MINOR``. Raises _UsageError for a planned code that does not exist."""
    match = _REASON.fullmatch(text)
    if not match or int(match[2]) > 255 or int(match[3]) > 65535:
        raise _UsageError(text)
    major, minor = int(match[2]), int(match[3])
    planned = (match[1] or "").lower() == "p"
    if planned and (major, minor) not in _PLANNED:
        raise _UsageError(text)
    code = (0x80000000 if planned else 0) | major << 16 | minor
    title = _REASON_TITLES.get((major, minor), "No title for this reason could be found")
    return f"{title} ({'Planned' if planned else 'Unplanned'})|0x{code:x}"
