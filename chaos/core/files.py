"""Files: whether their content may be trusted, private ones, those of snapshots, and hints for missing ones.

A file is trusted if no one else may write it, or choose which file it is. Private files only their owner may read,
whatever the umask: run directories name nodes, pods and addresses. Snapshots are JSON lines, compressed with gzip.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from chaos.core.errors import Refused, UsageError, bad_input

_MAX_NAMES = 1000  # of a directory that are compared
FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
_LEVEL = 6


def refuse_writable_by_others(name: str, status: os.stat_result) -> None:
    """Raises BadInput if another user may write the file."""
    mode = status.st_mode
    if mode & stat.S_IWOTH:
        raise bad_input(name, "not trusted: any user may write this file", f"chmod go-w {name}")
    if mode & stat.S_IWGRP and not _is_private_group(status):
        raise bad_input(name, "not trusted: the group may write this file", f"chmod go-w {name}")


def refuse_path_of_others(path: Path) -> None:
    """Raises BadInput if another user owns the file or directory, or a link that ``path`` is, or may write it.

    Files of root are trusted, and root trusts the user who ran sudo. In a sticky directory others cannot replace files.
    Raises OSError if it does not exist.
    """
    refuse_link_of_others(path)
    status = path.stat()
    if not _is_trusted_owner(status):
        hint = f"if you trust its content, make it yours: chown -R {os.geteuid()} {path}"
        raise bad_input(str(path), f"not trusted: it belongs to user {status.st_uid}", hint)
    if not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        refuse_writable_by_others(str(path), status)


def refuse_link_of_others(path: Path) -> None:
    """Raises BadInput for a symbolic link of another user, who chooses where it leads. Raises OSError."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode) and not _is_trusted_owner(status):
        message = f"not trusted: it is a symbolic link of user {status.st_uid}"
        raise bad_input(str(path), message, "remove the link, or give the path that it leads to")


def _is_trusted_owner(status: os.stat_result) -> bool:
    trusted = {0, os.geteuid()}
    if os.geteuid() == 0:
        trusted |= {int(text) for text in (os.environ.get("SUDO_UID", ""),) if text.isdecimal()}
    return status.st_uid in trusted


def _is_private_group(status: os.stat_result) -> bool:
    """Whether the group is the owner's and has no other members, as on Debian, where files have mode 664."""
    try:
        import grp  # noqa: PLC0415 - absent on Windows
        import pwd  # noqa: PLC0415

        owner = pwd.getpwuid(status.st_uid)
        group = grp.getgrgid(status.st_gid)
    except (ImportError, KeyError):
        return False
    return owner.pw_gid == group.gr_gid and set(group.gr_mem) <= {owner.pw_name}


def missing_file_hint(path: Path, remedy: str = "") -> str:
    """What the user may have meant: a file with a similar name, or the same one in a directory beside; else ``remedy``.

    "" without an idea.
    """
    folder = path.parent
    try:
        if not folder.is_dir():
            return f"there is no directory {str(folder)!r}"
        entries = [entry for _, entry in zip(range(_MAX_NAMES), folder.iterdir(), strict=False)]
        names = [entry.name for entry in entries if entry.is_file()]
        below = [entry.name for entry in sorted(entries) if entry.is_dir() and (entry / path.name).is_file()]
    except (OSError, ValueError):
        return ""
    same_stem = [name for name in names if Path(name).stem == path.name or Path(name).stem == path.stem]
    similar = same_stem or [f"{name}/{path.name}" for name in below] or get_close_matches(path.name, names, 1, 0.75)
    if similar:
        return f"did you mean {str(folder / similar[0])!r}?"
    where = "" if path.is_absolute() else f"check the path, which is relative to {Path.cwd()}"
    return ", or ".join(filter(None, [where, remedy]))


def absolute_paths(text: str, folder: Path) -> str:
    """One path, or several as in KUBECONFIG, each relative to ``folder``. Raises RuntimeError without ``~``."""
    whole = folder / Path(text).expanduser()
    names = [text] if os.pathsep not in text or whole.exists() else text.split(os.pathsep)
    return os.pathsep.join(str(folder / Path(name).expanduser()) for name in names if name)


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


class SnapshotFile:
    """Collects lines by kind, compressed in memory; the header, which is known last, becomes the first line.

    Each kind is a separate gzip member, and can be begun again.
    """

    def __init__(self) -> None:
        self._members: dict[str, tuple[io.BytesIO, gzip.GzipFile]] = {}
        self.counts: dict[str, int] = {}

    def begin(self, kind: str) -> None:
        """Discard the lines of this kind."""
        buffer = io.BytesIO()
        self._members[kind] = buffer, gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=_LEVEL, mtime=0)
        self.counts[kind] = 0

    def add(self, kind: str, line: bytes) -> None:
        """Add a line, without its newline."""
        if kind not in self._members:
            self.begin(kind)
        file = self._members[kind][1]
        file.write(line)
        file.write(b"\n")
        self.counts[kind] += 1

    def write(self, path: Path, header: bytes) -> None:
        """Replace the file ``path`` at once. Raises UsageError if it cannot be written."""
        parts = [gzip.compress(header + b"\n", mtime=0)]
        for buffer, file in self._members.values():
            file.close()
            parts.append(buffer.getvalue())
        partial = path.with_name(f".{path.name}.partial")
        try:
            write_private(partial, b"".join(parts))
            os.replace(partial, path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise UsageError(f"cannot write {path}: {error.strerror}", hint="give another file with --out") from error
