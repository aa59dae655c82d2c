"""Processes of a rehearsal whose parent or which themselves are killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from chaos.core.errors import NodefallError
from chaos.rehearsal.processes import run_forked
from tests.kit.processes import ROOT

_LARGE = """
import os, time
from chaos.rehearsal.processes import run_forked

PARENT = os.getpid()

def work(_):
    os.write(1, b".")
    while os.getppid() == PARENT:
        time.sleep(0.01)
    return b"x" * 1_000_000

list(run_forked([1, 2], work, 2))
"""


def test_processes_end_with_a_killed_parent_also_if_no_pipe_holds_their_results(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", _LARGE], stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.read(2) == b".."
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        ends = [os.pidfd_open(int(child)) for child in children]
        process.kill()
        ended = [bool(select.select([end], [], [], 20)[0]) for end in ends]
        for end, has_ended in zip(ends, ended, strict=True):
            if not has_ended:
                signal.pidfd_send_signal(end, signal.SIGKILL)
            os.close(end)
    assert ended == [True, True]


def test_a_process_that_is_killed_within_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def send_half(connection: Connection, _message: bytes) -> None:
        os.write(connection.fileno(), (1000).to_bytes(4) + b"half")
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Connection, "send_bytes", send_half)
    with pytest.raises(NodefallError, match="was killed: exit code -9"):
        list(run_forked([1], lambda _: b"", 1))
