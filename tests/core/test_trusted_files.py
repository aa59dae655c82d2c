"""Files that another user of this machine can write or replace, tried as that user, and those that no one else can."""

from __future__ import annotations

import grp
import os
import pwd
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.core.errors import BadInput
from chaos.core.trusted_files import read_trusted, refuse_untrusted_file
from tests.kit.other_users import ALICE, MALLORY, as_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of other users")
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
Attack = Callable[[Path], Path]


def acl(path: Path, *entries: tuple[int, int, int]) -> None:
    """Set the ACL that setfacl would: tag, permissions and ID of each entry."""
    given = {(tag, number): permissions for tag, permissions, number in entries}
    full = {(_USER_OBJ, 0): 6, (_GROUP_OBJ, 0): 4, (_MASK, 0): 7, (_OTHER, 0): 4} | given
    text = struct.pack("<I", 2)
    for (tag, number), permissions in sorted(full.items()):
        text += struct.pack("<HHI", tag, permissions, number or 0xFFFFFFFF)
    os.setxattr(path, "system.posix_acl_access", text)


def owned(file: Path) -> Path:
    os.chown(file, MALLORY, MALLORY)
    return file


def owned_and_private(file: Path) -> Path:
    file.chmod(0o600)
    return owned(file)


def world_writable(file: Path) -> Path:
    file.chmod(0o646)
    return file


def group_of_another(file: Path) -> Path:
    os.chown(file, 0, pwd.getpwuid(MALLORY).pw_gid)
    file.chmod(0o664)
    return file


def acl_for_a_user(file: Path) -> Path:
    acl(file, (_USER, 6, MALLORY))
    return file


def acl_for_a_group(file: Path) -> Path:
    acl(file, (_GROUP, 6, pwd.getpwuid(MALLORY).pw_gid))
    return file


def behind_a_link(file: Path) -> Path:
    link = file.parent.parent / "link"
    link.parent.chmod(0o1777)
    link.symlink_to(file)
    os.chown(link, MALLORY, MALLORY, follow_symlinks=False)
    return link


def behind_a_link_in_the_path(file: Path) -> Path:
    link = file.parent.parent / "folder"
    link.parent.chmod(0o1777)
    link.symlink_to(file.parent)
    os.chown(link, MALLORY, MALLORY, follow_symlinks=False)
    return link / file.name


def in_a_writable_directory(file: Path) -> Path:
    file.parent.chmod(0o777)
    return file


def in_a_directory_of_another(file: Path) -> Path:
    os.chown(file.parent, MALLORY, MALLORY)
    return file


def in_a_directory_with_an_acl(file: Path) -> Path:
    acl(file.parent, (_USER, 7, MALLORY), (_USER_OBJ, 7, 0), (_OTHER, 5, 0))
    return file


def a_link_in_a_writable_directory(file: Path) -> Path:
    folder = file.parent.parent / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "link").symlink_to(file)
    return folder / "link"


def below_a_sticky_directory_of_another(file: Path) -> Path:
    os.chown(file.parent, MALLORY, MALLORY)
    file.parent.chmod(0o1777)
    return file


ATTACKS: list[Attack] = [
    owned, owned_and_private, world_writable, group_of_another, acl_for_a_user, acl_for_a_group, behind_a_link,
    behind_a_link_in_the_path, in_a_writable_directory, in_a_directory_of_another, in_a_directory_with_an_acl,
    a_link_in_a_writable_directory, below_a_sticky_directory_of_another,
]  # fmt: skip


