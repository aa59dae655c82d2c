"""Which process a lock belongs to, and when it is proven to have ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from chaos.core.store.process_lock import ProcessIdentity, current_identity, decode_identity, is_gone

PRINT = "from chaos.core.store.process_lock import current_identity as c; print(c().encode(), flush=True); input()"


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
