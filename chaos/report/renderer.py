"""What every renderer module offers as ``RENDERER``; ``discover(chaos.report, "RENDERER")`` finds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chaos.model.result import RunResult
from chaos.model.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Renderer:
    """``file`` is the name in the run's directory; ``render`` is pure."""

    name: str
    file: str
    summary: str
    render: Callable[[RunResult, Timeline], str]
