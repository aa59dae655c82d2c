"""Preflight checks of what was collected before a fault, and facts of hosts: both are functions."""

from __future__ import annotations

from chaos.core.command import HostCommand
from chaos.core.fact import ANY_TEXT, LINES, FactRef, HostFact, Known, host_fact, lines
from chaos.core.field_types import Model
from chaos.engine.observations import ClusterObservations, ExperimentNeeds, HostObservations, Need
from chaos.engine.preflight.check import (
    LINUX,
    WINDOWS,
    Check,
    Diagnosis,
    Severity,
    check,
    experiment_refusal,
    host_check,
    note,
    ok,
    refusal,
    warning,
)

__all__ = [
    "ANY_TEXT",
    "LINES",
    "LINUX",
    "WINDOWS",
    "Check",
    "ClusterObservations",
    "Diagnosis",
    "ExperimentNeeds",
    "FactRef",
    "HostCommand",
    "HostFact",
    "HostObservations",
    "Known",
    "Model",
    "Need",
    "Severity",
    "check",
    "experiment_refusal",
    "host_check",
    "host_fact",
    "lines",
    "note",
    "ok",
    "refusal",
    "warning",
]
