"""The types that ``chaos.api`` exports, named once: in the imports below.

Type checkers read them; at run time :func:`import_export` reads them too, and imports a name on its first use.
"""

# ruff: noqa: PLC0414 - "as" exports a name to type checkers
from __future__ import annotations

import ast
import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # isort: off
    # fmt: off
    from chaos.app.confirmation import ClusterInfo as ClusterInfo, Confirm as Confirm
    from chaos.app.judge import JudgedRun as JudgedRun
    from chaos.app.load import LoadedExperiment as LoadedExperiment
    from chaos.app.run_files import Run as Run
    from chaos.core import kube as kube
    from chaos.core.action import (
        FactCheck as FactCheck, FailsafeTimer as FailsafeTimer, ProofStatus as ProofStatus, Undo as Undo,
        UndoStep as UndoStep,
    )
    from chaos.core.command import (
        DrainRules as DrainRules, HostCommand as HostCommand, KubeCommand as KubeCommand, PodsCommand as PodsCommand,
        PodSelector as PodSelector, PodVerb as PodVerb, PowerCommand as PowerCommand, PowerVerb as PowerVerb,
        TaintsCommand as TaintsCommand,
    )
    from chaos.core.currency_log import CurrencyLog as CurrencyLog
    from chaos.core.document import Metadata as Metadata
    from chaos.core.driver import PowerSettings as PowerSettings
    from chaos.core.entry_log import EntryLog as EntryLog
    from chaos.core.errors import (
        Aborted as Aborted, AnotherMachine as AnotherMachine, BadInput as BadInput, Exit as Exit,
        NodefallError as NodefallError, PluginError as PluginError, Problem as Problem, Refused as Refused,
        RequirementUnmet as RequirementUnmet, UndoPending as UndoPending, Unreachable as Unreachable,
        Unsupported as Unsupported, UsageError as UsageError,
    )
    from chaos.core.event_log import EventLog as EventLog
    from chaos.core.experiment import (
        Expectation as Expectation, Experiment as Experiment, Recovery as Recovery, Spec as Spec, Step as Step,
        TargetSpec as TargetSpec, Until as Until, Workload as Workload,
    )
    from chaos.core.field_types import Secret as Secret
    from chaos.core.indexes import PodHistories as PodHistories
    from chaos.core.inventory import (
        Cluster as Cluster, Connection as Connection, ControllerManager as ControllerManager, Defaults as Defaults,
        Host as Host, Inventory as Inventory, Lab as _Lab, Limits as Limits, NodeTaint as NodeTaint,
        PriorityGrace as PriorityGrace, Prometheus as Prometheus, ProtectedNodes as ProtectedNodes, Rule as Rule,
        TimeSource as TimeSource,
    )
    from chaos.core.plan import Plan as Plan, PlannedStep as PlannedStep, PlannedTarget as PlannedTarget
    from chaos.core.ports import Progress as Progress, RunWatcher as RunWatcher
    from chaos.core.probes import Probe as Probe, Query as Query, ServiceReference as ServiceReference
    from chaos.core.recording import (
        ActionRecord as ActionRecord, BlindWindow as BlindWindow, Currency as Currency, ProbeResult as ProbeResult,
        QueryResult as QueryResult, Series as Series,
    )
    from chaos.core.result import (
        ForeignFault as ForeignFault, Phases as Phases, RunResult as RunResult, StepResult as StepResult,
        UndoResult as UndoResult,
    )
    from chaos.core.timeline import (
        Entry as Entry, Fact as Fact, ProbeSample as ProbeSample, QuerySample as QuerySample, Scrape as Scrape,
        Timeline as Timeline,
    )
    from chaos.core.value_limit import ValueLimit as ValueLimit
    from chaos.core.verdict import Status as Status, Verdict as Verdict
    from chaos.rehearsal.forecast.document import Rehearsal as Rehearsal, Runs as Runs
    from chaos.rehearsal.forecast.finding import FindingKind as FindingKind
    from chaos.rehearsal.forecast.ranking import ScorePart as ScorePart, VictimRank as VictimRank
    from chaos.rehearsal.forecast.summary import Risk as Risk
    from chaos.reports.comparison.comparison import Comparison as Comparison, ExpectationRow as ExpectationRow
    from chaos.reports.comparison.side import (
        Expected as Expected, NotComparableError as NotComparableError, Side as Side,
    )
    from chaos.reports.comparison.stalls import Stall as Stall
    from chaos.verdicts.outcome.acceptance import Row as Row, Standing as Standing
    from chaos.verdicts.outcome.measure import Measure as Measure, Kind as _Kind, Outcome as Outcome
    from chaos.verdicts.outcome.prediction import Band as Band, ExpectationBand as ExpectationBand
    # fmt: on
    # isort: on
    LabSettings = _Lab  # whose own names say too little outside their modules
    MeasureKind = _Kind


def _read_block() -> dict[str, tuple[str, str]]:
    """The module of each export, and its name there, from the source of the block above."""
    tree = ast.parse(inspect.getsource(sys.modules[__name__]))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found: dict[str, tuple[str, str]] = {}
    for node in block.body:
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                found |= {each.asname or each.name: (module, each.name) for each in names}
            case ast.Assign(targets=[ast.Name(new)], value=ast.Name(old)):
                found[new] = found.pop(old)
    return found


_ORIGINS = _read_block()
EXPORTS = tuple(_ORIGINS)


def import_export(name: str) -> Any:
    """The export ``name``. Raises KeyError for a name that is not exported."""
    module, own = _ORIGINS[name]
    return getattr(__import__(module, fromlist=[own]), own)  # which imports a module of that name, too
