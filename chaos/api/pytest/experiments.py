"""Experiments as items of pytest, and runs with the options of its session, one at a time on a cluster."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.api import load, run
from chaos.api.pytest import RUNNER
from chaos.api.pytest.session import REFUSED, VERDICT
from chaos.app.run.results import Run
from chaos.core.errors import BadInput, Exit, NodefallError, RequirementUnmet, UsageError
from chaos.core.inventory import Inventory
from chaos.core.redaction import redact
from chaos.core.store.process_lock import blocking_lock
from chaos.core.text import is_ci, on_node, without_commands
from chaos.core.verdict import Status, Verdict
from chaos.documents.inventory import as_inventory, load_inventory
from chaos.engine.load import LoadedExperiment
from chaos.reports.run.outline import SIMULATED
from chaos.reports.run.summary import summary

if TYPE_CHECKING:
    from chaos.core.plan import Plan

_log = logging.getLogger("nodefall")
_API_VERSION = re.compile(r"""^["']?apiVersion["']?\s*:\s*["']?nodefall\.dev/""", re.MULTILINE)
_NOT_RUN = re.compile(r"""^["']?kind["']?\s*:\s*["']?(Inventory|Statements)\b""", re.MULTILINE)
_MARK = re.compile(r"[\w./+\[\]\\-]+")  # a single name for -m


def is_experiment(path: Path) -> bool:
    """Whether a file is a nodefall document that can be run. It is validated when it is collected."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return bool(_API_VERSION.search(text)) and not _NOT_RUN.search(text)


class ExperimentFile(pytest.File):
    """A file with one experiment."""

    def collect(self) -> Iterator[ExperimentItem]:
        """Load the experiment. Raises CollectError with all problems."""
        try:
            loaded = load(self.path)
        except NodefallError as error:
            raise self.CollectError(_describe(error)) from error
        item: ExperimentItem = ExperimentItem.from_parent(self, name=loaded.experiment.metadata.name, loaded=loaded)
        yield item


class ExperimentItem(pytest.Item):
    """An experiment. It runs in the set-up phase: an inconclusive run is an error, only a violated one a failure."""

    def __init__(self, *, loaded: LoadedExperiment, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]  # passed by pytest
        self._loaded = loaded
        self._run: Run | None = None
        self.add_marker("nodefall")
        metadata = loaded.experiment.metadata
        for key, value in (metadata.labels | metadata.annotations).items():
            if _MARK.fullmatch(name := f"{key}/{value}"):
                _declare(self.config, f"{name}: of experiments")
                self.add_marker(name)
        inventory = self.config.stash[RUNNER].inventory
        if inventory and inventory.cluster:
            self.add_marker(pytest.mark.xdist_group("nodefall"))  # with --dist loadgroup, no process waits for another

    def setup(self) -> None:
        """Run the experiment; skip if the cluster does not meet its requirements."""
        done = _run_or_error(self.config.stash[RUNNER], self._loaded)
        # Outside the handler of the error: pytest prints an exception and the one that was being handled, one by one.
        if isinstance(done, RequirementUnmet):
            self.user_properties.append((VERDICT, REFUSED))
            pytest.skip(done.message)
        if isinstance(done, NodefallError):
            pytest.fail(_describe(done), pytrace=False)
        self._run = done
        self.user_properties += [
            ("nodefall.report", str(done.report)),
            (VERDICT, str(done.result.status)),
            ("nodefall.cluster", "simulated" if done.result.simulated else done.result.cluster_uid),
        ]
        if done.result.exit_code not in {Exit.HELD, Exit.VIOLATED}:
            pytest.fail(_report(done), pytrace=False)

    def runtest(self) -> None:
        """Fail with the summary if the verdict is violated."""
        if self._run and self._run.result.exit_code == Exit.VIOLATED:
            pytest.fail(_report(self._run), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The file of the experiment."""
        return self.path, 0, self.name


def _run_or_error(runner: Runner, loaded: LoadedExperiment) -> Run | NodefallError:
    try:
        return runner(loaded)
    except NodefallError as error:
        return error


def _declare(config: pytest.Config, line: str) -> None:
    """Register a marker, for --strict-markers."""
    if line not in config.getini("markers"):
        config.addinivalue_line("markers", line)


def _report(run: Run) -> str:
    """The summary, beginning with the headline, which pytest shows in one line.

    The session ends with the sentence about simulated clusters: it is not repeated for each failed experiment.
    """
    return _for_log(summary(run.result, report=str(run.report)).removesuffix(f"{SIMULATED}\n"))


def _describe(error: NodefallError) -> str:
    return _for_log(f"{error.message}\nhint: {error.hint}" if error.hint else error.message)


def _for_log(text: str) -> str:
    """Without secrets and, in a CI job, without commands to the service."""
    return without_commands(redact(text)) if is_ci(os.environ) else redact(text)


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
