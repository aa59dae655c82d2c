"""An experiment's file is a collector of one item; the item's outcome is its verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.api import load
from chaos.app.load import LoadedExperiment
from chaos.app.run import Run
from chaos.model.errors import Exit, NodefallError, RequirementUnmet
from chaos.model.redaction import redact
from chaos.plugin.hooks import RUNNER
from chaos.report.summary import summary

_API_VERSION = re.compile(r"""^["']?apiVersion["']?\s*:\s*["']?nodefall\.dev/""", re.MULTILINE)
_INVENTORY = re.compile(r"""^["']?kind["']?\s*:\s*["']?Inventory\b""", re.MULTILINE)
_MARK = re.compile(r"[\w./+\[\]\\-]+")  # what -m understands as one name


def is_experiment(path: Path) -> bool:
    """A document of ours that is no inventory; what is wrong with it is told when it is collected."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return bool(_API_VERSION.search(text)) and not _INVENTORY.search(text)


class ExperimentFile(pytest.File):
    """Holds one experiment."""

    def collect(self) -> Iterator[ExperimentItem]:
        """Raises CollectError with all that is wrong with it."""
        try:
            loaded = load(self.path)
        except NodefallError as error:
            raise self.CollectError(_describe(error)) from error
        item: ExperimentItem = ExperimentItem.from_parent(self, name=loaded.experiment.metadata.name, loaded=loaded)
        yield item


class ExperimentItem(pytest.Item):
    """Runs in its set-up, so that what is not decided is an error, and only what is violated a failure."""

    def __init__(self, *, loaded: LoadedExperiment, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]  # as pytest hands it on
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
            self.add_marker(pytest.mark.xdist_group("nodefall"))  # --dist loadgroup need not wait

    def setup(self) -> None:
        """Run it; skipped where it asks for what the cluster does not have."""
        try:
            self._run = done = self.config.stash[RUNNER](self._loaded)
        except RequirementUnmet as unmet:
            pytest.skip(unmet.message)
        except NodefallError as error:
            pytest.fail(_describe(error), pytrace=False)
        self.user_properties += [
            ("nodefall.report", str(done.report)),
            ("nodefall.verdict", str(done.result.status)),
            ("nodefall.cluster", "simulated" if done.result.simulated else done.result.cluster_uid),
        ]
        if done.result.exit_code not in {Exit.HELD, Exit.VIOLATED}:
            pytest.fail(_report(done), pytrace=False)

    def runtest(self) -> None:
        """Fail with the reason if it is violated."""
        if self._run and self._run.result.exit_code == Exit.VIOLATED:
            pytest.fail(_report(self._run), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it stands."""
        return self.path, 0, self.name


def _declare(config: pytest.Config, line: str) -> None:
    """For --strict-markers."""
    if line not in config.getini("markers"):
        config.addinivalue_line("markers", line)


def _report(run: Run) -> str:
    """The headline first: it is what one line can show."""
    return redact(summary(run.result, report=str(run.report)))


def _describe(error: NodefallError) -> str:
    return redact(f"{error.message}\nhint: {error.hint}" if error.hint else error.message)
