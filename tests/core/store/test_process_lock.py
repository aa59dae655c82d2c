"""One run at a time on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.core.errors import Refused
from chaos.core.store import process_lock
from chaos.core.store.process_lock import blocking_lock, exclusive_lock, lock_directory


def test_the_second_is_refused_with_the_name_of_the_holder(tmp_path: Path) -> None:
    with exclusive_lock("a/../b", tmp_path):
        with pytest.raises(Refused, match=f"process {os.getpid()}"), exclusive_lock("a/../b", tmp_path):
            pass
        with exclusive_lock("another", tmp_path):
            pass
    with exclusive_lock("a/../b", tmp_path):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / f"nodefall-{os.getuid()}-x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="cannot open the lock"), exclusive_lock("x", tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_the_file_is_removed_with_the_lock(tmp_path: Path) -> None:
    with exclusive_lock("a", tmp_path), blocking_lock("b", tmp_path):
        assert len(list(tmp_path.iterdir())) == 2
    assert not list(tmp_path.iterdir())


def test_a_file_that_a_dead_process_left_is_used_again(tmp_path: Path) -> None:
    (tmp_path / f"nodefall-{os.getuid()}-a.lock").write_text("4711")
    with exclusive_lock("a", tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def held(directory: Path, holder: str, *, acquired: bool = True, released: bool = True) -> frozenset[str]:
    """Hold the lock, and the Lease as ``holder``; who had ended before."""
    with exclusive_lock("a", directory) as machine:
        machine.enter(holder)
        if released:
            machine.leave(acquired=acquired)
        return machine.ended


def test_a_holder_that_was_killed_has_ended(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from chaos.core.store.process_lock import exclusive_lock\n"
        "with exclusive_lock('a', Path(sys.argv[1])) as lock: lock.enter('ann'); print(flush=True); input()"
    )
    child = subprocess.Popen(
        (sys.executable, "-c", code, str(tmp_path)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    child.stdout.readline()
    with pytest.raises(Refused, match=rf"process {child.pid}\)"):
        held(tmp_path, "bob")
    child.kill()
    child.communicate()
    assert held(tmp_path, "bob", acquired=False) == {"ann"}  # refused: ann still has the Lease
    assert held(tmp_path, "bob") == {"ann"}
    assert not list(tmp_path.iterdir())


def test_a_lease_that_could_not_be_released_is_free_for_the_next(tmp_path: Path) -> None:
    assert held(tmp_path, "ann", released=False) == frozenset()
    assert held(tmp_path, "bob") == {"ann"}
    assert held(tmp_path, "eve") == frozenset()


def test_without_room_for_names_the_lock_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert held(tmp_path, "ann") == frozenset()


def test_never_two_at_once_although_each_removes_the_file(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def turns() -> None:
        for _ in range(200):
            with blocking_lock("a", tmp_path):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=turns) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1]
    assert not list(tmp_path.iterdir())


def test_the_directory_does_not_depend_on_tmpdir(tmp_path: Path) -> None:
    code = "from chaos.core.store.process_lock import lock_directory; print(lock_directory())"
    found = [
        subprocess.run(
            (sys.executable, "-c", code),
            env=os.environ | {"TMPDIR": tmpdir},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for tmpdir in ("/tmp", str(tmp_path))
    ]
    assert found[0] == found[1] == f"{lock_directory()}\n"


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # it belongs to another user, so it is not used
    with pytest.raises(Refused, match=r"cannot use the lock directory /tmp/nodefall-4711"):
        lock_directory()
    Path("/tmp/nodefall-4711").rmdir()


def test_a_user_has_a_directory_in_the_runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    monkeypatch.setattr(process_lock, "_is_private", lambda directory, uid: directory.is_dir() and uid == 4711)
    assert lock_directory() == tmp_path / "nodefall"
    assert (tmp_path / "nodefall").stat().st_mode & 0o777 == 0o700
