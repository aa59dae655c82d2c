"""The end of a session of experiments: those that did not run and those that were refused; properties of reports.

It is registered in the process that writes the results, with an inventory only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

VERDICT, REFUSED = "nodefall.verdict", "refused"
_ENDED_EARLY = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
ALL_REFUSED = "nodefall: every experiment was refused, so the session fails; --nodefall-allow-refused lets it pass"


class ExperimentSession:
    """The experiments of a session, by the ID of their item."""

    def __init__(self, config: pytest.Config, suffixes: tuple[str, ...]) -> None:
        self._config = config
        self._suffixes = suffixes
        self._collected: dict[str, None] = {}
        self._begun: set[str] = set()
        self._reported: set[str] = set()
        self._workers: dict[str, Any] = {}  # of pytest-xdist, by experiments that have begun
        self._refused: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the experiments that are to run in this process."""
        self._note(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note the experiments that are to run in processes of pytest-xdist."""
        self._note(ids)

    def _note(self, ids: Iterable[str]) -> None:
        self._collected |= dict.fromkeys(each for each in ids if each.partition("::")[0].endswith(self._suffixes))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note what began."""
        self._begun.add(nodeid)

    @pytest.hookimpl(tryfirst=True)  # before the report is written
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what has a report, and make its properties those of the suite, which Jenkins' JUnit schema allows."""
        if report.nodeid not in self._collected:
            return
        if worker := getattr(report, "node", None):
            self._workers[report.nodeid] = worker
        if (VERDICT, REFUSED) in report.user_properties:
            self._refused.add(report.nodeid)
        if report.when == "teardown" or not report.passed:  # the file has no name of a case before that
            self._reported.add(report.nodeid)
        if add := _add_suite_property(self._config):
            ours = [each for each in report.user_properties if each[0].startswith("nodefall.")]
            if report.when == "teardown":
                for name, value in ours:
                    add(f"{report.nodeid} {name}", value)
            report.user_properties = [each for each in report.user_properties if each not in ours]

    @pytest.hookimpl(tryfirst=True)  # before the file of --junitxml is written
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Report what did not run; nothing is green because the session ended early, or because all was refused."""
        if exitstatus in _ENDED_EARLY:
            for nodeid in [each for each in self._collected if each not in self._reported]:
                self._config.hook.pytest_runtest_logreport(report=self._early_end(nodeid))
        elif exitstatus == pytest.ExitCode.OK and self._fails:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _early_end(self, nodeid: str) -> pytest.TestReport:
        why = "interrupted" if nodeid in self._begun else "not started"
        text = f"{why}: the session ended before this experiment had a verdict"
        location = (nodeid.partition("::")[0], 0, nodeid.rpartition("::")[2])
        # --junitxml has a case for each worker: a second one beside that of the setup would leave that without a name.
        worker = {"node": self._workers[nodeid]} if nodeid in self._workers else {}
        return pytest.TestReport(nodeid, location, {}, "failed", text, "setup", **worker)

    @property
    def _fails(self) -> bool:
        is_refused = bool(self._collected) and self._refused >= self._collected.keys()
        return is_refused and not self._config.getoption("nodefall_allow_refused")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why a session of skipped experiments fails."""
        if self._fails:
            terminalreporter.write_line(ALL_REFUSED)


def _add_suite_property(config: pytest.Config) -> Callable[[str, object], None] | None:
    """The method that adds a property to the suite of --junitxml; None without that option."""
    plugins = config.pluginmanager.get_plugins()
    return next((each.add_global_property for each in plugins if hasattr(each, "add_global_property")), None)
