"""``sc.exe query``: state of a service. Its labels are translated, the names of states and its exit codes are not."""

from __future__ import annotations

import re

from chaos.model.command import HostCommand
from chaos.model.windows import system_program

KUBELET = "kubelet"  # graceful shutdown works under no other name: the kubelet opens the service that is named so
UNKNOWN_SERVICE = 1060
_STATE = re.compile(
    r":\s+\d\s+(?P<state>RUNNING|STOPPED|START_PENDING|STOP_PENDING|PAUSED|PAUSE_PENDING|CONTINUE_PENDING)"
)
# As systemd names them, so that what holds of a kubelet's state holds on both systems.
_ACTIVE_STATES = {
    "RUNNING": "active",
    "STOPPED": "inactive",
    "START_PENDING": "activating",
    "STOP_PENDING": "deactivating",
}


def query_service(name: str) -> HostCommand:
    """Command whose output :func:`parse_service_state` understands."""
    return HostCommand((system_program("sc"), "query", name), accept=(0, UNKNOWN_SERVICE))


def parse_service_state(stdout: str, exit_code: int) -> str:
    """``active``, ``inactive``, ``activating``, ``deactivating`` or ``paused``. Raises ValueError."""
    if exit_code == UNKNOWN_SERVICE:
        raise ValueError("there is no such service")
    match = _STATE.search(stdout)
    if exit_code or not match:
        raise ValueError("sc.exe is not understood")
    return _ACTIVE_STATES.get(match["state"], "paused")
