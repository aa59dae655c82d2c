"""Runs of one pytest session: with its options, and one at a time on a cluster."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.api import run
from chaos.load.inventory import load_inventory
from chaos.model.errors import BadInput, Exit, UsageError
from chaos.model.inventory import Inventory
from chaos.model.text import on_node
from chaos.model.verdict import Status, Verdict
from chaos.store.process_lock import blocking_lock

if TYPE_CHECKING:
    from chaos.app.load import LoadedExperiment
    from chaos.app.run import Run
    from chaos.model.plan import Plan

_LOG = logging.getLogger("nodefall")


@dataclass(frozen=True)
class Runner:
    """``inventory``: of the option, None without it."""

    inventory: Inventory | None
    reports: Path
    seed: int | None
    agree: bool

    @property
    def description(self) -> str:
        """The cluster that experiments run on; a simulated one is named as such."""
        if self.inventory is None:
            return "no inventory"
        return f"experiments run on {self.inventory.metadata.name}{', a simulated cluster' if self.simulated else ''}"

    @property
    def simulated(self) -> bool:
        """Whether the inventory is a lab's."""
        cluster = self.inventory.cluster if self.inventory else None
        return self.inventory is not None and (cluster is None or cluster.simulated)

    def __call__(
        self, experiment: LoadedExperiment | Plan | Path | str, inventory: Inventory | Path | str | None = None
    ) -> Run:
        """Run it. Raises NodefallError, and KeyboardInterrupt where a signal stopped it and all is undone."""
        asked = inventory or self.inventory
        if asked is None:
            raise UsageError("no inventory: say which cluster", hint="give one, or --nodefall-inventory FILE")
        where = asked if isinstance(asked, Inventory) else load_inventory(Path(asked))
        with _turn(where):
            done = run(
                experiment, where, seed=self.seed, reports=self.reports, agree=self.agree, progress=LoggingProgress()
            )
        if done.result.exit_code in {Exit.SIGINT, Exit.SIGTERM}:
            raise KeyboardInterrupt(done.result.headline)
        return done


def _turn(inventory: Inventory) -> AbstractContextManager[None]:
    """Of the processes of ``pytest -n``; an inventory with a lab starts one for each run."""
    cluster = inventory.cluster
    return blocking_lock(f"{cluster.kubeconfig} {cluster.context or ''}") if cluster else nullcontext()


def make_runner(config: pytest.Config, path: Path | None) -> Runner:
    """With the session's options. Raises pytest.UsageError for an inventory that is none."""
    try:
        inventory = load_inventory(path) if path else None
    except BadInput as error:
        raise pytest.UsageError(error.message) from error
    reports = Path(config.invocation_params.dir, config.getoption("nodefall_reports"))
    return Runner(inventory, reports, config.getoption("nodefall_seed"), config.getoption("nodefall_yes"))


class LoggingProgress:
    """Implements ``chaos.model.ports.Progress``: ``--log-cli-level=INFO`` shows it live."""

    def phase(self, name: str) -> None:
        """Begins."""
        _LOG.info("phase: %s", name)

    def step(self, name: str, node: str, what: str) -> None:
        """Is done."""
        _LOG.info("step %s: %s", on_node(name, node), what)

    def verdict(self, verdict: Verdict) -> None:
        """Only once there is one."""
        if verdict.status is not Status.PENDING:
            _LOG.info("%s: %s: %s", verdict.status, verdict.name, verdict.because)

    def note(self, text: str) -> None:
        """As it is."""
        _LOG.info("%s", text)

    def tick(self, now: float) -> None:
        """Nothing: the log has times of its own."""
