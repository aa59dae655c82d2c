"""The registry of this installation, built once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from chaos.model.errors import PluginError
from chaos.model.fact import HostFact
from chaos.model.registry import Group, PluginRegistry, discover, discover_lazily


@cache
def load_registry() -> PluginRegistry:
    """Actions and assertions, built in and from other distributions; the former load when used. Raises PluginError."""
    import chaos.actions.windows  # noqa: PLC0415 - slow
    import chaos.assertions  # noqa: PLC0415

    actions = discover_lazily(chaos.actions, "ACTION", Group.ACTIONS)
    windows_actions = discover_lazily(chaos.actions.windows, "ACTION", Group.WINDOWS_ACTIONS)
    if unpaired := sorted(windows_actions.keys() - actions.keys()):
        raise PluginError(
            f"Windows form of an unknown action: {', '.join(unpaired)}",
            hint=f"name it like an action; one for Windows alone belongs in the group {Group.ACTIONS}",
        )
    assertions = discover_lazily(chaos.assertions, "ASSERTION", Group.ASSERTIONS)
    return PluginRegistry(actions, assertions, windows_actions=windows_actions)


@cache
def load_facts() -> Mapping[str, HostFact]:
    """Facts of hosts, built in and from other distributions. Raises PluginError."""
    import chaos.facts  # noqa: PLC0415 - slow

    return discover(chaos.facts, HostFact, Group.FACTS)


@cache
def load_windows_facts() -> Mapping[str, HostFact]:
    """Facts of Windows hosts, built in and from other distributions. Raises PluginError."""
    import chaos.facts.windows  # noqa: PLC0415 - slow

    return discover(chaos.facts.windows, HostFact, Group.WINDOWS_FACTS)
