"""A lab by call: the same answers as its servers give, and programs on its machines."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chaos.core.windows import powershell, system_program
from chaos.lab.direct.lab import DirectLab
from chaos.lab.direct.requests import Answer
from chaos.lab.spec import LabSpec, NodeSpec
from chaos.lab.users import Rule, UserSpec

NODES = [NodeSpec(name="cp", role="control-plane"), NodeSpec(name="w1"), NodeSpec(name="w2")]


@pytest.fixture
def lab() -> DirectLab:
    lab = DirectLab(LabSpec(nodes=NODES))
    lab.start()
    return lab


def _ask(lab: DirectLab, method: str, target: str, body: Any = None, token: str = "") -> Answer:
    headers = {"Authorization": f"Bearer {token or lab.token}", "Accept": "application/json"}
    task = lab.request(method, target, headers, body=b"" if body is None else msgspec.json.encode(body))
    assert task.done
    return task.result()


def _status(answer: Answer) -> tuple[int, str]:
    return answer.status, msgspec.json.decode(answer.body).get("reason", "")


@pytest.mark.parametrize(
    ("method", "target", "wanted"),
    [
        ("GET", "/api/v1/nodes/w9", (404, "NotFound")),
        ("GET", "/api/v1/nothing", (404, "NotFound")),
        ("GET", "/nothing", (404, "NotFound")),
        ("DELETE", "/version", (405, "MethodNotAllowed")),
        ("GET", "/api/v1/pods?labelSelector=%21%21", (400, "BadRequest")),
        ("PUT", "/api/v1/nodes", (405, "MethodNotAllowed")),
        ("POST", "/api/v1/namespaces", (422, "Invalid")),
    ],
)
def test_errors_are_status_objects(lab: DirectLab, method: str, target: str, wanted: tuple[int, str]) -> None:
    body = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "UPPER"}} if method == "POST" else None
    assert _status(_ask(lab, method, target, body)) == wanted


def test_pages_and_queries_in_the_path(lab: DirectLab) -> None:
    page = msgspec.json.decode(_ask(lab, "GET", "/api/v1/nodes?limit=2").body)
    rest = msgspec.json.decode(_ask(lab, "GET", f"/api/v1/nodes?limit=2&continue={page['metadata']['continue']}").body)
    names = [item["metadata"]["name"] for item in (*page["items"], *rest["items"])]
    assert names == ["cp", "w1", "w2"]


def test_a_large_list_is_whole(lab: DirectLab) -> None:
    """Over a connection it is written in pieces."""
    for number in range(5):
        data = {"metadata": {"name": f"c-{number}", "namespace": "default"}, "data": {"x": "y" * 1_000_000}}
        lab.cluster.create_object("configmaps", data)
    answer = _ask(lab, "GET", "/api/v1/namespaces/default/configmaps")
    assert len(answer.body) > 5_000_000
    assert len(msgspec.json.decode(answer.body)["items"]) == 5


def test_a_user_may_only_what_its_rules_allow() -> None:
    rules = [Rule(verbs=["list"], resources=["nodes"])]
    lab = DirectLab(LabSpec(nodes=NODES, users=[UserSpec(name="reader", rules=rules)]))
    lab.start()
    assert _ask(lab, "GET", "/api/v1/nodes").status == 200
    assert _status(_ask(lab, "GET", "/api/v1/pods")) == (403, "Forbidden")
    assert _status(_ask(lab, "GET", "/api/v1/nodes", token="wrong")) == (401, "Unauthorized")


def test_a_watch_needs_a_connection(lab: DirectLab) -> None:
    answer = _ask(lab, "GET", "/api/v1/nodes?watch=true&resourceVersion=1")
    assert answer.status == 406
    assert b"without one" in answer.body


def test_kubelets_answer_while_they_run(lab: DirectLab) -> None:
    machine = lab.cluster.machines["w1"]
    headers = {"Authorization": f"Bearer {lab.token}"}
    task = lab.read_kubelet(machine.address, machine.kubelet_port, "/metrics", headers)
    assert task is not None
    assert b"kubelet_" in task.result().body
    machine.power_off()
    assert lab.read_kubelet(machine.address, machine.kubelet_port, "/metrics", headers) is None


def test_a_frozen_kubelet_answers_when_it_goes_on(lab: DirectLab) -> None:
    machine, headers = lab.cluster.machines["w1"], {"Authorization": f"Bearer {lab.token}"}
    machine.kubelet.freeze()
    task = lab.read_kubelet(machine.address, machine.kubelet_port, "/healthz", headers)
    assert task is not None
    lab.sim.run_until(lab.sim.now + 10.0)
    assert not task.done
    machine.kubelet.thaw()
    lab.sim.run_until(lab.sim.now + 1.0)
    assert task.result().body == b"ok"


def test_a_program_answers(lab: DirectLab) -> None:
    program = lab.hosts["w1"].run("read line; echo $line; false", "one\ntwo\n")
    assert (program.stdout, program.stderr, program.task.result()) == ("one\n", "", 1)


def test_a_program_that_waits_is_lost_with_its_machine(lab: DirectLab) -> None:
    program = lab.hosts["w1"].run("echo begun; sleep 60; echo ended", "")
    lab.sim.run_until(lab.sim.now + 5.0)
    assert (program.task.done, program.stdout) == (False, "begun\n")
    lab.cluster.machines["w1"].power_off()
    assert program.task.done
    assert program.is_lost


def test_a_program_may_take_its_own_machine_down(lab: DirectLab) -> None:
    program = lab.hosts["w1"].run("sudo sh -c 'echo b > /proc/sysrq-trigger; sleep 60'", "")
    assert program.is_lost
    assert program.task.done
    assert not lab.hosts["w1"].is_reachable


def test_jobs_in_the_background_end_before_their_shell(lab: DirectLab) -> None:
    program = lab.hosts["w1"].run("sleep 5 & sleep 3 & wait; echo over", "")
    lab.sim.run_until(lab.sim.now + 4.0)
    assert program.stdout == ""
    lab.sim.run_until(lab.sim.now + 2.0)
    assert program.stdout == "over\n"


def test_a_timer_runs_as_root(lab: DirectLab) -> None:
    lab.hosts["w1"].run("sudo systemd-run --on-active=10 --unit=nodefall-x systemctl poweroff", "")
    lab.sim.run_until(lab.sim.now + 120.0)
    assert lab.cluster.machines["w1"].state == "off"


def test_power_is_switched_by_the_bmc(lab: DirectLab) -> None:
    path = lab.bmc_path("w1")
    system = msgspec.json.decode(lab.send_to_bmc("GET", path).result().body)
    assert (system["PowerState"], system["UUID"]) == ("On", lab.cluster.machines["w1"].system_uuid)
    target = system["Actions"]["#ComputerSystem.Reset"]["target"]
    assert lab.send_to_bmc("POST", target, b'{"ResetType": "ForceOff"}').result().status == 204
    assert lab.cluster.machines["w1"].state == "off"
    assert lab.send_to_bmc("POST", target, b'{"ResetType": "ForceOff"}').result().status == 409
    assert lab.send_to_bmc("POST", target, b"{").result().status == 400


def power(lab: DirectLab) -> tuple[str, bool]:
    """State of w1, and whether its sshd answers."""
    machine = lab.cluster.machines["w1"]
    return machine.state, machine.is_reachable


@pytest.mark.parametrize("kind", ["GracefulShutdown", "PushPowerButton"])
def test_the_bmc_presses_the_power_button_and_the_kubelet_delays_the_shutdown(lab: DirectLab, kind: str) -> None:
    target, machine = f"{lab.bmc_path('w1')}/Actions/ComputerSystem.Reset", lab.cluster.machines["w1"]
    press = f'{{"ResetType": "{kind}"}}'.encode()
    lab.sim.run_until(lab.sim.now + 20.0)
    assert lab.send_to_bmc("POST", target, press).result().status == 204
    assert lab.send_to_bmc("POST", target, press).result().status == 204  # pressed again, it has no effect
    assert machine.logind.preparing_for_shutdown
    assert power(lab) == ("on", True)
    lab.sim.run_until(lab.sim.now + 120.0)
    assert power(lab) == ("off", False)
    assert lab.send_to_bmc("POST", target, press).result().status == (204 if kind == "PushPowerButton" else 409)
    assert power(lab)[0] == ("on" if kind == "PushPowerButton" else "off")


def test_a_power_button_that_is_ignored(lab: DirectLab) -> None:
    machine = lab.cluster.machines["w1"]
    machine.files["/etc/systemd/logind.conf.d/key.conf"] = "[Login]\nHandlePowerKey=ignore\n"
    machine.logind.reload()
    target = f"{lab.bmc_path('w1')}/Actions/ComputerSystem.Reset"
    assert lab.send_to_bmc("POST", target, b'{"ResetType": "GracefulShutdown"}').result().status == 204
    lab.sim.run_until(lab.sim.now + 120.0)
    assert machine.state == "on"


def test_a_windows_machine_runs_programs_and_is_lost_when_it_goes_down() -> None:
    lab = DirectLab(LabSpec(nodes=[*NODES, NodeSpec(name="w3", os="windows")]))
    lab.start()
    host = lab.hosts["w3"]
    program = host.run(system_program("hostname"), "")
    assert (program.task.result(), program.stdout.strip()) == (0, "w3")
    assert host.run(f"{system_program('sc')} query nosuch", "").task.result() == 1060  # ERROR_SERVICE_DOES_NOT_EXIST
    script = powershell("failsafe-run", wait=600, program=system_program("hostname"), arguments=[], task="t")
    waits = host.run(" ".join(script), "")
    lab.sim.run_until(lab.sim.now + 30.0)
    assert not waits.task.done
    host.machine.power_off()
    assert (waits.is_lost, waits.task.done, host.is_reachable) == (True, True, False)
