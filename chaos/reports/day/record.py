"""What is kept of a day on one cluster beside the directories of its runs: the input of the report."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from chaos.gameday.state import DayState

RECORD_VERSION = 1
_DIRECTORY = re.compile(r"(?!\.{1,2}/)[^/\\]{1,255}/(?!\.{1,2}$)[^/\\]{1,255}")  # EXPERIMENT/STAMP


class EntryRecord(Struct, frozen=True):
    """An entry as planned. ``expectations``: names of its hypotheses. ``gates``: only its own."""

    name: str
    experiment: str
    title: str
    expectations: tuple[str, ...]
    gates: tuple[str, ...] = ()


class ClusterRecord(Struct, frozen=True):
    """A day on one cluster. ``window``: as in the document, None for one that is always open.

    ``written``: when, in seconds since the epoch. ``gates`` and ``abort``: those of the day. ``directories``: of the
    runs by their ID, as EXPERIMENT/STAMP; a run without one was run from another machine.
    """

    title: str
    owner: str
    cluster: str
    simulated: bool
    written: float
    entries: tuple[EntryRecord, ...]
    state: DayState
    window: dict[str, Any] | None = None
    schedule: str = ""
    gates: tuple[str, ...] = ()
    abort: tuple[str, ...] = ()
    directories: dict[str, str] = {}
    version: int = RECORD_VERSION


def is_run_directory(name: str) -> bool:
    """Whether ``name`` is EXPERIMENT/STAMP, so that it leads nowhere else."""
    return bool(_DIRECTORY.fullmatch(name))
