"""The type of ``RENDERER`` in every renderer module, and the renderers of this installation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from chaos.core.blame import Blame, Hook, Kind
from chaos.core.errors import PluginError
from chaos.core.registry import Group, discover
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Renderer:
    """A report format. ``file`` is its file name in the run directory; ``render`` is a pure function."""

    name: str
    file: str
    summary: str
    render: Callable[[RunResult, Timeline], str]


def _in_its_place(why: str) -> str:
    """The report of a renderer that failed: the others are written, too."""
    return f"{why}\n"


def _guard(renderer: Renderer, blame: Blame) -> Renderer:
    return replace(renderer, render=blame.guard(renderer.render, "render", Hook(str, raises=(), instead=_in_its_place)))


KIND = Kind("renderer", Renderer, _guard)


@cache
def load_renderers() -> Mapping[str, Renderer]:
    """Renderers by name, built in and from other distributions. Raises PluginError, also for a duplicate file name."""
    import chaos.reports.run  # noqa: PLC0415 - a package that imports this module

    renderers: dict[str, Renderer] = discover(chaos.reports.run, "RENDERER", Group.RENDERERS, KIND)
    by_file: dict[str, Renderer] = {}
    for renderer in renderers.values():
        other = by_file.setdefault(renderer.file, renderer)
        if other is not renderer:
            raise PluginError(
                f"duplicate report file {renderer.file!r}: renderers {other.name!r} and {renderer.name!r}",
                hint="uninstall the plug-in of one of them",
            )
    return renderers
