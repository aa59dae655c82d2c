"""The registry of actions, assertions and facts in this installation, built once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from chaos.core.action import Action
from chaos.core.errors import PluginError
from chaos.core.fact import HostFact
from chaos.core.plugin_kinds import ACTION, ASSERTION, FACT
from chaos.core.registry import Group, PluginRegistry, discover, discover_lazily, join


@cache
def load_registry() -> PluginRegistry:
    """Load built-in and plug-in actions and assertions; actions are imported when first used. Raises PluginError."""
    import chaos.faults.actions.windows  # noqa: PLC0415 - slow
    import chaos.verdicts.assertions  # noqa: PLC0415
    from chaos.faults.actions import index  # noqa: PLC0415

    actions = discover_lazily(chaos.faults.actions, Action, Group.ACTIONS, index.ACTIONS, ACTION)
    windows = chaos.faults.actions.windows
    windows_actions = discover_lazily(windows, Action, Group.WINDOWS_ACTIONS, index.WINDOWS_ACTIONS, ACTION)
    if unpaired := sorted(windows_actions.keys() - actions.keys()):
        raise PluginError(
            f"Windows form of an unknown action: {', '.join(unpaired)}",
            hint=f"give it the name of an action; an action for Windows only belongs in the group {Group.ACTIONS}",
        )
    assertions = discover_lazily(chaos.verdicts.assertions, "ASSERTION", Group.ASSERTIONS, kind=ASSERTION)
    return PluginRegistry(actions, assertions, windows_actions=windows_actions)


@cache
def load_facts() -> Mapping[str, HostFact]:
    """Load the facts of hosts: built in, from actions, and from plug-ins. Raises PluginError."""
    import chaos.faults.actions  # noqa: PLC0415 - slow
    import chaos.faults.readings  # noqa: PLC0415
    from chaos.faults.actions import index  # noqa: PLC0415

    of_actions = discover_lazily(chaos.faults.actions, HostFact, index=index.FACTS)
    return join(discover(chaos.faults.readings, HostFact, Group.FACTS, FACT), of_actions)


@cache
def load_windows_facts() -> Mapping[str, HostFact]:
    """Load the facts of Windows hosts: built in and from plug-ins. Raises PluginError."""
    import chaos.faults.readings.windows  # noqa: PLC0415 - slow

    return discover(chaos.faults.readings.windows, HostFact, Group.WINDOWS_FACTS, FACT)
