"""Whether a file's content may be trusted: no one else may write it."""

from __future__ import annotations

import os
import stat

from chaos.model.errors import bad_input


def refuse_writable_by_others(name: str, status: os.stat_result) -> None:
    """Raises BadInput if another user may write the file."""
    mode = status.st_mode
    if mode & stat.S_IWOTH:
        raise bad_input(name, "not trusted: any user may write this file", f"chmod go-w {name}")
    if mode & stat.S_IWGRP and not _is_private_group(status):
        raise bad_input(name, "not trusted: the group may write this file", f"chmod go-w {name}")


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
