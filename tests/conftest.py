"""Which tests run, and which share a process under ``pytest -n``."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import zlib
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.kit.suite import describe_missing

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# Machines differ: no deadlines. Every run tries the same examples; .ci/nightly draws new ones.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, print_blob=True)
settings.load_profile("suite")

# The tests start hundreds of processes, each of which would compile all sources again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, whose processes inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

_DOCKER = re.compile(  # two daemons get in each other's way
    r"tests/(realhosts/|machines/power/test_power_contract|machines/transports/test_(docker_session|session_contract))"
)
# Ten seconds each, and many.
_SPREAD = re.compile(r"tests/(?:e2e/test_action_contract|experiments/test_verdicts)\.py::.*\[(.+)\]")
_PARTS = 6
# Rooms whose tests with marker lab start processes that run experiments: slow, unless they are marked smoke.
_CONNECTED = re.compile(r"tests/(?:api|cli|gameday/deploy|e2e|experiments|rehearsal|sweep)/")
_MACHINES = re.compile(r"tests/realhosts/")
_APART = re.compile(r"tests/sweep/")  # minutes each


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        is_connected = _CONNECTED.match(item.nodeid) and item.get_closest_marker("lab")
        if (is_connected and not item.get_closest_marker("smoke")) or _MACHINES.match(item.nodeid):
            item.add_marker(pytest.mark.slow)
    if "kind" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("kind"):
                item.add_marker(pytest.mark.skip(reason="needs a kind cluster and half an hour: pytest -m kind"))
    if not os.environ.get("NODEFALL_NIGHTLY"):
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="takes long: .ci/nightly runs it (NODEFALL_NIGHTLY=1)"))


def pytest_collection_finish() -> None:
    """No garbage collection examines fifteen thousand tests again.

    The second collection finds hardly anything and notes that: Python collects all generations only once a quarter more
    objects than the last time live long, and those of the tests would count as such for the rest of the session.
    """
    gc.collect()
    gc.freeze()
    gc.collect()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Name the programs that were missing, after everything else but the counts."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    if line := describe_missing(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)):
        terminalreporter.write_line(line)


def group(nodeid: str) -> str:
    """Tests of one group run in one process, one after the other: a file's tests share what they start."""
    if _DOCKER.match(nodeid):
        return "docker"
    if _APART.match(nodeid):
        return nodeid
    if spread := _SPREAD.match(nodeid):
        return f"contract {zlib.crc32(spread[1].encode()) % _PARTS}"
    return nodeid.split("::", maxsplit=1)[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  only where pytest -n is used

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return ByGroup(config, log)
