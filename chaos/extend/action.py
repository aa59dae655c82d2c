"""Actions: a record of declarations and pure functions, which build commands and send nothing."""

from __future__ import annotations

from chaos.core.action import (
    NODE_READY,
    Action,
    AnyAction,
    FactCheck,
    FailsafeTimer,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    Scope,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
    failsafe_unit,
)
from chaos.core.command import HostCommand, KubeCommand, PodsCommand, PowerCommand, PowerVerb, TaintsCommand
from chaos.core.errors import NodefallError, Unsupported
from chaos.core.evidence import (
    boot_changed,
    exit_code_zero,
    fact_is,
    holds_until,
    last_reading_before,
    readings_after,
    returned_entries,
)
from chaos.core.fact import FactRef
from chaos.core.field_types import Model
from chaos.core.node_mark import InterfaceName, NodeName, OwnName, Tag, UnitName
from chaos.core.permission import Permission
from chaos.core.timeline import Timeline
from chaos.core.windows import powershell, system_program, windows_form

__all__ = [
    "NODE_READY",
    "Action",
    "AnyAction",
    "FactCheck",
    "FactRef",
    "FailsafeTimer",
    "HostCommand",
    "InterfaceName",
    "KubeCommand",
    "Model",
    "Needs",
    "NodeName",
    "NodefallError",
    "OwnName",
    "Permission",
    "PodsCommand",
    "PowerCommand",
    "PowerVerb",
    "Program",
    "Proof",
    "ProofResult",
    "ProofStatus",
    "Scope",
    "StepRun",
    "Tag",
    "TaintsCommand",
    "Target",
    "Timeline",
    "Undo",
    "UndoKind",
    "UndoStep",
    "UnitName",
    "Unsupported",
    "boot_changed",
    "exit_code_zero",
    "fact_is",
    "failsafe_timer",
    "failsafe_unit",
    "holds_until",
    "last_reading_before",
    "powershell",
    "readings_after",
    "returned_entries",
    "system_program",
    "windows_form",
]
