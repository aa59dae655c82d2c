"""Others on one machine: another user's files, and processes with own lock files and process IDs, as in a container."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.processes import WALL, environment

_PRIVATE_RUN = 'mount -t tmpfs none /run && exec "$@"'


def prefix(*, pid_namespace: bool = False) -> tuple[str, ...]:
    """The command that runs another one with a private /run. Skips the test where that is impossible."""
    namespaces = ("--pid", "--fork", "--mount-proc") if pid_namespace else ()
    command = ("unshare", "--mount", *namespaces, "sh", "-c", _PRIVATE_RUN, "sh")
    try:
        tried = subprocess.run((*command, "true"), capture_output=True, text=True, timeout=WALL, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"no namespaces: {error}")
    if tried.returncode:
        pytest.skip(f"no namespaces: {tried.stderr.strip()}")
    return command


def nodefall_elsewhere(
    *arguments: str | Path, cwd: Path, pid_namespace: bool = False
) -> subprocess.CompletedProcess[str]:
    """The command line with another TMPDIR and other lock files."""
    temporary = cwd / "tmp"
    temporary.mkdir(exist_ok=True)
    command = [*prefix(pid_namespace=pid_namespace), sys.executable, "-m", "chaos", *map(str, arguments)]
    variables = environment(cwd) | {"TMPDIR": str(temporary), "XDG_RUNTIME_DIR": str(temporary)}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=WALL, check=False)


UNPRIVILEGED = 65534


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Make ``path``, or the link that it is, another user's: by root in fact, else this process seems to be another.

    Returns the owner's user ID.
    """
    if os.geteuid() == 0:
        os.chown(path, UNPRIVILEGED, -1, follow_symlinks=False)
    else:
        other = os.geteuid() + 1
        monkeypatch.setattr("os.geteuid", lambda: other)
    return path.lstat().st_uid
