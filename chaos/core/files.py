"""Helpers for files: reading without hanging, private files, snapshots, and hints for missing files.

Private files only their owner may read, whatever the umask: run directories name nodes, pods and addresses. Snapshots
are JSON lines, compressed with gzip. chaos.core.trusted_files reads what can cause a command.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from chaos.core.errors import Refused, UsageError

_PACKAGE = Path(__file__).parents[1]
_MAX_NAMES = 1000  # of a directory that are compared
FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
_LEVEL = 6
MAX_BYTES = 256 << 20  # of a file that is read as a whole


def bundled_path(name: str) -> Path:
    """The path of a bundled file, as ``experiments/graceful-poweroff.yaml``."""
    packaged = _PACKAGE / "shipped" / name
    return packaged if packaged.exists() else _PACKAGE.parent / name


def path_or_bundled(name: str | os.PathLike[str]) -> Path:
    """The path, or the bundled file that it names in a directory without the folders ``experiments`` and ``hosts``."""
    path = Path(name)
    if path.parts[:1] not in (("experiments",), ("hosts",)) or ".." in path.parts or os.path.lexists(path.parts[0]):
        return path
    bundled = bundled_path(path.as_posix())
    return bundled if bundled.exists() else path


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; neither a pipe, which may never have data, nor a device, which may act on that.

    Raises OSError.
    """
    _refuse_irregular(os.stat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")  # raises for a directory
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode)  # it may have been replaced
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a file of at most ``limit`` bytes, as for :func:`open_regular`. Raises OSError."""
    with open_regular(path) as file:
        return read_descriptor(file.fileno(), limit)


def read_descriptor(descriptor: int, limit: int) -> bytes:
    """Read a regular file of at most ``limit`` bytes. Raises OSError."""
    _refuse_irregular(os.fstat(descriptor).st_mode)
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit} bytes")
    return data


def _refuse_irregular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def missing_file_hint(path: Path, remedy: str = "") -> str:
    """A hint for a missing file: a file with a similar name, or the same name in a sibling directory; otherwise
    ``remedy``, or "".
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
    """An ``opener`` for :func:`open`. Symbolic links are not followed, and pipes not waited for. Raises OSError."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, FILE_MODE)
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    with suppress(OSError):  # not the owner of an existing file
        os.fchmod(descriptor, FILE_MODE)
    return descriptor


def write_private(path: Path, data: bytes) -> None:
    """Replace the content of a file. Raises OSError."""
    with open(path, "wb", opener=private_opener) as file:
        file.write(data)


def make_private_directory(parent: Path, name: str) -> Path:
    """Create the directory ``parent/name``, and ``parent`` and its parents if they are missing. Raises OSError.

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
        """Replace the file ``path`` atomically. Raises UsageError if it cannot be written."""
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
