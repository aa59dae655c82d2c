"""Plug-ins of other distributions: where they come from, and which contract they were written for.

What they do wrong is reported as theirs, see :mod:`chaos.core.blame`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from chaos.core.errors import PluginError

CONTRACT = 1  # version of what chaos.extend promises: raised by a change that a plug-in must follow
OLDEST_CONTRACT = 1  # that this version still accepts
STATEMENT = "NODEFALL_CONTRACT"  # in the module of an entry point: the version that the plug-in was written for


@dataclass(frozen=True, slots=True)
class Origin:
    """The entry point that named a plug-in. ``contract`` is the version that its module states, None without one."""

    group: str
    entry: str
    value: str
    distribution: str = ""
    version: str = ""
    contract: int | None = None

    @property
    def owner(self) -> str:
        """Distribution and version, as ``nodefall-acme 0.1.0``."""
        return f"{self.distribution} {self.version}" if self.distribution else "an unknown distribution"

    def __str__(self) -> str:
        return f"{self.value} ({self.owner})"


def load_outside(group: str) -> Iterator[tuple[Origin, Any]]:
    """Origin and plug-in of each entry point, by name, so that errors do not depend on the order of ``sys.path``.

    Raises PluginError for one that cannot be loaded, or was written for a contract that is not supported.
    """
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        origin = _origin(group, point)
        try:
            plugin = point.load()
        except Exception as error:
            raise PluginError(
                f"plug-in {point.name!r} of {group} cannot be loaded: {origin}: {type(error).__name__}: {error}",
                hint="fix or uninstall that distribution",
            ) from error
        yield _with_contract(origin, point), plugin


def _origin(group: str, point: EntryPoint) -> Origin:
    distribution, version = (point.dist.name, point.dist.version) if point.dist else ("", "")
    return Origin(group, point.name, point.value, distribution, version)


def _with_contract(origin: Origin, point: EntryPoint) -> Origin:
    """The origin with the version that its module states. Raises PluginError if that is not supported."""
    module = sys.modules.get(point.value.partition(":")[0])
    stated = getattr(module, STATEMENT, None)
    if stated is None:
        return origin
    if not isinstance(stated, int) or isinstance(stated, bool):
        raise PluginError(
            f"plug-in {point.name!r} rejected: {origin}: {STATEMENT} is {stated!r}, not a whole number",
            hint=f"write {STATEMENT} = {CONTRACT}",
        )
    if not OLDEST_CONTRACT <= stated <= CONTRACT:
        other = "nodefall" if stated > CONTRACT else origin.distribution or "the plug-in"
        raise PluginError(
            f"plug-in {point.name!r} rejected: {origin} was written for version {stated} of the plug-in contract, "
            f"and this nodefall supports {_supported()}",
            hint=f"upgrade {other}",
        )
    return replace(origin, contract=stated)


def _supported() -> str:
    return f"version {CONTRACT}" if OLDEST_CONTRACT == CONTRACT else f"versions {OLDEST_CONTRACT} to {CONTRACT}"
