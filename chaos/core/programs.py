"""Programs of this machine that are run to their end, with a limit for their time and for their output."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic

_CHUNK = 1 << 16


class TooMuchOutput(subprocess.SubprocessError):
    """A program printed more than it may, and was killed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"it printed more than {limit >> 10} KiB")


def run_bounded(
    argv: Sequence[str],
    timeout: float,
    limit: int,
    *,
    env: Mapping[str, str] | None = None,
    executable: str | None = None,
    has_terminal: bool = False,
    has_own_session: bool = True,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program without a shell, which may print ``limit`` bytes to each of its outputs.

    With ``has_terminal`` it may ask there: its input and errors are those of this process. With ``has_own_session``,
    Ctrl-C is for nodefall alone. Raises OSError if it cannot be started, TimeoutExpired and TooMuchOutput.
    """
    process = subprocess.Popen(
        argv,
        executable=executable,
        env=env,
        stdin=None if has_terminal else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if has_terminal else subprocess.PIPE,
        start_new_session=has_own_session,
    )
    pipes = {pipe.fileno(): pipe for pipe in (process.stdout, process.stderr) if pipe}
    deadline = monotonic() + timeout
    try:
        outputs = _read({number: bytearray() for number in pipes}, deadline, limit)
        process.wait(max(deadline - monotonic(), 0.1))  # it has closed its outputs
    except (subprocess.TimeoutExpired, TimeoutError) as error:
        _kill(process, is_group=has_own_session)
        raise subprocess.TimeoutExpired(argv, timeout) from error
    except BaseException:
        _kill(process, is_group=has_own_session)
        raise
    finally:
        for pipe in pipes.values():
            pipe.close()
    stdout, *stderr = map(bytes, outputs)
    return subprocess.CompletedProcess(argv, process.returncode, stdout, b"".join(stderr))


def _read(outputs: dict[int, bytearray], deadline: float, limit: int) -> list[bytearray]:
    """Read all pipes to their ends. Raises TimeoutError, TooMuchOutput."""
    poll = select.poll()  # select() refuses file descriptors from 1024 on
    for number in outputs:
        poll.register(number, select.POLLIN)
    still_open = len(outputs)
    while still_open:
        remaining = deadline - monotonic()
        if remaining <= 0:
            raise TimeoutError
        for number, _ in poll.poll(remaining * 1000):
            chunk = os.read(number, _CHUNK)
            outputs[number] += chunk
            if len(outputs[number]) > limit:
                raise TooMuchOutput(limit)
            if not chunk:
                poll.unregister(number)
                still_open -= 1
    return list(outputs.values())


def _kill(process: subprocess.Popen[bytes], *, is_group: bool) -> None:
    with suppress(ProcessLookupError):
        if is_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
