"""Runs of a pytest session: with its options, one at a time on a cluster."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.api import run
from chaos.app.wiring.inventories import as_inventory
from chaos.core.errors import BadInput, Exit, UsageError
from chaos.core.inventory import Inventory
from chaos.core.store.process_lock import blocking_lock
from chaos.core.text import on_node
from chaos.core.verdict import Status, Verdict
from chaos.documents.inventory import load_inventory

if TYPE_CHECKING:
    from chaos.app.run.results import Run
    from chaos.core.plan import Plan
    from chaos.engine.load import LoadedExperiment

_log = logging.getLogger("nodefall")


@dataclass(frozen=True)
class Runner:
    """Runs experiments. ``inventory``: that of the option, or None."""

    inventory: Inventory | None
    reports: Path
    seed: int | None
    agree: bool

    @property
    def description(self) -> str:
        """The cluster that experiments run on, and whether it is simulated."""
        if self.inventory is None:
            return "no inventory"
        return f"experiments run on {self.inventory.metadata.name}{', a simulated cluster' if self.simulated else ''}"

    @property
    def simulated(self) -> bool:
        """Whether the inventory describes a simulated cluster."""
        cluster = self.inventory.cluster if self.inventory else None
        return self.inventory is not None and (cluster is None or cluster.simulated)

    def __call__(
        self, experiment: LoadedExperiment | Plan | Path | str, inventory: Inventory | Path | str | None = None
    ) -> Run:
        """Run an experiment. Raises NodefallError, and KeyboardInterrupt if a signal stopped the run."""
        selected = inventory or self.inventory
        if selected is None:
            raise UsageError("no inventory", hint="pass one, or give --nodefall-inventory FILE")
        loaded = as_inventory(selected)
        with _turn(loaded):
            done = run(
                experiment, loaded, seed=self.seed, reports=self.reports, agree=self.agree, progress=LoggingProgress()
            )
        if done.result.exit_code in {Exit.SIGINT, Exit.SIGTERM}:
            raise KeyboardInterrupt(done.result.headline)
        return done


def _turn(inventory: Inventory) -> AbstractContextManager[None]:
    """Run one at a time in the processes of ``pytest -n``; not needed for labs, of which each run has one."""
    cluster = inventory.cluster
    return blocking_lock(f"{cluster.kubeconfig} {cluster.context or ''}") if cluster else nullcontext()


def make_runner(config: pytest.Config, path: Path | None) -> Runner:
    """A runner with the options of the session. Raises pytest.UsageError for an invalid inventory."""
    try:
        inventory = load_inventory(path) if path else None
    except BadInput as error:
        raise pytest.UsageError(error.message) from error
    reports = Path(config.invocation_params.dir, config.getoption("nodefall_reports"))
    return Runner(inventory, reports, config.getoption("nodefall_seed"), config.getoption("nodefall_yes"))


class LoggingProgress:
    """Logs progress, which ``--log-cli-level=INFO`` shows; implements ``chaos.core.ports.Progress``."""

    def phase(self, name: str) -> None:
        """Log the phase."""
        _log.info("phase: %s", name)

    def step(self, name: str, node: str, what: str) -> None:
        """Log the step."""
        _log.info("step %s: %s", on_node(name, node), what)

    def verdict(self, verdict: Verdict) -> None:
        """Log the verdict unless it is pending."""
        if verdict.status is not Status.PENDING:
            _log.info("%s: %s: %s", verdict.status, verdict.name, verdict.because)

    def note(self, text: str) -> None:
        """Log the text."""
        _log.info("%s", text)

    def tick(self, now: float) -> None:
        """Discard: log records have timestamps."""
