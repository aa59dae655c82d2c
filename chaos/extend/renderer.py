"""Renderers: report formats, pure functions of the result and the timeline."""

from __future__ import annotations

from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.reports.run.renderer import Renderer

__all__ = ["Renderer", "RunResult", "Status", "Timeline", "Verdict"]
