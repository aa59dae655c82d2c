"""Python interface of nodefall, which the command line and the pytest plug-in use, too.

::

    from chaos.api import Lab, run

    with Lab(workers=5) as lab:
        done = run("experiments/graceful-poweroff.yaml", lab.inventory)
    assert done.result.status == "held", done.result.headline

Every type that these functions accept, return or raise is exported here, and imported on first use: importing this
module is fast. Types of Kubernetes objects are in :data:`kube`. All errors are :class:`NodefallError`, with a
``message`` and a ``hint``; :class:`Refused` means that there was no side effect.
"""

# ruff: noqa: PLC0415 - slow imports are deferred until they are needed
from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from chaos.rehearsal import compare, rehearse

if TYPE_CHECKING:
    # isort: off
    # fmt: off
    from chaos.app.run.experiment import ClusterInfo, Confirm
    from chaos.app.run.results import JudgedRun
    from chaos.app.labs import RunningLab
    from chaos.engine.load import LoadedExperiment
    from chaos.app.run.results import Run
    from chaos.reports.comparison.comparison import Comparison, ExpectationRow
    from chaos.reports.comparison.side import Expected, NotComparableError, Side, Stall
    from chaos.rehearsal.forecast.document import Rehearsal, Runs
    from chaos.rehearsal.forecast.sample import FindingKind
    from chaos.rehearsal.forecast.ranking import ScorePart, VictimRank
    from chaos.rehearsal.forecast.ranking import Risk
    from chaos.core import kube
    from chaos.core.action import FactCheck, FailsafeTimer, ProofStatus, Undo, UndoStep
    from chaos.core.command import (
        DrainRules, HostCommand, KubeCommand, PodsCommand, PodSelector, PodVerb, PowerCommand, PowerVerb,
        TaintsCommand
    )
    from chaos.core.currency_log import CurrencyLog
    from chaos.core.field_types import Metadata
    from chaos.core.driver import PowerSettings
    from chaos.core.logs import EntryLog
    from chaos.core.errors import (
        Aborted, AnotherMachine, BadInput, Exit, NodefallError, PluginError, Problem, Refused, RequirementUnmet,
        UndoPending, Unreachable, Unsupported, UsageError
    )
    from chaos.core.logs import EventLog
    from chaos.core.experiment import (
        Expectation, Experiment, KnownDeviation, Recovery, Spec, Step, Until, Workload
    )
    from chaos.core.target_spec import LabelRequirement, TargetPods, TargetSpec
    from chaos.core.field_types import Secret
    from chaos.core.indexes import PodHistories
    from chaos.core.inventory import (
        Cluster, Connection, ControllerManager, Defaults, Host, Inventory, Limits, ProtectedNodes, TimeSource
    )
    from chaos.core.lab_settings import Lab as LabSettings
    from chaos.core.lab_settings import NodeTaint, PriorityGrace, Rule
    from chaos.core.prometheus import Prometheus
    from chaos.core.plan import Plan, PlannedStep, PlannedTarget
    from chaos.core.ports import Progress, RunWatcher
    from chaos.core.probes import Probe, Query, ServiceReference
    from chaos.core.recording import ActionRecord, BlindWindow, Currency, ProbeResult, QueryResult, Series
    from chaos.core.result import ForeignFault, Phases, RunResult, StepResult, UndoResult, Unnoticed
    from chaos.core.timeline import Entry, Fact, ProbeSample, QuerySample, Scrape, Timeline
    from chaos.core.verdict import ValueLimit
    from chaos.core.verdict import Known, Status, Verdict
    from chaos.verdicts.outcome.acceptance import Row, Standing
    from chaos.verdicts.outcome.prediction import Band
    from chaos.verdicts.outcome.measure import Kind as MeasureKind
    from chaos.verdicts.outcome.measure import Measure, Outcome
    from chaos.verdicts.outcome.prediction import ExpectationBand
    # fmt: on
    # isort: on

