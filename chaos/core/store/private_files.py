"""Files that only their owner may read, whatever the umask: run directories name nodes, pods and addresses."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from chaos.core.errors import Refused

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700


def private_opener(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open`. Symbolic links are not followed. Raises OSError."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW, FILE_MODE)
    with suppress(OSError):  # not the owner of an existing file
        os.fchmod(descriptor, FILE_MODE)
    return descriptor


def write_private(path: Path, data: bytes) -> None:
    """Replace the content of a file. Raises OSError."""
    with open(path, "wb", opener=private_opener) as file:
        file.write(data)


def make_private_directory(parent: Path, name: str) -> Path:
    """A new directory ``parent/name``; ``parent`` and its parents are made if they are missing. Raises OSError.

    As root, raises Refused where ``parent`` is a symbolic link: whoever made it could choose what root writes to.
    """
    parent.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    parent.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    no_follow = os.O_NOFOLLOW if os.geteuid() == 0 else 0
    if no_follow and parent.is_symlink():
        raise Refused(
            f"cannot create the run directory in {parent}: it is a symbolic link, which root does not follow",
            hint="remove the link, or choose another directory with --reports DIRECTORY",
        )
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | no_follow)
    try:
        os.mkdir(name, DIRECTORY_MODE, dir_fd=descriptor)
        os.chmod(name, DIRECTORY_MODE, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    return parent / name
