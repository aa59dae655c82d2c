"""Gates that ask the cluster itself, on a lab: doctor, other runs, pending undo; and alerts of a real Prometheus."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from chaos.app.day.gates import Deadlines, GateSources
from chaos.app.wiring.connect import connect_cluster
from chaos.app.wiring.lock import hold_lock, hold_machine_lock
from chaos.cluster.replica import configmap_name
from chaos.core.inventory import Inventory
from chaos.core.prometheus import Prometheus as Settings
from chaos.engine.connection import ClusterConnection, lock_namespace
from chaos.engine.load import LoadedExperiment, load
from chaos.engine.registry import load_registry
from chaos.gameday.document import Gate
from chaos.gameday.gate_check import GateResult, check_gate
from tests.kit.processes import free_port, until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[3]
REGISTRY = load_registry()
LAB = {
    "apiVersion": "nodefall.dev/v1alpha1",
    "kind": "Inventory",
    "metadata": {"name": "lab"},
    "lab": {"workers": 2, "seed": 4, "speed": 100},
}


@pytest.fixture(scope="module")
def connection() -> Iterator[ClusterConnection]:
    with connect_cluster(Inventory.model_validate(LAB, by_alias=True), seed=4) as connected:
        yield connected


def sources(connection: ClusterConnection, reports: Path, *experiments: LoadedExperiment) -> GateSources:
    return GateSources(connection, reports, experiments, "0" * 64, lambda _: False, Deadlines(connection.clock))


def ask(sources: GateSources, **declared: Any) -> GateResult:
    gate: Gate = TypeAdapter(Gate).validate_python(declared)
    return check_gate(gate, sources)


class TestDoctor:
    def test_nothing_is_refused(self, connection: ClusterConnection, tmp_path: Path) -> None:
        result = ask(sources(connection, tmp_path, load(ROOT / "experiments/cordon.yaml", REGISTRY)), kind="doctor")
        assert (result.holds, result.reason) == (True, "doctor refuses nothing")

    def test_a_refusal_is_named(self, connection: ClusterConnection, tmp_path: Path) -> None:
        loaded = load(ROOT / "experiments/cordon.yaml", REGISTRY)
        spec = loaded.experiment.spec
        targets = {name: each.model_copy(update={"zone": "nowhere"}) for name, each in spec.targets.items()}
        changed = loaded.experiment.model_copy(update={"spec": spec.model_copy(update={"targets": targets})})
        result = ask(sources(connection, tmp_path, replace(loaded, experiment=changed)), kind="doctor")
        assert result.holds is False
        assert "targets" in result.reason

    def test_a_lab_that_is_a_participant_of_time_is_no_deadlock(
        self, connection: ClusterConnection, tmp_path: Path
    ) -> None:
        with connection.clock.participant():
            result = ask(sources(connection, tmp_path, load(ROOT / "experiments/cordon.yaml", REGISTRY)), kind="doctor")
        assert result.holds is True


class TestOtherRuns:
    def test_no_other_run(self, connection: ClusterConnection, tmp_path: Path) -> None:
        assert ask(sources(connection, tmp_path), kind="no-other-run").holds is True

    def test_a_run_that_holds_the_lock(self, connection: ClusterConnection, tmp_path: Path) -> None:
        with (
            hold_machine_lock(connection) as machine,
            hold_lock(connection, machine, "other-123456", lambda _: None) as lock,
        ):
            result = ask(sources(connection, tmp_path), kind="no-other-run")
            holder = lock.identity.holder
            own = replace(sources(connection, tmp_path), own_holder=holder)
            assert ask(own, kind="no-other-run").holds is True
        assert (result.holds, result.reason) == (False, f"{holder} holds the lock of the cluster")
        assert ask(sources(connection, tmp_path), kind="no-other-run").holds is True

    def test_a_pending_undo(self, connection: ClusterConnection, tmp_path: Path) -> None:
        namespace = lock_namespace(connection)
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        labels = {"app.kubernetes.io/managed-by": "nodefall", "nodefall.dev/run": "left-123456"}
        body = {"metadata": {"name": configmap_name("left-123456"), "labels": labels}, "data": {"journal": "damaged"}}
        connection.kube.request("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}})
        assert connection.kube.request("POST", path, body=body).status == 201
        try:
            result = ask(sources(connection, tmp_path), kind="no-other-run")
        finally:
            connection.kube.request("DELETE", f"{path}/{configmap_name('left-123456')}")
        assert result.holds is False
        assert "left-123456" in result.reason


RULES = {
    "groups": [
        {
            "name": "g",
            "interval": "1s",
            "rules": [
                {"alert": "Loud", "expr": "vector(1)", "labels": {"severity": "critical"}},
                {"alert": "Quiet", "expr": "up > 5", "labels": {"severity": "info"}},
                {"alert": "Broken", "expr": 'up * on() {__name__=~"go_.*"}', "labels": {"severity": "debug"}},
            ],
        }
    ]
}


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """The real Prometheus, which scrapes itself; its URL."""
    address = f"127.0.0.1:{free_port()}"
    times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    scrape = [{"job_name": "self", "static_configs": [{"targets": [address]}]}]
    config = {"global": times, "rule_files": ["rules.yml"], "scrape_configs": scrape}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (folder / "rules.yml").write_text(yaml.safe_dump(RULES))
    argv = [
        shutil.which("prometheus") or "",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://{address}"
        finally:
            process.kill()


@pytest.mark.skipif(not shutil.which("prometheus"), reason="needs Debian's package prometheus")
def test_a_real_prometheus(connection: ClusterConnection, tmp_path: Path) -> None:
    with prometheus(tmp_path) as url:
        inventory = connection.inventory.model_copy(update={"prometheus": Settings(url=url)})
        found = sources(replace(connection, inventory=inventory), tmp_path)

        def severity(name: str) -> GateResult:
            return ask(found, kind="no-alerts", matchLabels={"severity": name})

        early = severity("critical")
        assert early.holds is not True, "it has not evaluated anything yet"
        until(lambda: severity("critical").holds is False)
        assert severity("critical").reason == "firing: Loud{severity=critical}"
        until(lambda: severity("info").holds is True)
        until(lambda: "a rule cannot be evaluated: Broken: " in severity("debug").reason)
        assert severity("debug").holds is None
        assert ask(found, kind="no-alerts").holds is False
        assert ask(found, kind="prometheus", query="up", atLeast=1).holds is True
        assert ask(found, kind="prometheus", query="up", atLeast=2).holds is False
        assert ask(found, kind="prometheus", query="up{job='none'}", atLeast=0).holds is None
        assert ask(found, kind="prometheus", query="0 / 0 * up", atLeast=0).holds is None
        refused = ask(found, kind="prometheus", query="up{", atLeast=0)
        assert (refused.holds, "parse error" in refused.reason) == (None, True)
        assert ask(found, kind="error-budget", query="1 - avg(up) * 0.25", atLeast=0.75).holds is True
