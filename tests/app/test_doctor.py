"""The doctor on a lab whose hosts have what hosts have: it tells each, and none keeps it from the others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from chaos.actions.prepare_for_shutdown import ACTION as ANNOUNCE
from chaos.actions.prepare_for_shutdown import Params
from chaos.api import load
from chaos.app.connect import ClusterConnection, connect_cluster
from chaos.app.doctor import DoctorRequest, Report, diagnose
from chaos.app.labs import make_inventory
from chaos.app.load import LoadedExperiment
from chaos.app.plan import plan
from chaos.app.registry import load_registry
from chaos.model.action import Target
from chaos.model.errors import Refused
from chaos.model.inventory import Inventory
from chaos.model.plan import Plan

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
def served(**spec: Any) -> Iterator[Inventory]:
    """A lab of this LabSpec."""
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


def ill(inventory: Inventory) -> Inventory:
    """One host's address leads nowhere, one's power control to nobody."""
    document = inventory.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["hosts"]["silent"]["port"] = 1
    document["hosts"]["no-power"]["power"]["url"] = "https://127.0.0.1:1/redfish/v1/Systems/1"
    return Inventory.model_validate(document)


def lose_lock(opened: ClusterConnection, node: str) -> None:
    """As v1.36.2 does after a cancelled shutdown; the lab always."""
    for active in (True, False):
        memory = ANNOUNCE.prepare(Target(node), Params(active=active))
        (command,) = ANNOUNCE.inject(memory)
        assert opened.hosts.send(node, command).exit == 0
        opened.clock.sleep(20.0)
    assert opened.hosts.read(node, "inhibitor-kubelet") is False


def found(report: Report) -> dict[str, set[tuple[str, str]]]:
    """Check and severity by host, of what is not in order."""
    by_host: dict[str, set[tuple[str, str]]] = {}
    for finding in report.findings:
        if finding.severity != "ok":
            by_host.setdefault(finding.subject.removeprefix("host "), set()).add((finding.check, str(finding.severity)))
    return by_host


def ask(experiment: LoadedExperiment, opened: ClusterConnection) -> Report:
    done: list[str] = []
    report = diagnose([experiment], DoctorRequest(opened, load_registry(), on_host_inspected=done.append))
    assert sorted(done) == list(report.hosts)
    return report


def one_on(experiment: LoadedExperiment, node: str) -> LoadedExperiment:
    """The experiment, with no other choice."""
    target = experiment.experiment.spec.targets["victim"].model_copy(update={"role": None, "nodes": [node]})
    spec = experiment.experiment.spec.model_copy(update={"targets": {"victim": target}})
    return LoadedExperiment(
        experiment.path, experiment.experiment.model_copy(update={"spec": spec}), experiment.manifests
    )


def planned(experiment: LoadedExperiment, opened: ClusterConnection, *, anyway: bool) -> Plan:
    return plan(experiment, opened, load_registry(), 1, "r-1", anyway=anyway)[0]


def test_each_host_is_told_what_it_lacks() -> None:
    poweroff = load(ROOT / "experiments" / "graceful-poweroff.yaml")
    with (
        served(inhibitorLostAfterCancel="always") as inventory,
        connect_cluster(ill(inventory)) as opened,
        opened.clock.participant(),
    ):
        lose_lock(opened, "old-lock")
        report = ask(poweroff, opened)
        assert found(report) == {
            "bare": {("logind", "refusal")},
            "short": {("inhibit-delay", "refusal"), ("kubelet-inhibitor", "refusal")},
            "old-lock": {("kubelet-inhibitor", "refusal")},
            "static": {("static-pods", "note")},
            "silent": {("host-reachable", "refusal")},
            "no-power": {("power-recovery", "refusal"), ("steps", "refusal")},
        }
        assert report.exit_code == 2
        assert report.possible == {"graceful-poweroff": ("static", "well")}

        # The same stands against a run; --anyway overrides what is not final, and the plan records that.
        lost = one_on(poweroff, "old-lock")
        with pytest.raises(Refused, match="old-lock: the kubelet does not hold its delay lock") as stopped:
            planned(lost, opened, anyway=False)
        assert "--anyway overrides this" in stopped.value.hint
        (overruled,) = planned(lost, opened, anyway=True).overridden
        assert overruled.startswith("kubelet-inhibitor: old-lock")
        with pytest.raises(Refused, match=r"silent \("):
            planned(one_on(poweroff, "silent"), opened, anyway=True)
        with pytest.raises(Refused, match="no-power could not be powered on again"):
            planned(one_on(poweroff, "no-power"), opened, anyway=True)
        assert planned(one_on(poweroff, "well"), opened, anyway=False).overridden == ()
