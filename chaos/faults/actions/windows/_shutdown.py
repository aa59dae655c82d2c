"""Parts shared by actions that use shutdown.exe: its command, its refusals, and who may cancel a shutdown."""

from __future__ import annotations

from msgspec import Struct

from chaos.core.action import FactCheck, Target
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.fact import FactRef
from chaos.core.node_mark import Tag
from chaos.core.windows import system_program
from chaos.faults.actions._machine import MachineState, capture_power_state
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED
from chaos.faults.readings.windows.shutdown_requests import comment_for

NO_SHUTDOWN_PENDING = FactCheck("scheduled-shutdown", NO_SHUTDOWN_SCHEDULED)
_REASON = "p:4:1"  # Application: Maintenance (Planned); shutdown.exe refuses codes that do not exist
_ACCESS_DENIED, _NO_PRIVILEGE = 5, 1314
_IN_PROGRESS, _NOT_IN_PROGRESS, _ALREADY_SCHEDULED, _NO_SUCH_INTERFACE = 1115, 1116, 1190, 1717
_GOING_DOWN = "the machine is already shutting down, which this step has not requested"
_NO_RIGHT = "its user may not shut the machine down; use one of its administrators"
_TOO_LATE = (
    "Windows cancels a shutdown only until its countdown is over: from then on it notifies its services, the kubelet"
    " among them, and that cannot be undone"
)
_REFUSALS = (
    (_IN_PROGRESS, _GOING_DOWN),
    (_NO_SUCH_INTERFACE, _GOING_DOWN),  # late in a shutdown, its service has ended
    (_ALREADY_SCHEDULED, "somebody else has scheduled a shutdown, which this step neither replaces nor cancels"),
    (_ACCESS_DENIED, _NO_RIGHT),
    (_NO_PRIVILEGE, _NO_RIGHT),
)
_CANCEL_REFUSALS = (
    (_IN_PROGRESS, _TOO_LATE),
    (_NOT_IN_PROGRESS, f"no countdown runs. {_TOO_LATE}"),
    (_NO_SUCH_INTERFACE, _TOO_LATE),
    (_ACCESS_DENIED, _NO_RIGHT),
    (_NO_PRIVILEGE, _NO_RIGHT),
)
CANCEL = HostCommand((system_program("shutdown"), "/a"), refusals=_CANCEL_REFUSALS)


class ShutdownState(Struct, frozen=True):
    """The machine before its shutdown; ``tag``: for the comment, by which the shutdown is recognised."""

    tag: Tag
    machine: MachineState


def capture_shutdown(target: Target) -> ShutdownState:
    """State of a machine that is shut down. Raises Unsupported if a shutdown is pending already."""
    pending = target.require_fact("scheduled-shutdown", "Windows refuses a second shutdown")
    if pending != NO_SHUTDOWN_SCHEDULED:
        raise Unsupported(
            f"{target.node} has a shutdown pending ({pending}), and Windows refuses a second one",
            hint="let it happen, or run `shutdown /a` there; if that answers 1116, only the next boot ends its record",
        )
    return ShutdownState(target.tag, capture_power_state(target))


def shut_down(option: str, seconds: int, tag: Tag) -> HostCommand:
    """``shutdown.exe`` with ``/s`` or ``/r``, which returns at once; ``seconds`` of its countdown.

    ``/f`` is given as it is implied only by a countdown: without it, a program with a question stops the shutdown.
    """
    return HostCommand(
        (
            *(system_program("shutdown"), option, "/f", "/t", str(seconds)),
            *("/d", _REASON, "/c", comment_for(tag)),
        ),
        ends_session=seconds == 0,
        refusals=_REFUSALS,
    )


def is_own_pending(tag: Tag, *, pending: bool) -> FactCheck:
    """Whether a shutdown of the step with ``tag`` is pending."""
    return FactCheck(str(FactRef("nodefall-shutdown", {"tag": tag})), pending)
