"""Runs that die on real machines: after undo everything is restored, and a second undo does nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from chaos.core.clock import SystemClock
from chaos.core.result import UndoResult
from chaos.core.store.journal import Journal
from chaos.engine.rollback import roll_back
from chaos.engine.stop import StopRequest
from tests.kit.drive import drive, open_hosts
from tests.kit.fakes import FakeProgress
from tests.kit.machines import RealHost

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
WALL = 240  # seconds that a run may take
# Docker writes some files and the rules of its name server with each start; logins make
# units of their own; what cleans up comes when it likes.
STATE = r"""
nft -s list ruleset | grep -Fv 127.0.0.11; iptables -S; ip6tables -S
systemctl list-units --all --plain --no-legend --type=service,timer | awk '{ print $1, $2, $3 }' \
  | grep -Ev '^(user|session|systemd-(tmpfiles-clean|update-done|random-seed)|ssh@|apt-|dpkg-|e2scrub|fstrim|man-db)' \
  | sort
systemd-inhibit --list --no-legend | awk '{ print $1, $2 }'
ls /run/systemd/shutdown 2>/dev/null
find /etc /root /usr/local /run/systemd/system /run/systemd/transient /var/lib/kubelet -xdev -type f \
  ! -path '*.scope*' ! -name hosts ! -name hostname ! -name resolv.conf ! -name '*machine-id*' 2>/dev/null \
  | sort | xargs -r sha256sum
"""


def run_until_hit(node: RealHost, action: str, folder: Path, number: int) -> None:
    """In a separate process. A signal that can be caught is, as by ``nodefall run``."""
    stop = StopRequest()

    def handler(signum: int, _: FrameType | None) -> None:
        stop.signum = signum

    signal.signal(signal.SIGTERM, handler)
    drive(node, action, {}, folder, during=lambda _: os.kill(os.getpid(), number), stop=stop)


@pytest.fixture
def pair(three: list[RealHost]) -> Iterator[tuple[RealHost, RealHost]]:
    """A node, and the control plane that its kubelet knows."""
    node, plane = three[0], three[1]
    plane.run("systemd-run --unit=api --collect socat TCP6-LISTEN:6443,fork,reuseaddr,ipv6only=0 EXEC:/bin/true")
    node.run(f"mkdir -p /etc/kubernetes; echo '    server: https://{plane.name}:6443' > /etc/kubernetes/kubelet.conf")
    yield node, plane
    node.run("rm -r /etc/kubernetes")
    plane.run("systemctl stop api")


@contextmanager
def looking(node: RealHost, folder: Path) -> Iterator[Any]:
    """Undoes what is pending in the journal in ``folder``."""
    with ExitStack() as stack:
        clock = SystemClock()
        stack.callback(clock.close)
        hosts = open_hosts({node.name: node}, folder, clock)
        stack.callback(hosts.close)

        def undo() -> tuple[list[UndoResult], list[str]]:
            progress = FakeProgress()
            with Journal(folder) as journal:
                return roll_back(journal, hosts, clock, progress), progress.reports

        yield undo


def settled(node: RealHost, wanted: str) -> str:
    """Its state, as soon as it is the one that is wanted; a boot takes its time."""
    end = time.monotonic() + 60
    while (found := node.run(STATE, check=False)) != wanted and time.monotonic() < end:
        time.sleep(1)
    return found


NIGHTLY = pytest.mark.nightly
DEATHS = [
    pytest.param("partition", signal.SIGKILL, id="partition-SIGKILL"),
    pytest.param("partition", signal.SIGTERM, id="partition-SIGTERM", marks=NIGHTLY),
    pytest.param("poweroff", signal.SIGKILL, id="poweroff-SIGKILL", marks=NIGHTLY),
    pytest.param("poweroff", signal.SIGTERM, id="poweroff-SIGTERM", marks=NIGHTLY),
    pytest.param("kubelet-stop", signal.SIGKILL, id="kubelet-stop-SIGKILL", marks=NIGHTLY),
    pytest.param("kubelet-stop", signal.SIGTERM, id="kubelet-stop-SIGTERM", marks=NIGHTLY),
]


@pytest.mark.parametrize(("action", "number"), DEATHS)
def test_after_undo_it_is_as_it_was(pair: tuple[RealHost, RealHost], tmp_path: Path, action: str, number: int) -> None:
    node, _ = pair
    before = node.run(STATE, check=False)
    assert "kubelet.service loaded active" in before
    child = multiprocessing.get_context("spawn").Process(target=run_until_hit, args=(node, action, tmp_path, number))
    child.start()
    child.join(WALL)
    assert child.exitcode == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    if number == signal.SIGKILL and action == "partition":
        assert "table inet nodefall" in node.run("nft list tables")
    with looking(node, tmp_path) as undo:
        results, _ = undo()
        assert all(result.proven for result in results), results
        assert bool(results) == (number == signal.SIGKILL)
        assert undo() == ([], [])
    assert settled(node, before) == before
