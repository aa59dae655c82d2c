"""Commands of disk-read-only on a kernel: in a mount namespace of the test's own, on a file system in memory.

No daemon is needed. The fact's source must be a device for the action, not for mount(8).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from chaos.core.command import HostCommand
from chaos.faults.actions.disk_read_only import ACTION, ReadOnlyState
from chaos.faults.readings.disks import mount

_LIST = "ls /run; cat /proc/self/mountinfo"
pytestmark = [pytest.mark.root, pytest.mark.timeout(60)]


def _in_own_namespace(script: str) -> list[str]:
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    if done.returncode and ("Operation not permitted" in done.stderr or "permission denied" in done.stderr):
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    assert not done.returncode, done.stderr
    return done.stdout.split("---\n")


def _undo(state: ReadOnlyState) -> str:
    """Script of the step that remounts."""
    command = ACTION.program(state).undo.steps[0].command
    assert isinstance(command, HostCommand)
    return shlex.join(command.argv)


def test_only_what_the_node_has_noted_is_remounted() -> None:
    """A state from the cluster may name a file system that somebody has mounted read-only on purpose."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("only root can make mount namespaces, with unshare")
    tag, path = f"foreign-{os.getpid()}", f"/mnt/nodefall-{os.getpid()}"
    done = ReadOnlyState(path, "tmpfs", "tmpfs", "rw,noatime", tag, 60.0)
    forged = [
        msgspec.structs.replace(done, path="/mnt/other"),
        msgspec.structs.replace(done, tag=f"{tag}-absent"),
        msgspec.structs.replace(done, options="rw"),
    ]
    (inject,) = ACTION.program(done).commands
    assert isinstance(inject, HostCommand)
    tries = "\n".join(f"{_undo(state)} && exit 9; {_LIST}" for state in forged)
    script = (
        "set -e; mount -t tmpfs tmpfs /mnt; mount -t tmpfs tmpfs /run; mkdir /mnt/other " + path + "\n"
        f"mount -t tmpfs -o noatime tmpfs {path}; mount -t tmpfs -o ro,noatime tmpfs /mnt/other; set +e\n"
        f"{shlex.join(inject.argv)}; {_LIST}\n{tries}\necho ---; {_undo(done)}; {_LIST}"
    )
    before, after = _in_own_namespace(script)
    assert before.count(f"nodefall-{tag}.read-only\n") == 4
    assert (before.count(f" {path} ro,noatime "), before.count(" /mnt/other ro,noatime ")) == (4, 4)
    assert (after.count(f" {path} rw,noatime "), after.count(" /mnt/other ro,noatime ")) == (1, 1)
    assert "read-only" not in after


def test_writes_fail_and_the_options_return(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("only root can make mount namespaces, with unshare")
    path = f"/mnt/nodefall-{os.getpid()}"
    state = ReadOnlyState(path, "tmpfs", "tmpfs", "rw,nosuid,noatime", "run-do", 60.0)
    fact = mount.bind({"path": path})
    (inject,) = ACTION.program(state).commands
    assert isinstance(inject, HostCommand)
    read = shlex.join(fact.command_for({}).argv)
    open_file = f"exec 5> {path}/open"
    script = (
        "set -e; mount -t tmpfs tmpfs /mnt; mount -t tmpfs tmpfs /run\n"
        f"mkdir {path}; mount -t tmpfs -o nosuid,noatime tmpfs {path}\n"
        f"{read}; echo ---; {shlex.join(inject.argv)}; {read}; echo ---; {_undo(state)}; {read}\n"
        f"echo ---; {open_file}; {shlex.join(inject.argv)} 2>&1 || true; {read}"
    )
    before, during, after, busy = _in_own_namespace(script)
    writable = {
        "source": "tmpfs",
        "type": "tmpfs",
        "options": "rw,nosuid,noatime",
        "whole": True,
        "with-root": False,
        "writable": True,
    }
    assert fact.parse(before, 0) == writable
    assert fact.parse(during, 0) == writable | {"options": "ro,nosuid,noatime", "writable": False}
    assert fact.parse(after, 0) == writable
    assert "mount point is busy" in busy
    assert fact.parse(busy.partition("\n")[2].partition("\n")[2], 0) == writable
