"""The end of a process whose daemon threads are still busy: nothing of its exit code and output is lost."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="on_exit() is a function of glibc")

# on_exit() stands for the clean-up of OpenSSL: it runs with exit() and not with _exit(), and here it crashes for sure.
_PROGRAM = """
import atexit, ctypes, sys, threading
from chaos.cli.process import ProcessEnd

end = ProcessEnd()
libc = ctypes.CDLL(None)
atexit.register(lambda: sys.stdout.write("atexit ran\\n"))
gate = threading.Event()
threading.Thread(target=lambda: (gate.wait(0.2), sys.stdout.write("thread joined\\n"))).start()
if {is_busy}:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    libc.on_exit(libc.abort, None)
sys.stdout.write("output\\n")
end.code = {code}
sys.exit({code})
"""


def _run(*, is_busy: bool, code: int | None) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(is_busy=is_busy, code=code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("code", [0, 1, 70])
def test_exit_code_and_output_are_complete(code: int, *, is_busy: bool) -> None:
    process = _run(is_busy=is_busy, code=code)
    assert (process.returncode, process.stderr) == (code, "")
    assert process.stdout.splitlines() == ["output", "thread joined", "atexit ran"]


def test_without_a_known_code_the_interpreter_ends_as_ever() -> None:
    assert _run(is_busy=True, code=None).returncode == -signal.SIGABRT
