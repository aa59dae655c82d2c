"""Files that can cause a command, a connection or a change: read only if no one else can write or replace them.

Trusted are root, this user, and the user who ran sudo. No other user may own the file or a link to it, write it by its
mode or its ACL, or replace it in its directory. The path is walked by descriptors: what is checked is what is read.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from chaos.core.errors import bad_input
from chaos.core.files import read_descriptor

_MAX_LINKS = 40  # as Linux
_ACL = "system.posix_acl_access"
_ACL_VERSION, _ACL_ENTRY = struct.Struct("<I"), struct.Struct("<HHI")  # tag, permissions, ID; linux/posix_acl_xattr.h
_ACL_USER, _ACL_GROUP_OBJ, _ACL_GROUP = 0x02, 0x04, 0x08
_WRITE = 0o2
_LAST_STATIC_GROUP = 99  # groups that distributions allocate; 100 is often the primary group of people


@dataclass(frozen=True, slots=True)
class _Place:
    """An open file or directory, and its path for people."""

    descriptor: int
    path: str
    status: os.stat_result


def read_trusted(path: Path, limit: int) -> bytes:
    """The content, of at most ``limit`` bytes. Raises BadInput for a file that others can write, and OSError."""
    with ExitStack() as stack:
        return read_descriptor(_open_trusted(path, stack), limit)


def refuse_untrusted_file(path: Path) -> None:
    """Raises BadInput for a file or directory that others can write or replace. Raises OSError if it does not exist."""
    with ExitStack() as stack:
        _open_trusted(path, stack)


def refuse_untrusted_command(argv: Sequence[str]) -> str | None:
    """Raises BadInput for a program, or a file among its arguments, that others can write or replace.

    Returns the program's path, None if PATH has none. What its files name in turn is not looked at.
    """
    program = shutil.which(argv[0])
    scripts = [word for word in argv[1:] if "/" in word and Path(word).is_file()]
    for name in [program, *scripts] if program else scripts:
        with suppress(OSError):  # what cannot be opened is for the program to report
            refuse_untrusted_file(Path(name))
    return program


def refuse_link_of_others(path: Path) -> None:
    """Raise BadInput for a symbolic link that belongs to another user, who could change its target. Raises OSError."""
    _refuse_link(str(path), path.lstat())


def _open_trusted(path: Path, stack: ExitStack) -> int:
    """A descriptor of a file or directory; ``stack`` closes it."""
    directories = [_open("/", None, "/", os.O_PATH | os.O_DIRECTORY, stack)]
    todo = [*reversed(Path.cwd().joinpath(path).parts[1:])]
    links = 0
    while todo:
        name, here = todo.pop(), directories[-1]
        if name == "..":
            directories = directories[: max(len(directories) - 1, 1)]
            continue
        where = os.path.join(here.path, name)
        status = os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            _refuse_link(where, status)
            _refuse_directories(directories)
            if (links := links + 1) > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), where)
            target = Path(os.readlink(name, dir_fd=here.descriptor))
            directories = directories[:1] if target.is_absolute() else directories
            todo += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        elif stat.S_ISDIR(status.st_mode):
            directories.append(_open(name, here.descriptor, where, os.O_PATH | os.O_DIRECTORY, stack))
        elif todo:
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), where)
        else:
            return _open_last(name, here, where, status, directories, stack)
    _refuse_directories(directories)
    return directories[-1].descriptor


def _open_last(
    name: str, here: _Place, where: str, status: os.stat_result, directories: list[_Place], stack: ExitStack
) -> int:
    """The file itself. A device is never opened: some act on that."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY if stat.S_ISREG(status.st_mode) else os.O_PATH
    file = _open(name, here.descriptor, where, flags, stack)
    _refuse(file)
    _refuse_directories(directories)
    return file.descriptor


def _open(name: str, at: int | None, path: str, flags: int, stack: ExitStack) -> _Place:
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    stack.callback(os.close, descriptor)
    return _Place(descriptor, path, os.fstat(descriptor))


