"""Programs of this machine whose output or time has no end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from chaos.core.errors import Refused
from chaos.core.field_types import Secret
from chaos.core.programs import TooMuchOutput, run_bounded
from chaos.machines.local import SecretContext, read_secret


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("yes", TooMuchOutput),
        ("yes >&2", TooMuchOutput),
        ("yes & yes & wait", TooMuchOutput),
        ("sleep 60", subprocess.TimeoutExpired),
        ("sleep 60 & exit 0", subprocess.TimeoutExpired),  # it has the output open
        ("exec >&- 2>&-; sleep 60", subprocess.TimeoutExpired),
    ],
)
def test_what_does_not_end_is_ended(script: str, error: type[Exception]) -> None:
    begin = time.monotonic()
    with pytest.raises(error):
        run_bounded(["sh", "-c", script], 1.0, 100_000)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("size", [0, 1, 99_999, 100_000])
def test_both_outputs_are_whole(size: int) -> None:
    code = f"import sys; sys.stderr.write('e' * {size}); print(end='o' * {size}); sys.exit(3)"
    done = run_bounded([sys.executable, "-c", code], 30.0, 100_000)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"o" * size, b"e" * size)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["yes", "hunter2hunter2"], "it printed more than 64 KiB"),
        (["printf", "\\377"], "its output is not UTF-8 text"),
        (["/no/such"], "No such file or directory"),
    ],
)
def test_a_secret_command_that_gives_no_secret(argv: list[str], why: str) -> None:
    with pytest.raises(Refused) as caught:
        read_secret(Secret(command=argv), SecretContext({}, Path()))
    assert caught.value.message == f"secret command {argv[0]!r} failed: {why}"
