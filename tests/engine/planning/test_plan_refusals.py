"""Planning refuses hosts without a shell, and clock changes beside failsafe timers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from chaos.core.action import Target
from chaos.core.cluster_view import ClusterView
from chaos.core.errors import Refused, Unsupported
from chaos.core.experiment import Step
from chaos.core.kube import Node
from chaos.core.ports import PowerControl, Session
from chaos.documents.experiment import load_experiment
from chaos.engine.inspection import inspect_hosts
from chaos.engine.planning.planner import PlanInputs, make_plan, plan_step
from chaos.engine.registry import load_registry
from chaos.faults.readings.logind import NO_SHUTDOWN_SCHEDULED
from chaos.machines.pool import Hosts
from tests.kit.fakes import FakeClock, FakeKube

EXPERIMENT = Path(__file__).parents[3] / "experiments" / "graceful-poweroff.yaml"
REGISTRY = load_registry()


def view(image: str = "Debian GNU/Linux 12 (bookworm)", system: str = "linux") -> ClusterView:
    info = {"osImage": image, "operatingSystem": system}
    node = {"metadata": {"name": "n1", "uid": "u"}, "spec": {}, "status": {"nodeInfo": info}}
    return ClusterView("uid", {"n1": msgspec.convert(node, Node)}, ())


def no_session(name: str) -> Session:
    raise AssertionError(f"unexpected connection to {name}")


def no_power(name: str) -> PowerControl | None:
    raise AssertionError(f"unexpected use of the power control of {name}")


@pytest.mark.parametrize("image", ["Talos (v1.9.2)", "Bottlerocket OS 1.26.1 (aws-k8s-1.31)"])
def test_a_host_without_a_shell_is_refused_without_a_connection(image: str) -> None:
    hosts = Hosts(no_session, no_power, FakeKube({}), {}, FakeClock())
    reported: list[str] = []
    wanted = {"n1": frozenset({"nft"})}
    found = inspect_hosts(wanted, view(image), hosts, FakeKube({}), FakeClock(), reported.append)["n1"]
    assert f"n1 runs {image}, which has no shell" in found.error
    assert reported == ["n1"]
    without_facts = inspect_hosts({"n1": None}, view(image), hosts, FakeKube({}), FakeClock(), reported.append)["n1"]
    assert (without_facts.error, without_facts.is_skipped) == ("", True)  # the API needs no shell


def test_a_host_with_another_system_than_its_node_is_not_contacted() -> None:
    """The commands of the one system would be sent to the other."""
    hosts = Hosts(no_session, no_power, FakeKube({}), {}, FakeClock())
    seen = view(system="windows")
    found = inspect_hosts({"n1": frozenset({"nft"})}, seen, hosts, FakeKube({}), FakeClock(), lambda _: None)["n1"]
    expected = "n1 was not contacted: its Node runs windows, and its host in the inventory has os linux"
    assert (found.error, found.target.os) == (expected, "windows")
    assert found.hint
    skipped = inspect_hosts({"n1": None}, seen, hosts, FakeKube({}), FakeClock(), lambda _: None)["n1"]
    assert (skipped.error, skipped.is_skipped) == ("", True)


def plan(folder: Path, *actions: str) -> None:
    file = folder / "experiment.yaml"
    method = [{"name": f"s-{action}", "action": action, "target": "victim"} for action in actions]
    spec: dict[str, Any] = {
        "title": "t",
        "targets": {"victim": {"nodes": ["n1"]}},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
        "method": method,
        "hypothesis": [{"assert": "nodes-ready", "with": {"nodes": "all"}, "within": "5s"}],
    }
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "e"}}
    file.write_text(json.dumps(head | {"spec": spec}))
    file.chmod(0o644)
    facts = {
        "shared-kernel": False,
        "failsafe-timers": [],
        "scheduled-shutdown": NO_SHUTDOWN_SCHEDULED,
        "clock-skew": 0,
        "time-sync-unit": "chrony.service",
        "time-sync-state": "active",
        "kubelet-unit": "kubelet.service",
    }
    inputs = PlanInputs(
        run="r",
        now=0.0,
        seed=1,
        experiment_text=file.read_bytes(),
        view=view(),
        nodes_by_target={"victim": ("n1",)},
        targets={"n1": Target("n1", facts=facts)},
        namespace="",
    )
    make_plan(load_experiment(file, REGISTRY), inputs)


def test_an_action_that_a_node_does_not_support_keeps_its_error(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"^step s-power-cut: n1 has no power control"):
        plan(tmp_path, "power-cut")


@pytest.mark.parametrize("order", [1, -1])
def test_a_clock_is_not_changed_beside_a_timer(tmp_path: Path, order: int) -> None:
    with pytest.raises(Refused, match="step s-kubelet-stop arms a timer there"):
        plan(tmp_path, *["clock-skew", "kubelet-stop"][::order])


def test_a_clock_is_changed_alone_or_beside_an_action_without_a_timer(tmp_path: Path) -> None:
    plan(tmp_path, "clock-skew")
    plan(tmp_path, "clock-skew", "kubelet-restart")


LINUX_ONLY = sorted(n for n, a in REGISTRY.actions.items() if a.on_host and "windows" not in REGISTRY.systems_of(n))


@pytest.mark.parametrize("name", LINUX_ONLY)
def test_an_action_on_the_host_needs_a_windows_form(name: str) -> None:
    """Whether it needs facts or not: the refusal is the same for all, and names the action."""
    action = REGISTRY.actions[name]
    step = Step.model_validate({"name": "s", "action": name, "with": yaml.safe_load(action.example).get("with", {})})
    REGISTRY.bind_step(step)
    targets = {"n1": Target("n1", "windows")}
    inputs = PlanInputs("r", 0.0, 1, b"", view(system="windows"), {"victim": ("n1",)}, targets, "")
    with pytest.raises(Unsupported) as refused:
        plan_step(load_experiment(EXPERIMENT, REGISTRY), step, "n1", inputs)
    why = f"can have no Windows form, as {action.no_windows_reason}"
    expected = why if action.no_windows_reason else "has no Windows form yet"
    assert refused.value.message == f"step s: action {name} {expected}, and n1 runs Windows"
    assert refused.value.hint


def test_an_action_through_the_api_is_planned_for_windows() -> None:
    step = Step.model_validate({"name": "s", "action": "cordon", "target": "victim"})
    REGISTRY.bind_step(step)
    objects = {"/api/v1/nodes/n1": {"metadata": {"name": "n1"}, "spec": {}}}
    targets = {"n1": Target("n1", "windows")}
    inputs = PlanInputs("r", 0.0, 1, b"", view(system="windows"), {"victim": ("n1",)}, targets, "", objects)
    assert plan_step(load_experiment(EXPERIMENT, REGISTRY), step, "n1", inputs).commands


def test_what_can_have_no_windows_form_has_a_reason_and_none() -> None:
    reasons = {name: action.no_windows_reason for name, action in REGISTRY.actions.items() if action.no_windows_reason}
    assert reasons["kubelet-freeze"] == "Windows has no signal that stops a process"
    assert not [name for name in reasons if "windows" in REGISTRY.systems_of(name)]
