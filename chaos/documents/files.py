"""Reader of YAML files; refuses unreadable, oversized and untrusted ones."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from chaos.core.errors import BadInput, Problem, bad_input
from chaos.core.file_trust import refuse_writable_by_others
from chaos.core.missing_file import missing_file_hint

MAX_BYTES = 2 * 1024 * 1024


def read_text(path: Path, remedy: str = "") -> str:
    """The text of ``path``. Raises BadInput if it is missing, no file, too large, not UTF-8 or writable by others.

    ``remedy``: what to do about a missing one, in the imperative.
    """
    name = str(path)
    try:
        _refuse_by_status(name, path.stat())
        data = path.read_bytes()
    except FileNotFoundError:
        raise bad_input(name, "file not found", missing_file_hint(path, remedy)) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise bad_input(name, f"cannot read the file: {reason}") from None
    return _decode(name, data)


def _refuse_by_status(name: str, status: os.stat_result) -> None:
    mode, size = status.st_mode, status.st_size
    if stat.S_ISDIR(mode):
        raise bad_input(name, "is a directory", f"pass its files: {name.rstrip('/')}/*.yaml")
    if not stat.S_ISREG(mode):
        raise bad_input(name, "is not a regular file", "save it as a file first")
    refuse_writable_by_others(name, status)
    if size > MAX_BYTES:
        raise bad_input(name, f"too large: {size} bytes, the limit is {MAX_BYTES} bytes")


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        byte = data[error.start]
        hint = "save it as UTF-8"
        raise BadInput([Problem(name, line, column, f"is not UTF-8 (byte 0x{byte:02x})", hint)]) from None
