"""``nodefall lab down``: end a lab that stays, and remove what it has written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing

from chaos.cli.lab.lab_state import DEFAULT_NAME, LabDirectory, lab_names, remove_copy
from chaos.cli.lab.process import find, terminate
from chaos.clock import SystemClock
from chaos.model.errors import NodefallError, Refused, UsageError

_TRIES, _PAUSE = 100, 0.05  # wall seconds


def select_labs(name: str | None, everything: bool) -> list[str]:
    """The labs that are meant. Raises UsageError."""
    there = lab_names()
    if everything:
        if name:
            raise UsageError("give a name or --all, not both")
        return there
    if name is None and not there:
        return []
    wanted = name or DEFAULT_NAME
    if wanted not in there:
        known = f"there are: {', '.join(there)}" if there else "there is none at all"
        raise UsageError(f"there is no lab {wanted!r}", hint=known)
    return [wanted]


def down_all(names: Iterable[str], tell: Callable[[str], None]) -> None:
    """End them all, also after one that could not be ended: that is raised in the end."""
    failed: NodefallError | None = None
    for name in names:
        try:
            tell(_down(name))
        except NodefallError as error:
            if failed:
                tell(f"error: {failed.message}")
            failed = error
    if failed:
        raise failed


def _down(name: str) -> str:
    """End the lab; what was done, in words. Raises Refused for a process that is not proven to be the lab's."""
    home = LabDirectory(name)
    if not home.is_alive():
        home.remove()
        return f"the lab {name!r} was dead; its files are removed"
    state, copy = home.state(), home.inventory_copy()
    if state is None:
        raise Refused(
            f"the lab {name!r} does not tell which process it is: {home.path}/lab.json cannot be read",
            hint=f"if it is not just being started: fuser {home.path}/lock names its process",
        )
    with find(state) as process:
        if process is None:
            raise Refused(
                f"the process {state.pid} of the lab {name!r} is not to be seen from here, or is another's by now",
                hint="stop it where it was started, perhaps in a container that shares this directory",
            )
        if not terminate(process):
            raise NodefallError(f"the lab {name!r} (process {state.pid}) does not end, not even killed")
    remove_copy(copy)
    with closing(SystemClock()) as clock:
        for _ in range(_TRIES):  # a lab up that has started it may be at the same
            if home.remove():
                return f"the lab {name!r} is down"
            clock.sleep(_PAUSE)
    raise Refused(f"{home.path} is in use again", hint="nodefall lab status")
