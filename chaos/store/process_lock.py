"""One run at a time on a cluster: two would take each other's effects for the cluster's."""

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
    """Hold the cluster's lock on this machine; it ends with the process. Raises Refused if somebody has it.

    ``cluster``: its uid and address; labs of one seed share a uid.
    Enough while runs are refused on clusters of other machines. ``directory``: default is that of temporary files.
    """
    with _lock_file(cluster, directory) as descriptor:
        _acquire(descriptor)
        yield


@contextmanager
def blocking_lock(queue: str, directory: Path | None = None) -> Iterator[None]:
    """Wait until no other process of this user has the turn in ``queue``; it ends with the process. Raises Refused."""
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
        raise Refused(f"the lock {path} cannot be opened: {error.strerror}", hint="see TMPDIR") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # the file stays: whoever removes it could take a lock from its holder


def _acquire(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        raise Refused(
            f"another nodefall (process {holder or 'unknown'}) is at work on this cluster",
            hint="let it end, or stop it with Ctrl-C or SIGTERM: it undoes what it did",
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
