"""One run at a time per cluster and machine: two would mistake each other's effects for the cluster's.

The lock files of a user are in one directory, whatever TMPDIR says. A file is removed by the process that holds its
lock, so a process that has waited for it may have locked a removed file: then it opens the new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chaos.model.errors import Refused

_RUNTIME = (Path("/run/nodefall"), Path("/run/lock/nodefall"))  # of root; the second where /run is read-only
_HINT = "make it a directory of this user that others cannot write to"


@contextmanager
def exclusive_lock(cluster: str, directory: Path | None = None) -> Iterator[None]:
    """Hold the cluster's lock on this machine; it ends with the process. Raises Refused if another process has it.

    ``cluster``: its identity, which does not depend on how its address is written.
    ``directory``: default is the fixed one of this user.
    """
    with _lock_file(cluster, directory, fcntl.LOCK_EX | fcntl.LOCK_NB) as descriptor:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield


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


@contextmanager
def _lock_file(name: str, directory: Path | None, operation: int) -> Iterator[int]:
    file = f"nodefall-{os.getuid()}-{re.sub(r'[^0-9A-Za-z-]', '_', name)}.lock"
    path = (directory or lock_directory()) / file
    try:
        descriptor = _acquire(path, operation)
    except OSError as error:
        raise Refused(f"cannot open the lock {path}: {error.strerror}", hint="remove it if it is no file") from error
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            if _is_at(path, descriptor):
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
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        if current:
            raise Refused(
                f"cluster in use by another nodefall (process {holder or 'unknown'})",
                hint="wait for its end, or stop it with Ctrl-C or SIGTERM: it undoes its effects",
            )


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
