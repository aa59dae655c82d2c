"""The API connection is cut during a run: no verdict differs, except that it is inconclusive if the cut lasts beyond
its deadline.

A watch is resumed after a cut, so nothing is lost. All 20 instants with NODEFALL_CUTS=20 (``.ci/nightly``); a few of
them otherwise.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from chaos.core.clock import RemoteClock
from tests.kit.processes import EXPERIMENTS, lab, nodefall, result_of, verdicts
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.lab
EXPERIMENT = EXPERIMENTS / "graceful-poweroff.yaml"
COUNT = int(os.environ.get("NODEFALL_CUTS", "4"))
WATCHES = {"nodes", "pods", "deployments", "statefulsets", "daemonsets"}  # what the experiment asks about
LATE = 1.0  # seconds of cluster time by which a busy machine may act late
RESUMPTION = 5.0  # seconds that the watches may take to come back
SPAN = 105.0  # seconds of cluster time that a run takes, from its first step on
# Chosen so that the few of an ordinary run have one early (over a deadline), one late and two in between.
INSTANTS = [(1.5, 9.0), *((random.Random(7 * i).uniform(0, SPAN), random.Random(i).uniform(1, 20)) for i in range(19))]  # noqa: S311


class Cutter(threading.Thread):
    """Cuts the line ``at`` seconds after the first step, for ``seconds``, both of cluster time."""

    def __init__(self, proxy: Proxy, source: dict[str, Any], journal: Path, at: float, seconds: float) -> None:
        super().__init__(daemon=True)
        self.proxy, self.source, self.reports, self.at, self.seconds = proxy, source, journal, at, seconds
        self.times: list[float] = []  # of the cut and of its end
        self.finished = threading.Event()

    def run(self) -> None:
        clock = RemoteClock(self.source["address"], self.source["port"])
        begin = None
        while begin is None and not self.finished.wait(0.002):
            begin = self._first_step()
        if begin is None:
            return
        for due, act in ((begin + self.at, self.proxy.cut), (begin + self.at + self.seconds, self.proxy.mend)):
            while clock.now() < due and not self.finished.is_set():
                self.finished.wait(0.001)
            act()
            self.times.append(clock.now())
        clock.close()

    def _first_step(self) -> float | None:
        for path in self.reports.glob("*/*/journal.jsonl"):
            for line in path.read_text().splitlines():
                intent = json.loads(line).get("intent")
                if intent and intent["action"] == "poweroff":
                    return float(intent["t"])
        return None


def run_cut(directory: Path, cut: tuple[float, float] | None) -> dict[str, Any]:
    directory.mkdir()
    with lab(directory) as path:
        inventory = json.loads(path.read_text())
        kubeconfig = Path(inventory["cluster"]["kubeconfig"])
        server = urlsplit(next(w for w in kubeconfig.read_text().replace('"', " ").split() if w.startswith("https://")))
        proxy = Proxy((str(server.hostname), server.port or 443))
        (directory / "kubeconfig").write_text(kubeconfig.read_text().replace(f":{server.port}", f":{proxy.port}"))
        (directory / "kubeconfig").chmod(0o600)
        inventory["cluster"]["kubeconfig"] = str(directory / "kubeconfig")
        (directory / "proxied.json").write_text(json.dumps(inventory))
        cutter = Cutter(proxy, inventory["cluster"]["timeSource"], directory / "reports", *(cut or (1e9, 1e9)))
        cutter.start()
        done = nodefall("run", EXPERIMENT, "-i", "proxied.json", "--seed", "1", "--json", cwd=directory)
        cutter.finished.set()
        cutter.join(10)
        proxy.close()
        assert done.returncode in (0, 2), done.stderr
        if cut:
            assert_felt(proxy.resets, cutter.times, next(directory.glob("reports/*/*/recording.jsonl.gz")))
        return result_of(done)


def assert_felt(resets: int, times: list[float], recording: Path) -> None:
    """The cut ended the watches, so that each proof of their currency is from before it, or from after its end."""
    assert len(times) == 2, "the run was over before the cut"
    assert resets > 2 * len(WATCHES), "a connection has two ends"
    cut, mended = times
    lines = [json.loads(line) for line in gzip.decompress(recording.read_bytes()).splitlines()]
    proofs = [(line["type"], line["t"]) for line in lines if line["kind"] == "current"]
    assert [proof for proof in proofs if cut + LATE < proof[1] < mended] == []
    assert {source for source, t in proofs if t > mended} >= WATCHES
    assert not [line for line in lines if line["kind"] == "blind" and line["type"] in WATCHES], "nothing was lost"


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_cut(tmp_path_factory.mktemp("cuts") / "uncut", None)


@pytest.mark.parametrize(("at", "seconds"), INSTANTS[:COUNT])
def test_a_cut_changes_no_verdict(tmp_path: Path, uncut: dict[str, Any], at: float, seconds: float) -> None:
    assert uncut["status"] == "held"
    result = run_cut(tmp_path / "cut", (at, seconds))
    begin = min(step["begin"] for step in result["steps"])
    expected = verdicts(uncut)
    for name, verdict in verdicts(result).items():
        if verdict["status"] == expected[name]["status"]:
            continue
        assert verdict["status"] == "inconclusive", verdict
        assert verdict["deadline"] is None or (
            begin + at - LATE <= verdict["deadline"] <= begin + at + seconds + RESUMPTION
        ), f"the cut [{at}, {at + seconds}] lasts beyond no deadline of {verdict}"
