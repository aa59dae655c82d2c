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

# ruff: noqa: PLC0414, PLC0415 - "as" exports a name to type checkers; slow imports are deferred until they are needed
from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from chaos.rehearsal.api import compare as compare
from chaos.rehearsal.api import rehearse as rehearse

if TYPE_CHECKING:
    from chaos.app.exports import *  # noqa: F403 - what is exported is named there
    from chaos.app.exports import Confirm, Inventory, JudgedRun, LoadedExperiment, Plan, Progress, Run, RunWatcher
    from chaos.app.labs import RunningLab

_FUNCTIONS = ("Lab", "compare", "judge", "load", "plan", "rehearse", "run")


def __getattr__(name: str) -> Any:
    """Import an exported type on first use; ``__all__`` names them. Raises AttributeError for other names."""
    from chaos.app.exports import import_export

    if name == "__all__":
        return __dir__()
    try:
        return import_export(name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    from chaos.app.exports import EXPORTS

    return sorted((*_FUNCTIONS, *EXPORTS))


def load(experiment: Path | str) -> LoadedExperiment:
    """Load and validate an experiment and the manifests of its workload. Raises BadInput with all problems."""
    from chaos.app.load import load
    from chaos.app.registry import load_registry

    return load(Path(experiment), load_registry())


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
    from chaos.app.connect import connect_cluster, refuse_before_side_effects
    from chaos.app.inventories import as_inventory
    from chaos.app.plan import new_run_id, plan
    from chaos.app.registry import load_registry

    loaded, loaded_inventory = _as_loaded(experiment), as_inventory(inventory)
    with ExitStack() as stack:
        stack.enter_context(refuse_before_side_effects())
        connection = stack.enter_context(connect_cluster(loaded_inventory, seed=seed))
        stack.enter_context(connection.clock.participant())
        run_id = new_run_id(loaded)
        return plan(loaded, connection, load_registry(), seed, run_id, reports=Path(reports), anyway=anyway)[0]


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
) -> Run:
    """Plan, inject, observe, roll back, judge and report.

    A :class:`Plan` is executed unless the cluster has changed. ``agree`` confirms that machines of a real cluster go
    down; a function is called with the plan, and raises Refused to cancel. ``progress`` receives phases, steps and
    verdicts, ``watcher`` every entry and judgement. ``record``: a copy of the recording. ``anyway``: see :func:`plan`.

    In the main thread, the first SIGINT or SIGTERM stops the run, which undoes and returns that ``exit_code``. Raises
    BadInput; Refused and other NodefallErrors before any side effect; UndoPending if the undo did not finish.
    """
    from chaos.app.confirmation import always_confirm, refuse_unconfirmed
    from chaos.app.connect import connect_cluster, refuse_before_side_effects
    from chaos.app.inventories import as_inventory
    from chaos.app.null_progress import NullProgress, Unwatched
    from chaos.app.registry import load_registry
    from chaos.app.run import RunHooks, RunRequest, run
    from chaos.core.plan import Plan

    saved = experiment if isinstance(experiment, Plan) else None
    loaded = load(experiment.source) if isinstance(experiment, Plan) else _as_loaded(experiment)
    loaded_inventory = as_inventory(inventory)
    confirm = (always_confirm if agree else refuse_unconfirmed) if isinstance(agree, bool) else agree
    seed = saved.seed if saved else seed
    hooks = RunHooks(watcher=watcher or Unwatched())
    request = RunRequest(loaded, load_registry(), Path(reports), confirm, seed, record, saved, anyway, hooks)
    with ExitStack() as stack:
        with refuse_before_side_effects():
            connection = stack.enter_context(connect_cluster(loaded_inventory, seed=seed))
        return run(request, connection, progress or NullProgress())


def judge(
    recording: Path | str,
    experiment: LoadedExperiment | Path | str,
    *,
    bind: Mapping[str, Sequence[str]] | None = None,
    steps: Mapping[str, str] | None = None,
    facts: Mapping[str, str] | None = None,
) -> JudgedRun:
    """Judge an experiment on a recording or a run directory, without a cluster.

    ``bind``: nodes by target, and the namespace as ``workload``; ``steps``: the recorded action by step; ``facts``:
    values that replace recorded ones. Raises BadInput, and UsageError for unknown names.
    """
    from chaos.app.judge import JudgeOverrides, judge_recording
    from chaos.app.registry import load_registry

    overrides = JudgeOverrides(bind or {}, steps or {}, facts or {})
    return judge_recording(Path(recording), _as_loaded(experiment), overrides, load_registry())


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
        from chaos.app.inventories import lab_inventory

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
        from chaos.app.connect import with_lab_cluster

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