def _refuse_directories(directories: list[_Place]) -> None:
    """Raises BadInput if others can replace an entry of the last directory.

    Looks at its parents, up to the first directory that only trusted users can write: whoever replaces that one, or a
    directory above it, has none of a trusted user to put there.
    """
    for directory in reversed(directories):
        if not directory.status.st_mode & stat.S_ISVTX:  # there, others cannot replace what is not theirs
            _refuse(directory)
            return
        _refuse_owner(directory.path, directory.status)


def _refuse(place: _Place) -> None:
    """Raises BadInput if others own or may write the file or directory."""
    _refuse_owner(place.path, place.status)
    mode, hint = place.status.st_mode, f"chmod go-w {place.path}"
    if not mode & (stat.S_IWOTH | stat.S_IWGRP) or os.fstatvfs(place.descriptor).f_flag & os.ST_RDONLY:
        return  # with an ACL, the group's permissions are its mask: without that, no entry of it may write
    what = "directory" if stat.S_ISDIR(mode) else "file"
    if mode & stat.S_IWOTH:
        raise bad_input(place.path, f"not trusted: any user may write this {what}", hint)
    users, groups = _acl_writers(place.descriptor, place.status)
    if other := sorted(users - _trusted_users()):
        message = f"not trusted: by its ACL, user {other[0]} may write this {what}"
        raise bad_input(place.path, message, f"setfacl -b {place.path}")
    if not all(_has_no_others(group, place.status.st_uid) for group in groups):
        raise bad_input(place.path, f"not trusted: the group may write this {what}", hint)


def _refuse_owner(path: str, status: os.stat_result, what: str = "it belongs to", hint: str = "") -> None:
    if status.st_uid not in _trusted_users():
        hint = hint or f"if you trust its content, make it yours: chown -R {os.geteuid()} {path}"
        raise bad_input(path, f"not trusted: {what} user {status.st_uid}", hint)


def _refuse_link(path: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        hint = "remove the link, or give the path that it leads to"
        _refuse_owner(path, status, "it is a symbolic link of", hint)


def _trusted_users() -> set[int]:
    trusted = {0, os.geteuid()}
    if os.geteuid() == 0:
        trusted |= {int(text) for text in (os.environ.get("SUDO_UID", ""),) if text.isdecimal()}
    return trusted


def _acl_writers(descriptor: int, status: os.stat_result) -> tuple[set[int], set[int]]:
    """Users and groups that may write a file whose mode lets a group write, by its ACL if it has one."""
    try:
        data = os.getxattr(f"/proc/self/fd/{descriptor}", _ACL)  # it may be open with O_PATH, which reads no attributes
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return set(), {status.st_gid}
        raise
    users, groups = set(), set()
    for tag, permissions, number in _ACL_ENTRY.iter_unpack(data[_ACL_VERSION.size :]):
        if permissions & _WRITE and tag == _ACL_USER:
            users.add(number)
        elif permissions & _WRITE and tag in (_ACL_GROUP, _ACL_GROUP_OBJ):
            groups.add(status.st_gid if tag == _ACL_GROUP_OBJ else number)
    return users, groups


def _has_no_others(gid: int, owner: int) -> bool:
    """Whether a group is known to have trusted members only: the owner's own, as on Debian, or an empty one of root.

    A directory service may not list whose primary group it is, so that any other group may have more members.
    """
    try:
        import grp  # noqa: PLC0415 - absent on Windows
        import pwd  # noqa: PLC0415

        group, users = grp.getgrgid(gid), pwd.getpwall()
        name = pwd.getpwuid(owner).pw_name
    except (ImportError, KeyError):
        return False
    trusted = _trusted_users()
    members = {user.pw_uid for user in users if user.pw_gid == gid or user.pw_name in group.gr_mem}
    unknown = set(group.gr_mem) - {user.pw_name for user in users}
    is_own = group.gr_name == name or (owner == 0 and gid <= _LAST_STATIC_GROUP)
    return is_own and not unknown and members <= trusted
