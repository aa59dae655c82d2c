"""What of the contract can be checked of an installed plug-in, without a host, a recording or the settings of one."""

from __future__ import annotations

from typing import Any

from chaos.cluster.observers.plugin import KIND as OBSERVER
from chaos.core.blame import Kind
from chaos.core.errors import PluginError
from chaos.core.outside import Origin
from chaos.core.plugin_kinds import ACTION, ASSERTION, FACT, POWER, TRANSPORT
from chaos.core.registry import Group
from chaos.engine.preflight.check import KIND as CHECK
from chaos.reports.run.renderer import KIND as RENDERER
from chaos.testing.action import describe_breaches
from chaos.testing.plugins import assertion_breaches, power_breaches, renderer_breaches

KINDS: dict[str, Kind] = {
    Group.ACTIONS: ACTION,
    Group.WINDOWS_ACTIONS: ACTION,
    Group.ASSERTIONS: ASSERTION,
    Group.FACTS: FACT,
    Group.WINDOWS_FACTS: FACT,
    Group.CHECKS: CHECK,
    Group.OBSERVERS: OBSERVER,
    Group.TRANSPORTS: TRANSPORT,
    Group.POWER: POWER,
    Group.RENDERERS: RENDERER,
}


def installed_breaches(origin: Origin, plugin: Any) -> list[str]:
    """A sentence for each breach of the contract by the plug-in of an entry point."""
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        return [f"{origin.value} has no name: set its attribute `name` to a text"]
    try:
        KINDS[origin.group].accept(plugin, name, origin)
    except PluginError as error:
        return [error.message]
    return [f"{KINDS[origin.group].name} {name}: {breach}" for breach in _breaches(origin.group, plugin)]


def _breaches(group: str, plugin: Any) -> list[str]:
    if group in (Group.ACTIONS, Group.WINDOWS_ACTIONS):
        return list(describe_breaches(plugin))
    if group == Group.ASSERTIONS:
        return assertion_breaches(plugin)
    if group == Group.POWER:
        return power_breaches(plugin)
    return renderer_breaches(plugin) if group == Group.RENDERERS else []
