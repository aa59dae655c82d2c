"""The doctor on a lab with defective hosts: it reports every defect, and one does not hide another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.api import load
from chaos.app.doctor import DoctorRequest, Report, diagnose
from chaos.app.labs import make_inventory
from chaos.app.run.experiment import plan
from chaos.app.wiring.connect import connect_cluster
from chaos.core.action import Target
from chaos.core.errors import Refused
from chaos.core.inventory import Inventory
from chaos.core.plan import Plan
from chaos.engine.connection import ClusterConnection
from chaos.engine.load import LoadedExperiment
from chaos.faults.actions.prepare_for_shutdown import ACTION as ANNOUNCE
from chaos.faults.actions.prepare_for_shutdown import Params

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
LATE = {"unattended-upgrades-logind-maxdelay.conf": 30}  # sorts after the kubelet's 99-kubelet.conf
NODES = [
    {"name": "cp", "role": "control-plane"},
    {"name": "well"},
    {"name": "bare", "logind": False},
    {"name": "short", "shutdownGracePeriod": "60s", "logindDropIns": LATE},
    {"name": "old-lock"},
    {"name": "static", "staticPods": [{"name": "proxy"}]},
    {"name": "silent"},
    {"name": "no-power"},
]


@contextmanager
def serve(**spec: Any) -> Iterator[Inventory]:
    """Serve a lab with this LabSpec."""
    argv = [sys.executable, "-m", "chaos.lab", "--pace", "50"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps({"nodes": NODES, "seed": 7, **spec}) + "\n")
            process.stdin.flush()
            yield make_inventory(json.loads(process.stdout.readline()))
        finally:
            with suppress(BrokenPipeError):
                process.stdin.write("stop\n")
                process.stdin.flush()


def break_hosts(inventory: Inventory) -> Inventory:
    """Give one host an unreachable address, and another an unreachable power control."""
    document = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["hosts"]["silent"]["port"] = 1
    document["hosts"]["no-power"]["power"]["url"] = "https://127.0.0.1:1/redfish/v1/Systems/1"
    return Inventory.model_validate(document)


def lose_lock(connection: ClusterConnection, node: str) -> None:
    """Make the kubelet lose its lock, as v1.36.2 does after a cancelled shutdown; in the lab, always."""
    for active in (True, False):
        state = ANNOUNCE.prepare(Target(node), Params(active=active))
        (command,) = ANNOUNCE.program(state).commands
        assert connection.hosts.send(node, command).exit == 0
        connection.clock.sleep(20.0)
    assert connection.hosts.read(node, "inhibitor-kubelet") is False


def problems_by_host(report: Report) -> dict[str, set[tuple[str, str]]]:
    """Check and severity of the findings that are not ok, by host."""
    by_host: dict[str, set[tuple[str, str]]] = {}
    for finding in report.findings:
        if finding.severity != "ok":
            by_host.setdefault(finding.subject.removeprefix("host "), set()).add((finding.check, str(finding.severity)))
    return by_host


def run_doctor(experiment: LoadedExperiment, connection: ClusterConnection) -> Report:
    done: list[str] = []
    report = diagnose([experiment], DoctorRequest(connection, on_host_inspected=done.append))
    assert sorted(done) == list(report.hosts)
    return report


def with_single_node(experiment: LoadedExperiment, node: str) -> LoadedExperiment:
    """The experiment with ``node`` as its only candidate."""
    target = experiment.experiment.spec.targets["victim"].model_copy(update={"role": None, "nodes": [node]})
    spec = experiment.experiment.spec.model_copy(update={"targets": {"victim": target}})
    return replace(experiment, experiment=experiment.experiment.model_copy(update={"spec": spec}))


def planned(experiment: LoadedExperiment, connection: ClusterConnection, *, anyway: bool) -> Plan:
    return plan(experiment, connection, 1, "r-1", reports=ROOT / "no-reports", anyway=anyway)[0]


def test_every_defect_is_reported_by_host() -> None:
    poweroff = load(ROOT / "experiments" / "graceful-poweroff.yaml")
    with (
        serve(inhibitorLostAfterCancel="always") as inventory,
        connect_cluster(break_hosts(inventory)) as connection,
        connection.clock.participant(),
    ):
        lose_lock(connection, "old-lock")
        report = run_doctor(poweroff, connection)
        assert problems_by_host(report) == {
            "bare": {("logind", "refusal")},
            "short": {("inhibit-delay", "refusal"), ("kubelet-inhibitor", "refusal")},
            "old-lock": {("kubelet-inhibitor", "refusal")},
            "static": {("static-pods", "note")},
            "silent": {("host-reachable", "refusal")},
            "no-power": {("power-recovery", "refusal"), ("steps", "refusal")},
        }
        assert report.exit_code == 2
        assert report.possible == {"graceful-poweroff": ("static", "well")}

        # A run is refused for the same reasons. --anyway overrides refusals that are not final, as the plan records.
        lost = with_single_node(poweroff, "old-lock")
        with pytest.raises(Refused, match="old-lock: the kubelet does not hold its delay lock") as stopped:
            planned(lost, connection, anyway=False)
        assert "--anyway overrides this" in stopped.value.hint
        (overridden,) = planned(lost, connection, anyway=True).overridden
        assert overridden.startswith("kubelet-inhibitor: old-lock")
        with pytest.raises(Refused, match=r"silent \("):
            planned(with_single_node(poweroff, "silent"), connection, anyway=True)
        with pytest.raises(Refused, match=r"the power control of no-power: Redfish .* cannot be reached"):
            planned(with_single_node(poweroff, "no-power"), connection, anyway=True)
        assert planned(with_single_node(poweroff, "well"), connection, anyway=False).overridden == ()
