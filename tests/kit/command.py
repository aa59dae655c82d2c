"""The command line in the process of the test: for commands that neither run experiments nor are about processes."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from click.testing import CliRunner

from chaos.cli.app import main


def command(*arguments: str | Path, cwd: Path | None = None, **environ: str) -> CompletedProcess[str]:
    """What a process of nodefall with these arguments would print, and its exit code.

    ``environ`` is added to the environment, from which variables of nodefall and pytest are removed.
    """
    own = {key: None for key in os.environ if key.startswith(("NODEFALL", "PYTEST"))}
    given = [str(argument) for argument in arguments]
    with (
        chdir(cwd or Path.cwd()),
        _unchanged_process(),
        CliRunner().isolation(env={**own, "NO_COLOR": "1", **environ}) as (stdout, stderr, _),
    ):
        code = main(given)
        return CompletedProcess(given, code, _text(stdout), _text(stderr))


def _text(stream: Any) -> str:
    return str(stream.getvalue().decode().replace("\r\n", "\n"))


@contextmanager
def _unchanged_process() -> Iterator[None]:
    """Restore the handlers of logs and signals, which a process need not."""
    root, package = logging.getLogger(), logging.getLogger("chaos")
    before = [(logger, logger.level, logger.handlers[:], logger.propagate) for logger in (root, package)]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for logger, level, logged_by, propagates in before:
            logger.setLevel(level)
            logger.handlers[:], logger.propagate = logged_by, propagates
        for number, handler in handlers.items():
            signal.signal(number, handler)
