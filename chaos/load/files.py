"""Reader of YAML files; refuses unreadable, oversized and untrusted ones."""

from __future__ import annotations

import stat
from pathlib import Path

from chaos.model.errors import BadInput, Problem, bad_input

MAX_BYTES = 2 * 1024 * 1024


def read_text(path: Path) -> str:
    """The text of ``path``. Raises BadInput if it is missing, no file, too large, not UTF-8 or writable by others."""
    name = str(path)
    try:
        _refuse_by_status(name, path.stat())
        data = path.read_bytes()
    except FileNotFoundError:
        raise bad_input(name, "file not found", _suggest_suffix(path)) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise bad_input(name, f"cannot read the file: {reason}") from None
    return _decode(name, data)


def _refuse_by_status(name: str, status: object) -> None:
    mode, size = getattr(status, "st_mode", 0), getattr(status, "st_size", 0)
    if stat.S_ISDIR(mode):
        raise bad_input(name, "is a directory", f"pass its files: {name.rstrip('/')}/*.yaml")
    if not stat.S_ISREG(mode):
        raise bad_input(name, "is not a regular file", "save it as a file first")
    if mode & stat.S_IWOTH:
        raise bad_input(name, "not trusted: any user may write this file", f"chmod go-w {name}")
    if mode & stat.S_IWGRP and not _is_private_group(status):
        raise bad_input(name, "not trusted: the group may write this file", f"chmod go-w {name}")
    if size > MAX_BYTES:
        raise bad_input(name, f"too large: {size} bytes, the limit is {MAX_BYTES} bytes")


def _is_private_group(status: object) -> bool:
    """Whether the group is the owner's and has no other members, as on Debian, where files have mode 664."""
    try:
        import grp  # noqa: PLC0415 - absent on Windows
        import pwd  # noqa: PLC0415

        owner = pwd.getpwuid(getattr(status, "st_uid", -1))
        group = grp.getgrgid(getattr(status, "st_gid", -1))
    except (ImportError, KeyError):
        return False
    return owner.pw_gid == group.gr_gid and set(group.gr_mem) <= {owner.pw_name}


def _suggest_suffix(path: Path) -> str:
    """Hint with the other suffix, if such a file exists."""
    for other in (path.with_suffix(s) for s in (".yaml", ".yml") if path.name not in ("", "..")):
        if other.is_file():
            return f"did you mean {str(other)!r}?"
    return ""


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        byte = data[error.start]
        hint = "save it as UTF-8"
        raise BadInput([Problem(name, line, column, f"is not UTF-8 (byte 0x{byte:02x})", hint)]) from None
