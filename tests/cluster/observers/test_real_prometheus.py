"""The real Prometheus scrapes the lab's kubelets every second, dies in mid-run and comes back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from chaos.cluster.observers.prometheus import PrometheusObserver
from chaos.cluster.observers.promql import PrometheusClient, QueryRefused
from chaos.cluster.observers.selectors import newest_of
from chaos.core.assertion import Memo
from chaos.core.decode import decode
from chaos.core.probes import Query
from chaos.core.recording import QueryResult
from chaos.core.timeline import Timeline
from chaos.verdicts.assertions.metric import ASSERTION
from tests.kit.observed_lab import observed_lab
from tests.kit.processes import free_port

PROGRAM = shutil.which("prometheus")
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not PROGRAM, reason="needs Debian's package prometheus (apt-get install prometheus)"),
]
QUERIES = [
    Query(name="kubelets", query="count(up == 1)", every="1s"),
    Query(name="shutdowns", query="kubelet_graceful_shutdown_start_time_seconds", every="1s"),
]


class Prometheus:
    """The program, with its data in ``folder``."""

    def __init__(self, folder: Path, targets: list[str], token: str, ca_file: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        job = {
            "job_name": "kubelet",
            "scheme": "https",
            "authorization": {"credentials": token},
            "tls_config": {"ca_file": ca_file},
            "static_configs": [{"targets": targets}],
        }
        times = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        (folder / "prometheus.yml").write_text(yaml.safe_dump({"global": times, "scrape_configs": [job]}))
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert PROGRAM
        self._process = subprocess.Popen(
            [
                PROGRAM,
                f"--config.file={self._folder}/prometheus.yml",
                f"--storage.tsdb.path={self._folder}/data",
                f"--web.listen-address={self.address}",
                "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """As the kernel would, when memory is short."""
        if self._process:
            self._process.kill()
            self._process.wait(10)


def kubelets(lab: Any) -> list[str]:
    """Where the lab's kubelets listen, as their Nodes say."""
    nodes = lab.cluster.store.list("nodes")
    return [f"127.0.0.1:{node['status']['daemonEndpoints']['kubeletEndpoint']['Port']}" for node in nodes]


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Timeline]:
    """What was recorded of a Prometheus that was killed after some seconds and started again two seconds later."""
    folder = tmp_path_factory.mktemp("prometheus")
    with observed_lab(folder, pace=1.0) as observed:
        server = Prometheus(folder, kubelets(observed.lab), observed.facts["token"], observed.facts["caFile"])
        promql = PrometheusClient(f"http://{server.address}")
        watch = PrometheusObserver(promql, QUERIES, 5.0, observed.clock)
        server.start()
        try:
            with observed.clock.participant():
                watch.start(observed.lines.append)
                wait(observed, lambda: values(observed).count(2.0) >= 3)
                with pytest.raises(QueryRefused, match="parse error"):
                    promql.query("count(up")
                (age,) = promql.query(newest_of([query.query for query in QUERIES]))
                assert age.values[0][1] is not None
                server.kill()
                wait(observed, lambda: bool(observed.open_windows()))
                assert observed.clock.sleep(2)
                server.start()
                wait(observed, lambda: not observed.open_windows())
                wait(observed, lambda: any(r.series for r in answers(observed, "kubelets")[-1:]))
                watch.final_sample()
        finally:
            watch.stop()
            server.kill()
        made = Timeline()
        for line in sorted(observed.lines, key=lambda line: line.t):
            entry = decode(line, made.next_seq())
            if entry is not None:
                made.add(entry)
        yield made


def answers(observed: Any, name: str) -> list[QueryResult]:
    lines = [line for line in observed.lines if line.kind == "prometheus" and line.type == name]
    return [msgspec.json.decode(line.object, type=QueryResult) for line in lines]


def values(observed: Any) -> list[float | None]:
    return [value for result in answers(observed, "kubelets") for series in result.series for _, value in series.values]


def wait(observed: Any, holds: Any) -> None:
    for _ in range(200):
        if holds():
            return
        assert observed.clock.sleep(0.25)
    raise AssertionError([*observed.windows(), *observed.lines[-3:]])


def test_all_kubelets_of_the_lab_are_scraped(timeline: Timeline) -> None:
    polled = [
        value
        for each in timeline.prometheus["kubelets"][:-1]
        for series in each.result.series
        for _, value in series.values
    ]
    assert 2.0 in polled
    by_node = timeline.prometheus["shutdowns"][-1].result.series
    assert {series.labels["job"] for series in by_node} == {"kubelet"}
    assert len(by_node) == 2, "the control plane and one worker"


def test_its_death_is_a_blind_window(timeline: Timeline) -> None:
    (window,) = [blind for blind in timeline.blind_windows if blind.end is not None and "connection" in blind.reason][
        -1:
    ]
    assert window.source == "prometheus"
    assert window.end is not None
    assert window.end - window.start >= 2.0
    since = window.end - 2.0  # on a busy machine the window begins before the death, with slow answers
    inside = [each for each in timeline.prometheus["kubelets"] if since < each.t < window.end]
    assert inside == [], "no sample is from the time when it was dead"


def test_the_final_sample_has_the_whole_run_in_the_runs_clock(timeline: Timeline) -> None:
    ((series,),) = [each.result.series for each in timeline.prometheus["kubelets"][-1:]]
    times = [t for t, _ in series.values]
    assert len(times) > 3
    assert timeline.start - 2 <= times[0] < times[-1] <= timeline.end + 2


class FakeContext:
    """All of a timeline, from its start on."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline, self.anchor = timeline, timeline.start
        self.since = (self.anchor, self.anchor)

    def nodes(self, reference: str) -> tuple[str, ...]:
        raise AssertionError(reference)

    lookback = 0.0

    def namespace(self, reference: str) -> str:
        raise AssertionError(reference)

    def moment(self, reference: str) -> float:
        raise AssertionError(reference)

    def memo(self, *inputs: Hashable) -> Memo:
        raise AssertionError(inputs)


def test_the_metric_assertion_reads_samples_and_blind_windows(timeline: Timeline) -> None:
    params = ASSERTION.params.model_validate({"query": "kubelets", "at-least": 2})
    (subject,) = ASSERTION.subjects(params, FakeContext(timeline)).subjects
    (window,) = [blind for blind in timeline.blind_windows if "connection" in blind.reason][-1:]
    assert window.end is not None
    before, inside = subject.signal.at(window.start), subject.signal.at((window.start + window.end) / 2)
    assert (before.value, inside.value) == (None, None), "it was last seen when the window begins"
    values = [span.sample.value for span in subject.signal.spans(timeline.start, window.start - 0.01)]
    assert True in values
    assert "prometheus could not be observed" in inside.observation
