"""hostname.exe and whoami.exe."""

from __future__ import annotations

from chaos.lab.winshell.process import WinProcess

# Invented: the groups of an administrator who logged in over the network, elevated; only their SIDs are as on Windows.
_GROUPS = (
    ("Everyone", "Well-known group", "S-1-1-0"),
    ("BUILTIN\\Administrators", "Alias", "S-1-5-32-544"),
    ("Mandatory Label\\High Mandatory Level", "Label", "S-1-16-12288"),
)


async def hostname(process: WinProcess, _: list[str]) -> int:
    """``hostname``."""
    process.line(process.machine.name)
    return 0


async def whoami(process: WinProcess, arguments: list[str]) -> int:
    """``whoami``: domain and user in lower case; ``whoami /groups /fo csv /nh``: the groups."""
    if not arguments:
        process.line(process.user.lower())
    elif arguments == ["/groups", "/fo", "csv", "/nh"]:
        for name, kind, sid in _GROUPS:
            process.line(f'"{name}","{kind}","{sid}","Mandatory group, Enabled by default, Enabled group"')
    else:
        return process.fail("ERROR: Invalid argument/option.")
    return 0
