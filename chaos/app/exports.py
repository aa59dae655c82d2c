"""The types that ``chaos.api`` exports, and the modules they come from."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "chaos.app.confirmation": "ClusterInfo Confirm",
    "chaos.app.judge": "JudgedRun",
    "chaos.app.load": "LoadedExperiment",
    "chaos.app.run_files": "Run",
    "chaos.reports.comparison.comparison": "Comparison ExpectationRow",
    "chaos.reports.comparison.side": "Expected NotComparableError Side",
    "chaos.reports.comparison.stalls": "Stall",
    "chaos.rehearsal.forecast.document": "Rehearsal Runs",
    "chaos.rehearsal.forecast.finding": "FindingKind",
    "chaos.rehearsal.forecast.ranking": "ScorePart VictimRank",
    "chaos.rehearsal.forecast.summary": "Risk",
    "chaos.core.action": "FactCheck FailsafeTimer ProofStatus Undo UndoStep",
    "chaos.core.command": (
        "DrainRules HostCommand KubeCommand PodSelector PodVerb PodsCommand PowerCommand PowerVerb TaintsCommand"
    ),
    "chaos.core.currency_log": "CurrencyLog",
    "chaos.core.document": "Metadata",
    "chaos.core.driver": "PowerSettings",
    "chaos.core.entry_log": "EntryLog",
    "chaos.core.errors": (
        "Aborted AnotherMachine BadInput Exit NodefallError PluginError Problem Refused RequirementUnmet UndoPending "
        "Unreachable Unsupported UsageError"
    ),
    "chaos.core.event_log": "EventLog",
    "chaos.core.experiment": "Expectation Experiment Recovery Spec Step TargetSpec Until Workload",
    "chaos.core.field_types": "Secret",
    "chaos.core.indexes": "PodHistories",
    "chaos.core.inventory": (
        "Cluster Connection ControllerManager Defaults Host Inventory Limits NodeTaint PriorityGrace Prometheus "
        "ProtectedNodes Rule TimeSource"
    ),
    "chaos.core.plan": "Plan PlannedStep PlannedTarget",
    "chaos.core.ports": "Progress RunWatcher",
    "chaos.core.probes": "Probe Query ServiceReference",
    "chaos.core.recording": "ActionRecord BlindWindow Currency ProbeResult QueryResult Series",
    "chaos.core.result": "ForeignFault Phases RunResult StepResult UndoResult",
    "chaos.core.timeline": "Entry Fact ProbeSample QuerySample Scrape Timeline",
    "chaos.core.value_limit": "ValueLimit",
    "chaos.core.verdict": "Status Verdict",
    "chaos.verdicts.outcome.acceptance": "Row Standing",
    "chaos.verdicts.outcome.measure": "Measure Outcome",
    "chaos.verdicts.outcome.prediction": "Band ExpectationBand",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
# Those whose own names say too little outside their module.
_RENAMED = {"LabSettings": ("chaos.core.inventory", "Lab"), "MeasureKind": ("chaos.verdicts.outcome.measure", "Kind")}
EXPORTS = (*_MODULES, *_RENAMED, "kube")


def import_export(name: str) -> Any:
    """The export ``name``. Raises KeyError for a name that is not exported."""
    if name == "kube":
        return import_module("chaos.core.kube")
    if name in _RENAMED:
        module, own = _RENAMED[name]
        return getattr(import_module(module), own)
    return getattr(import_module(_MODULES[name]), name)
