"""Public interface of the lab: all that chaos/cli and chaos/app may import of it.

Each name is imported when it is first used, so that importing this module stays cheap.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaos.lab.apiserver.pods import untolerated
    from chaos.lab.apiserver.store import Change
    from chaos.lab.breakages import BREAKAGES
    from chaos.lab.controllers.scheduler_affinity import TermIndex, repelling_terms
    from chaos.lab.controllers.taint_eviction import toleration_seconds
    from chaos.lab.direct.host import DirectHost, DirectProgram, Task
    from chaos.lab.direct.lab import DirectLab
    from chaos.lab.direct.requests import Answer
    from chaos.lab.direct.windows_host import CRASH_TOOL
    from chaos.lab.http.errors import ApiError
    from chaos.lab.http.pod_exec import ExecError
    from chaos.lab.node.machine import Machine
    from chaos.lab.objects import (
        allocatable_amount,
        allocatable_pods,
        is_active,
        labels_of,
        matches_node,
        node_of,
        requests_of,
        selector_matches,
    )
    from chaos.lab.recorded.forecast import forecast
    from chaos.lab.recorded.parser import parse
    from chaos.lab.recorded.recording import Observation, ReplayError
    from chaos.lab.sim import SimClock
    from chaos.lab.snapshot.load import Copy
    from chaos.lab.snapshot.reader import Snapshot, SnapshotError, read_snapshot
    from chaos.lab.spec import LabSpec, SpecError
    from chaos.lab.trial import rejections
    from chaos.lab.versions import nearest_version

__all__ = [
    "BREAKAGES",
    "CRASH_TOOL",
    "LOCK",
    "Answer",
    "ApiError",
    "Change",
    "Copy",
    "DirectHost",
    "DirectLab",
    "DirectProgram",
    "ExecError",
    "LabSpec",
    "Machine",
    "Observation",
    "ReplayError",
    "SimClock",
    "Snapshot",
    "SnapshotError",
    "SpecError",
    "Task",
    "TermIndex",
    "allocatable_amount",
    "allocatable_pods",
    "forecast",
    "is_active",
    "labels_of",
    "matches_node",
    "nearest_version",
    "node_of",
    "parse",
    "read_snapshot",
    "rejections",
    "remove_directory",
    "repelling_terms",
    "requests_of",
    "selector_matches",
    "toleration_seconds",
    "untolerated",
]
LOCK = "lock"  # file of a lab's private directory; changes require the lock on it
_MODULES = {
    "Answer": "chaos.lab.direct.requests",
    "ApiError": "chaos.lab.http.errors",
    "BREAKAGES": "chaos.lab.breakages",
    "Change": "chaos.lab.apiserver.store",
    "CRASH_TOOL": "chaos.lab.direct.windows_host",
    "Copy": "chaos.lab.snapshot.load",
    "DirectLab": "chaos.lab.direct.lab",
    **dict.fromkeys(("DirectHost", "DirectProgram"), "chaos.lab.direct.host"),
    "ExecError": "chaos.lab.http.pod_exec",
    **dict.fromkeys(("LabSpec", "SpecError"), "chaos.lab.spec"),
    "Machine": "chaos.lab.node.machine",
    "SimClock": "chaos.lab.sim",
    "Task": "chaos.lab.direct.host",
    "rejections": "chaos.lab.trial",
    **dict.fromkeys(("Snapshot", "SnapshotError", "read_snapshot"), "chaos.lab.snapshot.reader"),
    "nearest_version": "chaos.lab.versions",
    **dict.fromkeys(("allocatable_amount", "allocatable_pods", "matches_node"), "chaos.lab.objects"),
    **dict.fromkeys(("is_active", "labels_of", "node_of", "requests_of", "selector_matches"), "chaos.lab.objects"),
    **dict.fromkeys(("TermIndex", "repelling_terms"), "chaos.lab.controllers.scheduler_affinity"),
    "toleration_seconds": "chaos.lab.controllers.taint_eviction",
    "untolerated": "chaos.lab.apiserver.pods",
    "parse": "chaos.lab.recorded.parser",
    "forecast": "chaos.lab.recorded.forecast",
    **dict.fromkeys(("Observation", "ReplayError"), "chaos.lab.recorded.recording"),
}


def __getattr__(name: str) -> Any:
    """Import a name of ``__all__`` on first use. Raises AttributeError for other names."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def remove_directory(directory: Path) -> None:
    """Remove the private directory of a lab and its files.

    The lock is removed last, so that no other lab takes a half-removed one.
    """
    with suppress(FileNotFoundError):
        for path in directory.iterdir():
            if path.name != LOCK:
                path.unlink(missing_ok=True)
    (directory / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # a new lab is being created in it
        directory.rmdir()
