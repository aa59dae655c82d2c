"""Public interface of the lab: all that chaos/cli and chaos/app may import of it.

Each name is imported when it is first used, so that importing this module stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chaos.lab.private_dir import LOCK, remove_directory

if TYPE_CHECKING:
    from chaos.lab.breakages import BREAKAGES
    from chaos.lab.replay.compare import Difference, Result, count_states
    from chaos.lab.replay.parser import parse
    from chaos.lab.replay.recording import NotARecordingError, Recording, ReplayError
    from chaos.lab.replay.verify import replay

__all__ = [
    "BREAKAGES",
    "LOCK",
    "Difference",
    "NotARecordingError",
    "Recording",
    "ReplayError",
    "Result",
    "count_states",
    "parse",
    "remove_directory",
    "replay",
]
_MODULES = {
    "BREAKAGES": "chaos.lab.breakages",
    **dict.fromkeys(("Difference", "Result", "count_states"), "chaos.lab.replay.compare"),
    "parse": "chaos.lab.replay.parser",
    **dict.fromkeys(("NotARecordingError", "Recording", "ReplayError"), "chaos.lab.replay.recording"),
    "replay": "chaos.lab.replay.verify",
}


def __getattr__(name: str) -> Any:
    """Import a name of ``__all__`` on first use. Raises AttributeError for other names."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
