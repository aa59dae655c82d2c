"""One run at a time per cluster and machine: two would mistake each other's effects for the cluster's."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.model.errors import Refused


@contextmanager
def exclusive_lock(cluster: str, directory: Path | None = None) -> Iterator[None]:
    """Hold the cluster's lock on this machine; it ends with the process. Raises Refused if another process has it.

    ``cluster``: its uid and address; labs of one seed share a uid.
    ``directory``: default is that of temporary files.
    """
    with _lock_file(cluster, directory) as descriptor:
        _acquire(descriptor)
        yield


@contextmanager
def blocking_lock(queue: str, directory: Path | None = None) -> Iterator[None]:
    """Hold the lock ``queue``, waiting for other processes of this user; it ends with the process. Raises Refused."""
    digest = hashlib.sha256(queue.encode()).hexdigest()[:16]
    with _lock_file(f"turn-{digest}", directory) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def _lock_file(name: str, directory: Path | None) -> Iterator[int]:
    file = f"nodefall-{os.getuid()}-{re.sub(r'[^0-9A-Za-z-]', '_', name)}.lock"
    path = (directory or Path(tempfile.gettempdir())) / file
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Refused(f"cannot open the lock {path}: {error.strerror}", hint="check TMPDIR") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # the file stays: removing it could take the lock from a holder


def _acquire(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        raise Refused(
            f"cluster in use by another nodefall (process {holder or 'unknown'})",
            hint="wait for its end, or stop it with Ctrl-C or SIGTERM: it undoes its effects",
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
