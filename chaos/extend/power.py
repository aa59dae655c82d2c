"""Drivers of power controls and of transports: the settings in the inventory, and what is made of them."""

from __future__ import annotations

from chaos.core.command import Delivery, HostCommand, Outcome, PowerCapability, PowerState
from chaos.core.driver import FilePath, PowerSettings
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.field_types import Model, Secret
from chaos.core.ports import (
    ALL_CAPABILITIES,
    ON,
    ON_OFF,
    ON_OFF_STATE,
    Armed,
    MachineAddresses,
    MachineIdentity,
    MachineRisks,
    PowerControl,
    RestartPolicyControl,
    Session,
    SoftOffControl,
    StopProgress,
)
from chaos.core.power_identity import PowerIdentity, PowerRisk
from chaos.machines.driver import HostContext, PowerDriver, SharedObjects, TransportDriver
from chaos.machines.local import ProgramResult, read_secret, run_program

__all__ = [
    "ALL_CAPABILITIES",
    "ON",
    "ON_OFF",
    "ON_OFF_STATE",
    "Armed",
    "Delivery",
    "FilePath",
    "HostCommand",
    "HostContext",
    "MachineAddresses",
    "MachineIdentity",
    "MachineRisks",
    "Model",
    "NodefallError",
    "Outcome",
    "PowerCapability",
    "PowerControl",
    "PowerDriver",
    "PowerIdentity",
    "PowerRisk",
    "PowerSettings",
    "PowerState",
    "ProgramResult",
    "Refused",
    "RestartPolicyControl",
    "Secret",
    "Session",
    "SharedObjects",
    "SoftOffControl",
    "StopProgress",
    "TransportDriver",
    "Unreachable",
    "read_secret",
    "run_program",
]
