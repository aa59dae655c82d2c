"""Options and hooks, which pytest always imports. The rest is imported if an inventory is given."""

# ruff: noqa: PLC0415 - sessions without an inventory must stay fast
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from chaos.api.pytest import RUNNER

if TYPE_CHECKING:
    from chaos.api import Lab
    from chaos.api.pytest.experiments import ExperimentFile, Runner

SUFFIXES = (".yaml", ".yml")
_NOT_COLLECTED = pytest.StashKey[list[Path]]()  # YAML files, which may be experiments


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add command-line and ini options."""
    group = parser.getgroup("nodefall", "experiments of nodefall as tests")
    group.addoption(
        "--nodefall-inventory", metavar="FILE", help="Collect experiments (*.yaml) and run them on this cluster."
    )
    group.addoption("--nodefall-reports", metavar="DIR", default="reports", help="Default: reports.")
    group.addoption("--nodefall-seed", metavar="N", type=int, help="Select the same targets again.")
    group.addoption(
        "--nodefall-allow-refused", action="store_true", help="Exit with 0 even if every experiment was refused."
    )
    group.addoption("--nodefall-yes", action="store_true", help="Confirm that real machines go down.")
    parser.addini("nodefall_inventory", "As --nodefall-inventory; relative to this file.", default="")
    parser.addini("nodefall_lab_scope", "Scope of the fixture nodefall_lab; default: function.", default="function")


def pytest_configure(config: pytest.Config) -> None:
    """Read the inventory, if one is given, which enables the plug-in."""
    config.addinivalue_line("markers", "nodefall: an experiment of nodefall; its labels are marks, too, as os/linux")
    config.addinivalue_line("markers", "xdist_group: tests of one group run in one process (pytest-xdist)")
    if path := _inventory(config):
        from chaos.api.pytest.experiments import make_runner
        from chaos.api.pytest.session import ExperimentSession

        config.stash[RUNNER] = make_runner(config, path)
        if not hasattr(config, "workerinput"):  # a process of pytest-xdist, whose results another one writes
            config.pluginmanager.register(ExperimentSession(config, SUFFIXES))


def _inventory(config: pytest.Config) -> Path | None:
    if given := config.getoption("nodefall_inventory"):
        return Path(config.invocation_params.dir, given)
    if configured := config.getini("nodefall_inventory"):
        return Path(config.inipath.parent if config.inipath else config.rootpath, configured)
    return None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ExperimentFile | None:
    """Collect a YAML file if it is an experiment."""
    if file_path.suffix not in SUFFIXES:
        return None
    if RUNNER not in parent.config.stash:
        parent.config.stash.setdefault(_NOT_COLLECTED, []).append(file_path)
        return None
    from chaos.api.pytest.experiments import ExperimentFile, is_experiment

    if not is_experiment(file_path):
        return None
    file: ExperimentFile = ExperimentFile.from_parent(parent, path=file_path)
    return file


def pytest_collection_finish(session: pytest.Session) -> None:
    """A session of experiments alone needs an inventory. Raises UsageError, with which pytest exits with 4."""
    files = session.config.stash.get(_NOT_COLLECTED, [])
    if session.items or not files:
        return
    from chaos.api.pytest.experiments import is_experiment

    if any(map(is_experiment, files)):
        raise pytest.UsageError(
            "experiments are not collected: no inventory is given; "
            "add --nodefall-inventory FILE, or nodefall_inventory to the options of pytest in pyproject.toml"
        )


def pytest_report_header(config: pytest.Config) -> str | None:
    """The cluster on which experiments run, and whether it is simulated."""
    return f"nodefall: {config.stash[RUNNER].description}" if RUNNER in config.stash else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report at the end, too, that a cluster was simulated."""
    if RUNNER in config.stash and config.stash[RUNNER].simulated and not config.option.collectonly:
        from chaos.reports.run.outline import SIMULATED

        terminalreporter.write_line(SIMULATED)


def _lab_scope(
    fixture_name: str,  # noqa: ARG001 - pytest passes it
    config: pytest.Config,
) -> Literal["session", "package", "module", "class", "function"]:
    scope: Literal["session", "package", "module", "class", "function"] = config.getini("nodefall_lab_scope")
    return scope


@pytest.fixture(scope=_lab_scope)
def nodefall_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A running simulated cluster, a ``chaos.api.Lab``.

    ``@pytest.mark.parametrize("nodefall_lab", [{"workers": 5}], indirect=True)`` sets its arguments.
    """
    from chaos.api import Lab

    arguments: dict[str, Any] = getattr(request, "param", {})
    with Lab(**arguments) as lab:
        yield lab


@pytest.fixture
def nodefall_run(request: pytest.FixtureRequest) -> Runner:
    """``nodefall_run(experiment, inventory)``: ``chaos.api.run`` with the options of this session."""
    from chaos.api.pytest.experiments import make_runner

    return request.config.stash.get(RUNNER, None) or make_runner(request.config, None)
