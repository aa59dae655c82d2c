"""hostname, whoami, timeout and ping."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess


async def hostname(process: WinProcess, _: list[str]) -> int:
    """``hostname``."""
    process.line(process.machine.name)
    return 0


# Invented: the groups of an administrator who logged in over the network, elevated; only their SIDs are as on Windows.
_GROUPS = (
    ("Everyone", "Well-known group", "S-1-1-0"),
    ("BUILTIN\\Administrators", "Alias", "S-1-5-32-544"),
    ("Mandatory Label\\High Mandatory Level", "Label", "S-1-16-12288"),
)


async def whoami(process: WinProcess, arguments: list[str]) -> int:
    """``whoami``: domain and user in lower case; ``whoami /groups /fo csv /nh``: the groups."""
    words = [word.lower() for word in arguments]
    if not words:
        process.line(process.user.lower())
    elif words == ["/groups", "/fo", "csv", "/nh"]:
        for name, kind, sid in _GROUPS:
            process.line(f'"{name}","{kind}","{sid}","Mandatory group, Enabled by default, Enabled group"')
    else:
        return process.fail("ERROR: Invalid argument/option.")
    return 0


async def timeout(process: WinProcess, arguments: list[str]) -> int:
    """``timeout /t SECONDS /nobreak``. It refuses a stdin that is not a console."""
    words = [word.lower() for word in arguments]
    seconds = next((word for word in words if word.lstrip("-").isdecimal()), "")
    if not seconds:
        return process.fail('ERROR: Invalid syntax. Type "TIMEOUT /?" for usage.')
    return process.fail("ERROR: Input redirection is not supported, exiting the process immediately.")


async def ping(process: WinProcess, arguments: list[str]) -> int:
    """``ping -n COUNT HOST``: one echo a second, in simulated time; the usual way to wait without a console."""
    words = [word.lower() for word in arguments]
    count = int(words[words.index("-n") + 1]) if "-n" in words[:-1] else 4
    target = next((word for word in reversed(arguments) if not word.startswith("-") and not word.isdecimal()), "")
    if not target:
        return process.fail("IP address must be specified.")
    process.line()
    process.line(f"Pinging {target} with 32 bytes of data:")
    for number in range(count):
        process.line(f"Reply from {target}: bytes=32 time<1ms TTL=128")
        if number + 1 < count:
            await process.sleep(1.0)
    return 0
