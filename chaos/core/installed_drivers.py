"""The drivers of transports and power controls: the rooms above hand in the packages that have them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

DEFAULT_TRANSPORT = "ssh"
_packages: dict[str, ModuleType] = {}


def install(transports: ModuleType, power: ModuleType) -> None:
    """Hand in the packages of built-in drivers. They are imported when a driver, or an inventory, is first needed."""
    _packages.update(transports=transports, power=power)


def _package(kind: str) -> ModuleType:
    if kind not in _packages:
        raise RuntimeError("no drivers are handed in: import chaos.machines first")
    return _packages[kind]


@cache
def transport_drivers() -> Mapping[str, Any]:
    """Installed transport drivers (``chaos.machines.driver.TransportDriver``) by name, the default one first."""
    from chaos.core.plugin_kinds import TRANSPORT  # noqa: PLC0415 - slow
    from chaos.core.registry import Group, discover  # noqa: PLC0415

    found = discover(_package("transports"), "DRIVER", Group.TRANSPORTS, TRANSPORT)
    return {DEFAULT_TRANSPORT: found[DEFAULT_TRANSPORT], **found}


@cache
def power_drivers() -> Mapping[str, Any]:
    """Installed power drivers (``chaos.machines.driver.PowerDriver``) by name."""
    from chaos.core.plugin_kinds import POWER  # noqa: PLC0415 - slow
    from chaos.core.registry import Group, discover  # noqa: PLC0415

    return discover(_package("power"), "DRIVER", Group.POWER, POWER)
