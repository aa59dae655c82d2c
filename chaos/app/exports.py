"""The types that ``chaos.api`` exports, and the modules they come from."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "chaos.app.confirmation": "ClusterInfo Confirm",
    "chaos.app.judge": "JudgedRun",
    "chaos.app.load": "LoadedExperiment",
    "chaos.app.run_files": "Run",
    "chaos.compare.comparison": "Comparison ExpectationRow",
    "chaos.compare.side": "Expected NotComparableError Side",
    "chaos.compare.stalls": "Stall",
    "chaos.forecast.document": "Rehearsal Runs",
    "chaos.forecast.finding": "FindingKind",
    "chaos.forecast.ranking": "ScorePart VictimRank",
    "chaos.forecast.summary": "Risk",
    "chaos.model.action": "FactCheck FailsafeTimer ProofStatus Undo UndoStep",
    "chaos.model.command": (
        "DrainRules HostCommand KubeCommand PodSelector PodVerb PodsCommand PowerCommand PowerVerb TaintsCommand"
    ),
    "chaos.model.currency_log": "CurrencyLog",
    "chaos.model.document": "Metadata",
    "chaos.model.driver": "PowerSettings",
    "chaos.model.entry_log": "EntryLog",
    "chaos.model.errors": (
        "Aborted AnotherMachine BadInput Exit NodefallError PluginError Problem Refused RequirementUnmet UndoPending "
        "Unreachable Unsupported UsageError"
    ),
    "chaos.model.event_log": "EventLog",
    "chaos.model.experiment": "Expectation Experiment Recovery Spec Step TargetSpec Until Workload",
    "chaos.model.field_types": "Secret",
    "chaos.model.indexes": "PodHistories",
    "chaos.model.inventory": (
        "Cluster Connection ControllerManager Defaults Host Inventory Limits NodeTaint PriorityGrace Prometheus "
        "ProtectedNodes Rule TimeSource"
    ),
    "chaos.model.plan": "Plan PlannedStep PlannedTarget",
    "chaos.model.ports": "Progress RunWatcher",
    "chaos.model.probes": "Probe Query ServiceReference",
    "chaos.model.recording": "ActionRecord BlindWindow Currency ProbeResult QueryResult Series",
    "chaos.model.result": "ForeignFault Phases RunResult StepResult UndoResult",
    "chaos.model.timeline": "Entry Fact ProbeSample QuerySample Scrape Timeline",
    "chaos.model.value_limit": "ValueLimit",
    "chaos.model.verdict": "Status Verdict",
    "chaos.outcome.acceptance": "Row Standing",
    "chaos.outcome.bands": "Band",
    "chaos.outcome.measure": "Measure Outcome",
    "chaos.outcome.prediction": "ExpectationBand",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
# Those whose own names say too little outside their module.
_RENAMED = {"LabSettings": ("chaos.model.inventory", "Lab"), "MeasureKind": ("chaos.outcome.measure", "Kind")}
EXPORTS = (*_MODULES, *_RENAMED, "kube")


def import_export(name: str) -> Any:
    """The export ``name``. Raises KeyError for a name that is not exported."""
    if name == "kube":
        return import_module("chaos.model.kube")
    if name in _RENAMED:
        module, own = _RENAMED[name]
        return getattr(import_module(module), own)
    return getattr(import_module(_MODULES[name]), name)
