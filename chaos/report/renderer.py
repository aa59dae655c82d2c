"""The type of ``RENDERER`` in every renderer module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.model.result import RunResult
from chaos.model.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Renderer:
    """A report format. ``file`` is its file name in the run directory; ``render`` is a pure function."""

    name: str
    file: str
    summary: str
    render: Callable[[RunResult, Timeline], str]
