"""nodefall from Python: five names, which the command line and the pytest plug-in use too.

::

    from chaos.api import Lab, run

    with Lab(workers=5) as lab:
        done = run("experiments/graceful-poweroff.yaml", lab.inventory)
    assert done.result.status == "held", done.result.headline

What goes wrong is a :class:`chaos.model.errors.NodefallError`; its ``message`` says what, its ``hint`` what to do.
:class:`~chaos.model.errors.Refused` means that nothing was touched.
"""

# ruff: noqa: PLC0415 - importing this costs next to nothing; what is slow is imported by whom needs it
from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from chaos.app.confirmation import Confirm
    from chaos.app.judge import JudgedRun
    from chaos.app.labs import RunningLab
    from chaos.app.load import LoadedExperiment
    from chaos.app.run import Run
    from chaos.model.inventory import Inventory
    from chaos.model.plan import Plan
    from chaos.model.ports import Progress

__all__ = ["Lab", "judge", "load", "plan", "run"]


def load(experiment: Path | str) -> LoadedExperiment:
    """An experiment's file and its workload's manifests, checked. Raises BadInput with all that is wrong."""
    from chaos.app.load import load
    from chaos.app.registry import load_registry

    return load(Path(experiment), load_registry())


def plan(
    experiment: LoadedExperiment | Path | str,
    inventory: Inventory | Path | str,
    *,
    seed: int | None = None,
    anyway: bool = False,
) -> Plan:
    """Choose targets, gather facts and say exactly what a run would send. Touches nothing.

    ``seed``: choose the same targets again. ``anyway``: set aside what preflight refuses and is not final; a run then
    is inconclusive at best. Raises BadInput, and Refused with the reason why it cannot be run.
    """
    from chaos.app.connect import connect_cluster, refuse_before_side_effects
    from chaos.app.inventories import as_inventory
    from chaos.app.plan import new_run_id, plan
    from chaos.app.registry import load_registry

    loaded, where = _as_loaded(experiment), as_inventory(inventory)
    with refuse_before_side_effects(), connect_cluster(where, seed=seed) as opened, opened.clock.participant():
        return plan(loaded, opened, load_registry(), seed, new_run_id(loaded), anyway=anyway)[0]


def run(  # noqa: PLR0913 - one per wish
    experiment: LoadedExperiment | Plan | Path | str,
    inventory: Inventory | Path | str,
    *,
    seed: int | None = None,
    reports: Path | str = "reports",
    agree: Confirm | bool = False,
    progress: Progress | None = None,
    record: Path | None = None,
    anyway: bool = False,
) -> Run:
    """Plan, inject, observe, roll back, judge and report.

    ``experiment`` may be a :func:`plan`, which is then done as it is, if everything still is as it was. ``agree``: that
    machines of a real cluster go down; a function is shown the plan, and raises Refused. ``progress`` is told what
    happens; ``record`` is where the recording is copied to; ``anyway`` as for :func:`plan`.

    In the main thread the first SIGINT or SIGTERM stops the run and lets it undo what it did; then the result's
    ``exit_code`` says so, and nothing is raised. Raises BadInput; Refused and other NodefallErrors before anything was
    touched; UndoOwed where something could not be taken back.
    """
    from chaos.app.confirmation import always_confirm, refuse_unconfirmed
    from chaos.app.connect import connect_cluster, refuse_before_side_effects
    from chaos.app.inventories import as_inventory
    from chaos.app.null_progress import NullProgress
    from chaos.app.registry import load_registry
    from chaos.app.run import RunRequest, run
    from chaos.model.plan import Plan

    kept, loaded = (
        (experiment, load(experiment.source)) if isinstance(experiment, Plan) else (None, _as_loaded(experiment))
    )
    where = as_inventory(inventory)
    asked = (always_confirm if agree else refuse_unconfirmed) if isinstance(agree, bool) else agree
    request = RunRequest(
        loaded, load_registry(), Path(reports), asked, kept.seed if kept else seed, record, kept, anyway
    )
    with ExitStack() as stack:
        with refuse_before_side_effects():
            opened = stack.enter_context(connect_cluster(where, seed=request.seed))
        return run(request, opened, progress or NullProgress())


def judge(
    recording: Path | str,
    experiment: LoadedExperiment | Path | str,
    *,
    bind: Mapping[str, Sequence[str]] | None = None,
    steps: Mapping[str, str] | None = None,
    facts: Mapping[str, str] | None = None,
) -> JudgedRun:
    """Judge an experiment on a recording, or on a run's directory, without a cluster.

    ``bind``: nodes by target, and the namespace as ``workload``; ``steps``: the recorded action by step; ``facts``:
    values that replace recorded ones. Raises BadInput, and UsageError for names that nobody knows.
    """
    from chaos.app.judge import JudgeOverrides, judge_recording
    from chaos.app.registry import load_registry

    told = JudgeOverrides(bind or {}, steps or {}, facts or {})
    return judge_recording(Path(recording), _as_loaded(experiment), told, load_registry())


class Lab:
    """A simulated cluster, which ends with the ``with`` block or by :meth:`stop`.

    ``inventory``: one with ``lab``, as ``hosts/lab.yaml``; ``settings`` are its keys, as ``workers=5`` or
    ``breakages=["unknown-late"]``. Its time moves only while all who take part sleep on it, as runs do; with ``speed``
    it runs freely, so many seconds a second, for kubectl and other clients. Raises BadInput, UsageError.
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
        """Start it, and wait until it answers. Raises NodefallError."""
        from chaos.app.labs import LabServeOptions, start_lab

        if self._started_lab is None and self._requested_inventory.lab:
            serving = LabServeOptions(self._requested_inventory.metadata.name, self._speed)
            self._started_lab = self._stack.enter_context(start_lab(self._requested_inventory.lab, self._seed, serving))
        return self

    def stop(self) -> None:
        """End it; twice is harmless."""
        self._started_lab = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def inventory(self) -> Inventory:
        """How it is reached, like any cluster. Raises UsageError before :meth:`start`."""
        from chaos.app.connect import with_lab_cluster

        return with_lab_cluster(self._requested_inventory, self._running_lab.inventory)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's. Raises UsageError before :meth:`start`."""
        return Path(self._running_lab.facts["kubeconfig"])

    @property
    def _running_lab(self) -> RunningLab:
        if self._started_lab is None:
            from chaos.model.errors import UsageError

            raise UsageError("the lab is not up", hint="with Lab() as lab: ..., or lab.start()")
        return self._started_lab


def _as_loaded(experiment: LoadedExperiment | Path | str) -> LoadedExperiment:
    return load(experiment) if isinstance(experiment, Path | str) else experiment
