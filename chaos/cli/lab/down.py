"""``nodefall lab down``: stop a lab and remove its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing

from chaos.cli.lab.lab_state import DEFAULT_NAME, LabDirectory, lab_names, remove_copy
from chaos.cli.lab.process import find, terminate
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError, Refused, UsageError

_TRIES, _PAUSE = 100, 0.05  # wall seconds


def select_labs(name: str | None, everything: bool) -> list[str]:
    """The names of the selected labs. Raises UsageError."""
    existing = lab_names()
    if everything:
        if name:
            raise UsageError("give a name or --all, not both")
        return existing
    if name is None and not existing:
        return []
    selected = name or DEFAULT_NAME
    if selected not in existing:
        hint = f"known labs: {', '.join(existing)}" if existing else "start one with nodefall lab up"
        raise UsageError(f"unknown lab {selected!r}", hint=hint)
    return [selected]


def down_all(names: Iterable[str], echo: Callable[[str], None]) -> None:
    """Stop all labs, even if one fails; then raise the last error."""
    failed: NodefallError | None = None
    for name in names:
        try:
            echo(_down(name))
        except NodefallError as error:
            if failed:
                echo(f"error: {failed.message}")
            failed = error
    if failed:
        raise failed


def _down(name: str) -> str:
    """Stop one lab; a message. Raises Refused if its process cannot be identified."""
    directory = LabDirectory(name)
    if not directory.is_alive():
        directory.remove()
        return f"the lab {name!r} was dead; its files were removed"
    state, copy = directory.state(), directory.inventory_copy()
    if state is None:
        raise Refused(
            f"unknown process of the lab {name!r}: cannot read {directory.path}/lab.json",
            hint=f"unless it is just starting, find its process with fuser {directory.path}/lock",
        )
    with find(state) as process:
        if process is None:
            raise Refused(
                f"the process {state.pid} of the lab {name!r} is not visible here, or its ID was reused",
                hint="stop the lab where it was started, perhaps in a container that shares this directory",
            )
        if not terminate(process):
            raise NodefallError(f"cannot stop the lab {name!r}: process {state.pid} is still alive after SIGKILL")
    remove_copy(copy)
    with closing(SystemClock()) as clock:
        for _ in range(_TRIES):  # the lab up that started it may be removing it, too
            if directory.remove():
                return f"the lab {name!r} is down"
            clock.sleep(_PAUSE)
    raise Refused(f"{directory.path} is in use again", hint="run nodefall lab status")