@pytest.fixture
def other_users() -> Iterator[Path]:
    """A folder of root that other users can enter, which pytest's own cannot be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


def replace(path: Path) -> None:
    """What another user tries: to write the file, to replace it, or to replace the link or directory before it."""
    with suppress(OSError):
        path.write_text("theirs")
        return
    with suppress(OSError):
        path.unlink()
        path.write_text("theirs")
        return
    with suppress(OSError):
        path.parent.unlink()
        path.parent.mkdir()
        path.write_text("theirs")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_what_another_user_can_write_is_not_read(other_users: Path, attack: Attack) -> None:
    file = other_users / "folder-of-root" / "file"
    file.parent.mkdir()
    file.write_text("ours")
    path = attack(file)
    for check in (refuse_untrusted_file, lambda given: read_trusted(given, 100)):
        with pytest.raises(BadInput, match="not trusted"):
            check(path)
    assert as_user(MALLORY, lambda: replace(path)) == ""
    assert path.read_text() == "theirs", "the attack is one"


def plain(file: Path) -> Path:
    return file


def own_group(file: Path) -> Path:
    file.chmod(0o664)
    return file


def own_link(file: Path) -> Path:
    (file.parent / "link").symlink_to("./../folder-of-root/file")
    return file.parent / "link"


def in_a_sticky_directory(file: Path) -> Path:
    file.parent.chmod(0o1777)
    return file


def through_dots(file: Path) -> Path:
    return file.parent / "x" / ".." / ".." / "folder-of-root" / "file"


@pytest.mark.parametrize(
    "make", [plain, own_group, own_link, in_a_sticky_directory, through_dots], ids=lambda f: f.__name__
)
def test_what_only_root_can_write_is_read(other_users: Path, make: Attack) -> None:
    file = other_users / "folder-of-root" / "file"
    file.parent.mkdir()
    (file.parent / "x").mkdir()
    file.write_text("ours")
    path = make(file)
    assert read_trusted(path, 4) == b"ours"
    assert as_user(ALICE, lambda: read_trusted(path, 4)) == "", "another user trusts the files of root"
    as_user(MALLORY, lambda: replace(path))
    assert read_trusted(path, 4) == b"ours"


def test_a_user_trusts_the_own_files_and_not_those_of_others(other_users: Path) -> None:
    for user in (ALICE, MALLORY):
        folder = other_users / str(user)
        folder.mkdir()
        (folder / "file").write_text("x")
        os.chown(folder, user, user)
        os.chown(folder / "file", user, user)
    assert as_user(ALICE, lambda: read_trusted(other_users / str(ALICE) / "file", 9)) == ""
    assert "not trusted" in as_user(ALICE, lambda: read_trusted(other_users / str(MALLORY) / "file", 9))


def test_root_trusts_the_user_of_sudo(other_users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = other_users / "file"
    file.write_text("x")
    os.chown(file, ALICE, ALICE)
    monkeypatch.setenv("SUDO_UID", str(ALICE))
    assert read_trusted(file, 9) == b"x"
    monkeypatch.setenv("SUDO_UID", str(MALLORY))
    with pytest.raises(BadInput, match=f"belongs to user {ALICE}"):
        read_trusted(file, 9)


def test_a_group_that_is_the_primary_group_of_somebody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list of members does not name them."""
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o664)
    assert grp.getgrgid(0).gr_mem == []
    assert read_trusted(file, 9) == b"x"
    everybody = [*pwd.getpwall(), SimpleNamespace(pw_uid=MALLORY, pw_gid=0, pw_name="mallory")]
    monkeypatch.setattr(pwd, "getpwall", lambda: everybody)
    with pytest.raises(BadInput, match="the group may write"):
        read_trusted(file, 9)


@pytest.mark.parametrize("links", [["a"], ["b", "a"]])
def test_links_that_lead_nowhere(tmp_path: Path, links: list[str]) -> None:
    for name, target in zip(["a", "b"], links, strict=False):
        (tmp_path / name).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        read_trusted(tmp_path / "a", 9)


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)], ids=["pipe", "directory", "device"]
)
def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises((OSError, BadInput), match=r"not a regular file|Is a directory|any user may write this file"):
        read_trusted(tmp_path / "x", 9)


def test_a_file_may_have_so_many_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_trusted(tmp_path / "x", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_trusted(tmp_path / "x", 4)
