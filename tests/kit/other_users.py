"""Other users of this machine, as whom a test does something. Needs root."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

# Users of every Linux with their own groups, so that no account has to be made: bin, and daemon.
ALICE, MALLORY = 2, 1


def as_user(user: int, do: Callable[[], object]) -> str:
    """Run ``do`` in a process of this user, without root's groups; what it raised, or ""."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        error = ""
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            do()
        except BaseException as raised:  # noqa: BLE001 - reported to the parent
            error = f"{raised}\n{traceback.format_exc()}"
        os.write(writer, error.encode()[:60000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text
