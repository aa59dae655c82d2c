"""find(1), for the sockets and clients of container runtimes, files of systemd, and what does not exist on a worker."""

from __future__ import annotations

from fnmatch import fnmatchcase

from chaos.lab.hostshell.process import Process, Program
from chaos.lab.hostshell.programs.crictl import SOCKET

_CLIENT = "/usr/bin/crictl"


async def find(process: Process, argv: list[str]) -> int:
    """``find PATH... -maxdepth 0 [-type s]``: print those of the paths that exist; ``find DIRECTORY... -name NAME``."""
    paths = [word for word in argv[1:] if word.startswith("/")]
    if argv[1 + len(paths) : -1] == ["-name"]:
        return _find_by_name(process, paths, argv[-1])
    existing = {SOCKET} if "-type" in argv else {SOCKET, _CLIENT, *process.host.machine.files}
    if argv[1 + len(paths) :] not in (["-maxdepth", "0", "-type", "s"], ["-maxdepth", "0"]):
        return process.fail("find: the lab simulates only find PATH... -maxdepth 0 [-type s], find PATH... -name NAME")
    missing = [path for path in paths if path not in existing]
    for path in missing:
        process.err(f"find: '{path}': No such file or directory\n")
    process.out("".join(f"{path}\n" for path in paths if path in existing))
    return 1 if missing else 0


def _find_by_name(process: Process, directories: list[str], pattern: str) -> int:
    """In /run, where a directory exists if it has a file."""
    known = sorted(process.host.run_files)
    missing = [path for path in directories if not any(file.startswith(f"{path}/") for file in known)]
    for path in missing:
        process.err(f"find: '{path}': No such file or directory\n")
    inside = [file for file in known if any(file.startswith(f"{path}/") for path in directories)]
    process.out("".join(f"{file}\n" for file in inside if fnmatchcase(file.rpartition("/")[2], pattern)))
    return 1 if missing else 0


PROGRAMS: dict[str, Program] = {"find": find}
