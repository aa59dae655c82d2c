"""Identity of a process, by which another process on the same machine can prove that it is gone.

A process ID alone proves nothing: it is used again, and it means another process in another container. Within one boot
and one PID namespace, a process ID and its start time name exactly one process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

PROC = Path("/proc")
_ENDED = "ZXx"  # states of a process that has ended: zombie, dead


class ProcessIdentity(Struct, frozen=True, rename="camel"):
    """One process, ever. ``time_namespace``: start times are relative to it; 0 if the kernel has none."""

    boot_id: str
    pid_namespace: int
    time_namespace: int
    pid: int
    start_ticks: int  # clock ticks from the boot of the machine to the start of the process

    def encode(self) -> str:
        """The identity as text, for an annotation."""
        return msgspec.json.encode(self).decode()

    def shares_scope(self, other: ProcessIdentity) -> bool:
        """Whether the process IDs and start times of both are comparable."""
        return (self.boot_id, self.pid_namespace, self.time_namespace) == (
            other.boot_id,
            other.pid_namespace,
            other.time_namespace,
        )


def decode_identity(text: str) -> ProcessIdentity | None:
    """The identity in an annotation; None if there is none, as in those of former versions."""
    try:
        identity = msgspec.json.decode(text, type=ProcessIdentity)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return identity if identity.boot_id and identity.pid_namespace > 0 and identity.pid > 0 else None


def current_identity(proc: Path = PROC) -> ProcessIdentity | None:
    """The identity of this process; None where ``proc`` is missing or belongs to another PID namespace."""
    pid = os.getpid()
    try:
        if _pids(proc) != [pid]:
            return None
        return ProcessIdentity(
            boot_id=(proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
            pid_namespace=(proc / "self/ns/pid").stat().st_ino,
            time_namespace=_inode(proc / "self/ns/time"),
            pid=pid,
            start_ticks=_read_stat(proc, pid).start_ticks,
        )
    except (OSError, ValueError, IndexError):
        return None


def is_gone(process: ProcessIdentity, proc: Path = PROC) -> bool:
    """Whether exactly this process has provably ended; False for whatever cannot be proven."""
    here = current_identity(proc)
    if here is None or not here.shares_scope(process):
        return False
    try:
        stat = _read_stat(proc, process.pid)
    except (FileNotFoundError, ProcessLookupError):
        return not _exists(process.pid)  # /proc may hide the processes of other users
    except (OSError, ValueError, IndexError):
        return False
    return stat.start_ticks != process.start_ticks or stat.has_ended


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    threads: int
    start_ticks: int

    @property
    def has_ended(self) -> bool:
        """A zombie with further threads is a process whose main thread alone has ended."""
        return self.state in _ENDED and self.threads <= 1


def _read_stat(proc: Path, pid: int) -> _Stat:
    """Fields of proc_pid_stat(5). The name of the program, the second one, may contain anything."""
    fields = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return _Stat(fields[0], int(fields[17]), int(fields[19]))


def _pids(proc: Path) -> list[int]:
    """The process IDs of this process, from the PID namespace of ``proc`` down to its own."""
    for line in (proc / "self/status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("NSpid:"):
            return [int(pid) for pid in line.split()[1:]]
    return []


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
