"""What is put together once."""

from __future__ import annotations

from functools import cache

from chaos.model.registry import PluginRegistry, discover


@cache
def load_registry() -> PluginRegistry:
    """All actions and assertions of this installation."""
    import chaos.actions  # noqa: PLC0415 - slow
    import chaos.assertions  # noqa: PLC0415

    return PluginRegistry(discover(chaos.actions, "ACTION"), discover(chaos.assertions, "ASSERTION"))