# fmt: off
__all__ = [
    "Aborted", "ActionRecord", "AnotherMachine", "BadInput", "Band", "BlindWindow", "Cluster", "ClusterInfo",
    "Comparison", "Confirm", "Connection", "ControllerManager", "Currency", "CurrencyLog", "Defaults", "DrainRules",
    "Entry", "EntryLog",
    "EventLog", "Exit", "Expectation", "ExpectationBand", "ExpectationRow", "Expected", "Experiment", "Fact",
    "FactCheck", "FailsafeTimer", "FindingKind", "ForeignFault", "Host", "HostCommand", "Inventory", "JudgedRun",
    "Known", "KnownDeviation", "KubeCommand", "Lab", "LabSettings", "LabelRequirement", "Limits", "LoadedExperiment",
    "Measure", "MeasureKind", "Metadata", "NodeTaint", "NodefallError", "NotComparableError", "Outcome", "Phases",
    "Plan", "PlannedStep", "PlannedTarget",
    "PluginError", "PodHistories", "PodSelector", "PodVerb", "PodsCommand", "PowerCommand", "PowerSettings",
    "PowerVerb", "PriorityGrace", "Probe", "ProbeResult", "ProbeSample", "Problem", "Progress", "Prometheus",
    "ProofStatus", "ProtectedNodes", "Query", "QueryResult", "QuerySample", "Recovery", "Refused", "Rehearsal",
    "RequirementUnmet", "Risk", "Row", "Rule", "Run", "RunResult", "RunWatcher", "Runs", "ScorePart", "Scrape",
    "Secret", "Series", "ServiceReference", "Side", "Spec", "Stall", "Standing", "Status", "Step", "StepResult",
    "TaintsCommand", "TargetPods", "TargetSpec", "TimeSource", "Timeline", "Undo", "UndoPending", "UndoResult",
    "UndoStep", "Unnoticed", "Unreachable", "Unsupported", "Until", "UsageError", "ValueLimit", "Verdict",
    "VictimRank", "Workload", "compare", "judge", "kube", "load", "plan", "rehearse", "run",
]
# fmt: on


@cache
def _exports() -> dict[str, tuple[str, str]]:
    """Module and name of each exported type: what this module imports for type checkers only."""
    import ast

    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    found = {each.asname or each.name: (node.module or "", each.name) for node in imports for each in node.names}
    return {name: found[name] for name in found.keys() & set(__all__)}


def __getattr__(name: str) -> Any:
    """Import an exported type on first use. Raises AttributeError for other names."""
    if name not in __all__ or name not in _exports():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import chaos.app  # noqa: F401 - it hands in the drivers that inventories name

    module, own = _exports()[name]
    return import_module(f"{module}.{own}") if own == "kube" else getattr(import_module(module), own)


def __dir__() -> list[str]:
    return __all__


def load(experiment: Path | str) -> LoadedExperiment:
    """Load and validate an experiment and the manifests of its workload. Raises BadInput with all problems."""
    from chaos.engine.load import load

    return load(Path(experiment))


def plan(
    experiment: LoadedExperiment | Path | str,
    inventory: Inventory | Path | str,
    *,
    seed: int | None = None,
    reports: Path | str = "reports",
    anyway: bool = False,
) -> Plan:
    """Select targets, collect facts and plan exactly what a run would send. No side effects.

    ``seed`` selects the same targets again. Runs below ``reports`` with a pending undo are a refusal. ``anyway``
    overrides refusals of preflight that are not final; the run is then inconclusive at best. Raises BadInput, and
    Refused if the experiment cannot be run.
    """
    from chaos.app.run.experiment import new_run_id, plan
    from chaos.app.wiring.connect import connect_cluster
    from chaos.documents.inventory import as_inventory
    from chaos.engine.connection import refuse_before_side_effects

    loaded, loaded_inventory = _as_loaded(experiment), as_inventory(inventory)
    with ExitStack() as stack:
        stack.enter_context(refuse_before_side_effects())
        connection = stack.enter_context(connect_cluster(loaded_inventory, seed=seed))
        stack.enter_context(connection.clock.participant())
        run_id = new_run_id(loaded)
        return plan(loaded, connection, seed, run_id, reports=Path(reports), anyway=anyway)[0]


