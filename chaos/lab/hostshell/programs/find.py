"""find(1), for the sockets and clients of container runtimes, and paths that do not exist on a worker."""

from __future__ import annotations

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.crictl import SOCKET

_CLIENT = "/usr/bin/crictl"


async def find(process: Process, argv: list[str]) -> int:
    """``find PATH... -maxdepth 0 [-type s]``: print those of the paths that exist."""
    paths = [word for word in argv[1:] if word.startswith("/")]
    existing = (SOCKET,) if "-type" in argv else (SOCKET, _CLIENT)
    if argv[1 + len(paths) :] not in (["-maxdepth", "0", "-type", "s"], ["-maxdepth", "0"]):
        return process.fail("find: the lab simulates only find PATH... -maxdepth 0 [-type s]")
    missing = [path for path in paths if path not in existing]
    for path in missing:
        process.err(f"find: '{path}': No such file or directory\n")
    process.out("".join(f"{path}\n" for path in paths if path in existing))
    return 1 if missing else 0


PROGRAMS: dict[str, Program] = {"find": find}
