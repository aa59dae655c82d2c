"""One run at a time per cluster and machine: two would mistake each other's effects for the cluster's.

The lock files of a user are in one directory, whatever TMPDIR says. A file is removed by the process that holds its
lock, so a process that has waited for it may have locked a removed file: then it opens the new one. A process that is
killed leaves the file, with the name under which it holds the cluster's Lease.

By the identity of a process another process on the same machine can prove that it is gone. A process ID alone proves
nothing: it is used again, and it means another process in another container. Within one boot and one PID namespace, a
process ID and its start time name exactly one process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from chaos.core.errors import Refused

PROC = Path("/proc")
_ENDED = "ZXx"  # states of a process that has ended: zombie, dead
_RUNTIME = (Path("/run/nodefall"), Path("/run/lock/nodefall"))  # of root; the second where /run is read-only
_HINT = "make it a directory of this user that others cannot write to"
_MAX_BYTES = 4096  # of a lock file


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
    """The identity in an annotation, or None, as in annotations of earlier versions."""
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


class MachineLock:
    """This machine's lock on a cluster, while this process holds it. The file has its ID and holders of the Lease.

    A holder that is named in the file although its lock was free has ended: the lock lasts as long as the process.
    Clones of a machine have the same boot ID, but not the same file. The first line is the process ID.
    """

    def __init__(self, file: _LockFile) -> None:
        self._file = file
        self.ended = frozenset(_read_lines(file.descriptor)[1:]) - {""}
        self._write(self.ended)

    def enter(self, holder: str) -> None:
        """Name the holder of the Lease that this process is about to be."""
        self._write({*self.ended, holder})

    def leave(self, *, acquired: bool) -> None:
        """Name this process no longer; nor those that have ended, once it has ``acquired`` the Lease."""
        self._write(frozenset() if acquired else self.ended)

    def _write(self, holders: Iterable[str]) -> None:
        names = sorted(holders)
        self._file.stays = bool(names)
        content = "\n".join([str(os.getpid()), *names]).encode()[:_MAX_BYTES]
        with suppress(OSError):  # without the names, others wait until the Lease has expired
            os.pwrite(self._file.descriptor, content, 0)
            os.ftruncate(self._file.descriptor, len(content))


@contextmanager
def exclusive_lock(cluster: str, directory: Path | None = None) -> Iterator[MachineLock]:
    """Hold the cluster's lock on this machine; it ends with the process. Raises Refused if another process has it.

    ``cluster``: its identity, which does not depend on how its address is written.
    ``directory``: default is the fixed one of this user.
    """
    with _lock_file(cluster, directory, fcntl.LOCK_EX | fcntl.LOCK_NB) as file:
        yield MachineLock(file)


@contextmanager
def blocking_lock(queue: str, directory: Path | None = None) -> Iterator[None]:
    """Hold the lock ``queue``, waiting for other processes of this user; it ends with the process. Raises Refused."""
    digest = hashlib.sha256(queue.encode()).hexdigest()[:16]
    with _lock_file(f"turn-{digest}", directory, fcntl.LOCK_EX):
        yield


def lock_directory() -> Path:
    """The directory of this user's lock files, created if it is missing. Raises Refused."""
    uid = os.getuid()
    if uid == 0:
        for directory in _RUNTIME:
            with suppress(OSError):
                return _private(directory)
        return _usable(Path("/tmp/nodefall-0"))  # noqa: S108 - its owner and mode are checked
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}")
    if runtime.is_absolute() and _is_private(runtime, uid):
        return _usable(runtime / "nodefall")
    return _usable(Path(f"/tmp/nodefall-{uid}"))  # noqa: S108 - its owner and mode are checked


@dataclass(slots=True)
class _LockFile:
    """An open lock file. ``stays``: it is not removed with the lock."""

    descriptor: int
    stays: bool = False


@contextmanager
def _lock_file(name: str, directory: Path | None, operation: int) -> Iterator[_LockFile]:
    base = f"nodefall-{os.getuid()}-{re.sub(r'[^0-9A-Za-z-]', '_', name)}.lock"
    path = (directory or lock_directory()) / base
    try:
        descriptor = _acquire(path, operation)
    except OSError as error:
        raise Refused(f"cannot open the lock {path}: {error.strerror}", hint="remove it if it is not a file") from error
    file = _LockFile(descriptor)
    try:
        yield file
    finally:
        with suppress(OSError):
            if not file.stays and _is_at(path, descriptor):
                path.unlink()  # while it is locked: whoever waits for this file opens a new one
        os.close(descriptor)


def _acquire(path: Path, operation: int) -> int:
    """A descriptor of the locked file that is at ``path``. Raises OSError, and Refused if another process has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, operation)
            locked = True
        except BlockingIOError:
            locked = False
        except BaseException:
            os.close(descriptor)
            raise
        current = _is_at(path, descriptor)
        if locked and current:
            return descriptor
        holder = _read_lines(descriptor)[0]
        os.close(descriptor)
        if current:
            raise Refused(
                f"cluster in use by another nodefall (process {holder or 'unknown'})",
                hint="wait for its end, or stop it with Ctrl-C or SIGTERM: it undoes its effects",
            )


def _read_lines(descriptor: int) -> list[str]:
    """The lines of a lock file; a single empty line if the file does not exist."""
    return os.pread(descriptor, _MAX_BYTES, 0).decode(errors="replace").split("\n")


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether ``path`` still is the file that was opened."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _usable(directory: Path) -> Path:
    try:
        return _private(directory)
    except OSError as error:
        raise Refused(f"cannot use the lock directory {directory}: {error.strerror}", hint=_HINT) from error


def _private(directory: Path) -> Path:
    """The directory, created if it is missing. Raises OSError if others may write to it."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    if not _is_private(directory, os.getuid()):
        raise PermissionError(1, "it belongs to another user, or others may write to it")
    return directory


def _is_private(directory: Path, uid: int) -> bool:
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