def run(  # noqa: PLR0913 - one per option
    experiment: LoadedExperiment | Plan | Path | str,
    inventory: Inventory | Path | str,
    *,
    seed: int | None = None,
    reports: Path | str = "reports",
    agree: Confirm | bool = False,
    progress: Progress | None = None,
    record: Path | None = None,
    anyway: bool = False,
    watcher: RunWatcher | None = None,
    series: str = "",
) -> Run:
    """Plan, inject, observe, roll back, judge and report.

    A :class:`Plan` is executed unless the cluster has changed. ``agree`` confirms that machines of a real cluster go
    down; a function is called with the plan, and raises Refused to cancel. ``progress`` receives phases, steps and
    verdicts, ``watcher`` every entry and judgement. ``record``: a copy of the recording. ``anyway``: see :func:`plan`.
    ``series``: "2 of 5" for the second run of a series of five, which ``junit.xml`` names in each case.

    In the main thread, the first SIGINT or SIGTERM stops the run, which undoes and returns that ``exit_code``. Raises
    BadInput; Refused and other NodefallErrors before any side effect; UndoPending if the undo did not finish. A run
    that is refused has a directory with its reports, too.
    """
    from chaos.app.run.experiment import RunRequest, always_confirm, connect_run, refuse_unconfirmed, run
    from chaos.core.plan import Plan
    from chaos.documents.inventory import as_inventory
    from chaos.engine.progress import NullProgress, Unwatched

    saved = experiment if isinstance(experiment, Plan) else None
    loaded = load(experiment.source) if isinstance(experiment, Plan) else _as_loaded(experiment)
    loaded_inventory = as_inventory(inventory)
    confirm = (always_confirm if agree else refuse_unconfirmed) if isinstance(agree, bool) else agree
    seed = saved.seed if saved else seed
    request = RunRequest(loaded, Path(reports), confirm, seed, record, saved, anyway, series=series)
    progress = progress or NullProgress()
    with connect_run(request, loaded_inventory, progress) as connection:
        return run(request, connection, progress, watcher=watcher or Unwatched())


def judge(
    recording: Path | str,
    experiment: LoadedExperiment | Path | str | None = None,
    *,
    bind: Mapping[str, Sequence[str] | str] | None = None,
    steps: Mapping[str, str] | None = None,
    facts: Mapping[str, str] | None = None,
) -> JudgedRun:
    """Judge an experiment, by default that of the run, on a recording or a run directory, without a cluster.

    ``bind``: nodes by target, or one, and the namespace as ``workload``; ``steps``: the recorded action by step;
    ``facts``: values that replace recorded ones. Raises BadInput, and UsageError for unknown names.
    """
    from chaos.app.run.results import JudgeOverrides, judge_recording, stored_experiment

    nodes = {name: (found,) if isinstance(found, str) else found for name, found in (bind or {}).items()}
    overrides = JudgeOverrides(nodes, steps or {}, facts or {})
    experiment = experiment or stored_experiment(Path(recording))
    return judge_recording(Path(recording), _as_loaded(experiment), overrides)


class Lab:
    """A simulated cluster, stopped at the end of a ``with`` block or by :meth:`stop`.

    ``inventory``: one with ``lab``, as ``hosts/lab.yaml``; ``settings`` are keys of ``lab``, as ``workers=5`` or
    ``breakages=["unknown-late"]``. Its time advances only while all participants sleep, as runs do; with ``speed``,
    it runs freely at that many seconds per second, for kubectl and other clients. Raises BadInput, UsageError.
    """

    def __init__(
        self,
        inventory: Inventory | Path | str | None = None,
        *,
        seed: int | None = None,
        speed: float | None = None,
        **settings: Any,
    ) -> None:
        from chaos.documents.inventory import lab_inventory

        self._requested_inventory = lab_inventory(inventory, settings)
        self._seed, self._speed = seed, speed
        self._stack = ExitStack()
        self._started_lab: RunningLab | None = None

    def start(self) -> Self:
        """Start the lab and wait until it is ready. Raises NodefallError."""
        from chaos.app.labs import LabServeOptions, start_lab

        if self._started_lab is None and self._requested_inventory.lab:
            options = LabServeOptions(self._requested_inventory.metadata.name, self._speed)
            self._started_lab = self._stack.enter_context(start_lab(self._requested_inventory.lab, self._seed, options))
        return self

    def stop(self) -> None:
        """Stop the lab. Idempotent."""
        self._started_lab = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def inventory(self) -> Inventory:
        """The inventory of the lab's cluster and hosts. Raises UsageError before :meth:`start`."""
        from chaos.app.wiring.connect import with_lab_cluster

        return with_lab_cluster(self._requested_inventory, self._running_lab.inventory)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator. Raises UsageError before :meth:`start`."""
        return Path(self._running_lab.facts["kubeconfig"])

    @property
    def _running_lab(self) -> RunningLab:
        if self._started_lab is None:
            from chaos.core.errors import UsageError

            raise UsageError("the lab is not running", hint="use with Lab() as lab: ..., or call lab.start()")
        return self._started_lab


def _as_loaded(experiment: LoadedExperiment | Path | str) -> LoadedExperiment:
    return load(experiment) if isinstance(experiment, Path | str) else experiment
