"""Whether a file's content may be trusted: no one else may write it, or choose which file it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from chaos.core.errors import bad_input


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
