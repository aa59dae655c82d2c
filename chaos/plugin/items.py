"""The file of an experiment is a collector of one item, whose outcome is the verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.api import load
from chaos.app.run.results import Run
from chaos.core.errors import Exit, NodefallError, RequirementUnmet
from chaos.core.redaction import redact
from chaos.engine.load import LoadedExperiment
from chaos.plugin.stash import RUNNER
from chaos.reports.run.outline import SIMULATED
from chaos.reports.run.summary import summary

if TYPE_CHECKING:
    from chaos.plugin.runner import Runner

_API_VERSION = re.compile(r"""^["']?apiVersion["']?\s*:\s*["']?nodefall\.dev/""", re.MULTILINE)
_INVENTORY = re.compile(r"""^["']?kind["']?\s*:\s*["']?Inventory\b""", re.MULTILINE)
_MARK = re.compile(r"[\w./+\[\]\\-]+")  # a single name for -m


def is_experiment(path: Path) -> bool:
    """Whether a file is a nodefall document other than an inventory. It is validated when it is collected."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return bool(_API_VERSION.search(text)) and not _INVENTORY.search(text)


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
            pytest.skip(done.message)
        if isinstance(done, NodefallError):
            pytest.fail(_describe(done), pytrace=False)
        self._run = done
        self.user_properties += [
            ("nodefall.report", str(done.report)),
            ("nodefall.verdict", str(done.result.status)),
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
    return redact(summary(run.result, report=str(run.report)).removesuffix(f"{SIMULATED}\n"))


def _describe(error: NodefallError) -> str:
    return redact(f"{error.message}\nhint: {error.hint}" if error.hint else error.message)
