"""One run at a time on a cluster.

Which process a lock belongs to, and when it is proven to have ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from msgspec import structs

from chaos.core.errors import Refused
from chaos.core.store import process_lock
from chaos.core.store.process_lock import (
    ProcessIdentity,
    blocking_lock,
    current_identity,
    decode_identity,
    exclusive_lock,
    is_gone,
    lock_directory,
)

PRINT = "from chaos.core.store.process_lock import current_identity as c; print(c().encode(), flush=True); input()"


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


def here() -> ProcessIdentity:
    identity = current_identity()
    assert identity
    return identity


def test_the_running_process_is_not_gone() -> None:
    assert not is_gone(here())
    assert decode_identity(here().encode()) == here()


def test_a_killed_process_is_gone_already_as_a_zombie() -> None:
    child = subprocess.Popen((sys.executable, "-c", PRINT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    identity = decode_identity(child.stdout.readline())
    assert identity
    assert identity.pid == child.pid
    assert not is_gone(identity)
    os.kill(child.pid, signal.SIGSTOP)
    assert not is_gone(identity)
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(identity)
    child.communicate()
    assert is_gone(identity)


@pytest.mark.parametrize("scope", ["boot_id", "pid_namespace", "time_namespace"])
def test_a_process_elsewhere_is_never_gone(scope: str) -> None:
    dead = structs.replace(here(), start_ticks=1)
    assert is_gone(dead)
    other = "other" if scope == "boot_id" else 42
    assert not is_gone(structs.replace(dead, **{scope: other}))


def test_another_process_with_its_number_is_not_it() -> None:
    assert is_gone(structs.replace(here(), start_ticks=here().start_ticks - 1))


@pytest.mark.parametrize("text", ["", "{}", "null", "0123456789abcdef", '{"bootId": "b", "pid": 1}', "\ud800"])
def test_what_is_no_identity_proves_nothing(text: str) -> None:
    assert decode_identity(text) is None


def proc(directory: Path, stat: str | None, pids: str) -> Path:
    """A /proc with one process besides this one."""
    root = directory / "proc"
    for folder in ("self/ns", "sys/kernel/random", str(os.getpid())):
        (root / folder).mkdir(parents=True)
    (root / "self/ns/pid").touch()
    (root / "self/status").write_text(f"Name:\tx\nNSpid:\t{pids}\n")
    (root / "sys/kernel/random/boot_id").write_text("boot\n")
    (root / str(os.getpid()) / "stat").write_text("1 (x) S" + " 0" * 49)
    if stat is not None:
        (root / "1").mkdir()
        (root / "1/stat").write_text(stat)
    return root


def stat(state: str, threads: int, start: int) -> str:
    return f"1 (a ) b) {state} {' '.join('0' * 16)} {threads} 0 {start} 0"


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (stat("S", 1, 7), False),
        (stat("T", 1, 7), False),
        (stat("Z", 1, 7), True),
        (stat("Z", 3, 7), False),  # its other threads go on
        (stat("S", 1, 8), True),
        ("", False),
        (None, False),  # hidden from other users, as process 1 always exists
    ],
)
def test_what_proc_shows(tmp_path: Path, text: str | None, gone: bool) -> None:
    root = proc(tmp_path, text, str(os.getpid()))
    process = ProcessIdentity("boot", (root / "self/ns/pid").stat().st_ino, 0, 1, 7)
    assert is_gone(process, root) is gone


def test_without_a_proc_of_its_own_namespace_there_is_no_identity(tmp_path: Path) -> None:
    assert current_identity(tmp_path / "none") is None
    assert current_identity(proc(tmp_path, None, f"4711 {os.getpid()}")) is None
    assert not is_gone(structs.replace(here(), start_ticks=1), tmp_path / "none")
