"""Graceful shutdown of Windows nodes: what upstream's node_shutdown.go asserts, and when it works at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chaos.lab.node.kubelet.metrics import STATE_FILE, read_state_file
from chaos.lab.objects import Object, condition_status
from chaos.lab.spec import PriorityGrace
from chaos.lab.windows.disk import CONTROL, SERVICES
from chaos.lab.windows.power import merge_order
from tests.kit.win_host import WindowsHost

NORMAL, CRITICAL = {"normal-20": 20, "normal-25": 25}, {"critical-5": 5, "critical-10": 10, "critical-20": 20}
GRACE: dict[str, Any] = {"shutdown_grace_period": "20s", "shutdown_grace_period_critical_pods": "10s"}
MESSAGE = "Pod was terminated in response to imminent node shutdown."


def _pod(name: str, grace: int, *, critical: bool, **annotations: str) -> Object:
    marks = {f"lab.nodefall.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    spec: Any = {
        "containers": [{"name": "c", "image": "agnhost"}],
        "nodeName": "win1",
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "terminationGracePeriodSeconds": grace,
    }
    if critical:
        spec["priorityClassName"] = "system-node-critical"
    namespace = "kube-system" if critical else "default"
    return {"metadata": {"name": name, "namespace": namespace, "annotations": marks}, "spec": spec}


def _host(**settings: Any) -> WindowsHost:
    """A host with upstream's pods, which ignore SIGTERM, running."""
    host = WindowsHost(**{**GRACE, **settings})
    for pods, critical in ((NORMAL, False), (CRITICAL, True)):
        for name, grace in pods.items():
            host.cluster.create_object("pods", _pod(name, grace, critical=critical, ignores_sigterm="true"))
    host.wait(20.0)
    assert all(pod["status"]["phase"] == "Running" for pod in _pods(host).values())
    return host


def _pods(host: WindowsHost) -> dict[str, Object]:
    return {pod["metadata"]["name"]: pod for pod in host.cluster.store.pods_on("win1")}


def _is_shut_down(pod: Object) -> bool:
    status = pod["status"]
    texts = (status.get("phase"), status.get("reason"), status.get("message"))
    return texts == ("Failed", "Terminated", MESSAGE) and condition_status(pod, "ContainersReady") == "False"


def _states(host: WindowsHost, seconds: float) -> Iterator[dict[str, Object]]:
    """The pods ten times a second."""
    for _ in range(int(seconds * 10)):
        host.wait(0.1)
        yield _pods(host)


def test_normal_pods_end_before_critical_ones() -> None:
    """test/e2e/windows/node_shutdown.go: cases (a) to (d)."""
    host = _host()
    assert host.run("shutdown.exe -r -t 60")[0] == 0
    normals_down_alone = all_down = False
    for pods in _states(host, 100.0):
        for pod in pods.values():
            is_ready = condition_status(pod, "Ready") == "True"
            assert not (pod["status"]["phase"] == "Failed" and is_ready), "a Failed pod is Ready"
        normal, critical = ([_is_shut_down(pods[name]) for name in names] for names in (NORMAL, CRITICAL))
        if any(critical):
            assert all(normal), "a critical pod ended before a normal one"
        normals_down_alone = normals_down_alone or (all(normal) and not any(critical))
        all_down = all_down or (all(normal) and all(critical))
    assert (normals_down_alone, all_down) == (True, True)
    for pod in _pods(host).values():
        assert "False" in [item["status"] for item in pod["status"]["conditions"]]
        assert condition_status(pod, "DisruptionTarget") == "True"


def test_a_reboot_raises_the_boot_id_by_one_and_keeps_the_state_file() -> None:
    host = _host()
    before, node = int(host.machine.boot_id), host.cluster.store.get("nodes", "", "win1")
    assert node is not None
    assert node["status"]["nodeInfo"]["bootID"] == str(before)
    host.run("shutdown /r /f /t 5")
    host.wait(120.0)
    node = host.cluster.store.get("nodes", "", "win1")
    assert node is not None
    assert (node["status"]["nodeInfo"]["bootID"], condition_status(node, "Ready")) == (str(before + 1), "True")
    start, end = read_state_file(host.machine.files[STATE_FILE])
    assert 15 <= end - start <= 21
    gauges = dict(line.rsplit(" ", 1) for line in host.machine.kubelet.metrics_text().splitlines() if line[0] != "#")
    assert float(gauges["kubelet_graceful_shutdown_start_time_seconds"]) == start
    assert float(gauges["kubelet_graceful_shutdown_end_time_seconds"]) == end
    assert host.machine.kubelet.is_running
    assert host.event_ids()[-4:] == [1074, 13, 6006, 12]


def test_nothing_cancels_once_the_countdown_is_over() -> None:
    host = _host()
    host.run("shutdown /s /t 3")
    host.wait(6.0)
    assert host.machine.power.is_in_progress
    assert host.run("shutdown /a")[0] == 1116
    assert host.run("shutdown /s /t 0")[0] == 1115
    host.wait(60.0)
    assert host.machine.state == "off"


def test_an_abort_within_the_countdown_is_not_seen_by_the_kubelet() -> None:
    host = _host()
    host.run("shutdown /r /t 10")
    host.wait(5.0)
    assert host.run("shutdown /a")[0] == 0
    host.wait(60.0)
    assert STATE_FILE not in host.machine.files
    assert all(pod["status"]["phase"] == "Running" for pod in _pods(host).values())


@pytest.mark.parametrize(
    ("settings", "has_handler"),
    [
        ({}, True),
        ({"kubelet_service": "nssm"}, False),
        ({"shutdown_grace_period": "0s", "shutdown_grace_period_critical_pods": "0s"}, False),
    ],
)
def test_pods_are_ended_only_by_a_real_service_with_a_grace_period(settings: Any, has_handler: bool) -> None:
    host = _host(**settings)
    host.run("shutdown /s /t 0")
    for _ in _states(host, 60.0):
        if host.machine.state == "off":
            break
    assert host.machine.state == "off"
    assert (STATE_FILE in host.machine.files) is has_handler
    assert any(_is_shut_down(pod) for pod in _pods(host).values()) is has_handler


def test_a_missing_preshutdown_order_leaves_the_feature_off() -> None:
    host = WindowsHost(**GRACE)
    host.machine.registry.delete_key(CONTROL)
    host.machine.kubelet.restart()
    host.wait(5.0)
    assert host.machine.services.get("kubelet").on_preshutdown is None
    messages = [record.message for record in host.machine.journal.since(0, "kubelet.service")]
    assert any("Failed to start node shutdown manager" in text for text in messages)
    assert "ACCEPTS_PRESHUTDOWN" in host.run("sc query kubelet")[1]  # of a real service, whatever the feature


def test_the_order_and_the_time_out_are_written_at_the_start() -> None:
    host = WindowsHost(**{**GRACE, "shutdown_grace_period": "60s"})
    order = host.machine.registry.strings(CONTROL, "PreshutdownOrder")
    assert order is not None
    assert order[-2:] == ("kubelet", "containerd")
    assert host.machine.registry.number(f"{SERVICES}\\kubelet", "PreshutdownTimeout") == 60_000


def test_pods_that_outlast_the_time_out_are_not_waited_for() -> None:
    """The registry value is lowered after the start: the manager goes on while the kubelet still ends pods."""
    host = _host()
    host.machine.registry.set(f"{SERVICES}\\kubelet", "PreshutdownTimeout", "REG_DWORD", 4000)
    host.run("shutdown /s /t 0")
    host.wait(12.0)
    assert host.machine.state == "off"
    assert read_state_file(host.machine.files[STATE_FILE])[1] == 0


@pytest.mark.parametrize(
    ("existing", "dependencies", "merged"),
    [
        (["x", "y"], [], ["x", "y"]),
        (["x", "y"], ["containerd"], ["x", "y", "kubelet", "containerd"]),
        (["x", "b", "y", "c", "z"], ["a", "b", "c", "d"], ["x", "kubelet", "b", "y", "c", "z", "a", "d"]),
        (["Kubelet", "x", "Containerd"], ["containerd"], ["x", "kubelet", "Containerd"]),
        ([], ["containerd"], ["kubelet", "containerd"]),
    ],
)
def test_the_merge_of_the_order(existing: list[str], dependencies: list[str], merged: list[str]) -> None:
    assert merge_order(existing, "kubelet", dependencies) == merged


def test_priority_buckets_end_one_after_the_other() -> None:
    """node_shutdown_linux_test.go case 4, here with a service."""
    host = WindowsHost(
        shutdown_grace_period="0s",
        shutdown_grace_period_critical_pods="0s",
        shutdown_grace_period_by_pod_priority=[
            PriorityGrace(priority=0, shutdown_grace_period_seconds=10),
            PriorityGrace(priority=1000, shutdown_grace_period_seconds=10),
            PriorityGrace(priority=2_000_000_000, shutdown_grace_period_seconds=10),
        ],
    )
    host.cluster.create_object("priorityclasses", {"metadata": {"name": "mid"}, "value": 1000})
    for name, cls in (("low", ""), ("mid", "mid"), ("high", "system-node-critical")):
        pod = _pod(name, 5, critical=bool(cls) and cls != "mid", ignores_sigterm="true")
        if cls == "mid":
            pod["spec"]["priorityClassName"] = cls
        host.cluster.create_object("pods", pod)
    host.wait(10.0)
    host.run("shutdown /s /t 1")
    order: list[str] = []
    for pods in _states(host, 60.0):
        order += [name for name, pod in sorted(pods.items()) if _is_shut_down(pod) and name not in order]
    assert order == ["low", "mid", "high"]


def test_the_bmc_shuts_down_in_order_and_a_power_cut_does_not() -> None:
    host = _host()
    host.machine.request_shutdown("poweroff")
    host.wait(60.0)
    assert (host.machine.state, STATE_FILE in host.machine.files) == ("off", True)
    host = _host()
    host.machine.reset()
    host.wait(60.0)
    assert STATE_FILE not in host.machine.files
    assert [number for number in host.event_ids() if number in (41, 6008, 6006)] == [41, 6008]
    host.machine.crash()
    host.wait(90.0)
    assert (host.event_ids()[-2:], host.machine.kubelet.is_running) == ([41, 6008], True)


def test_only_the_label_restricts_the_scheduler() -> None:
    """A pod without a selector may land on a Windows node, as on a real cluster."""
    host = WindowsHost()
    node = host.cluster.store.get("nodes", "", "win1")
    assert node is not None
    labels, info = node["metadata"]["labels"], node["status"]["nodeInfo"]
    assert (labels["kubernetes.io/os"], info["operatingSystem"]) == ("windows", "windows")
    assert labels["node.kubernetes.io/windows-build"] == "10.0.20348"
    pod = _pod("linux", 5, critical=False)
    del pod["spec"]["nodeName"]
    pod["spec"]["nodeSelector"] = {"kubernetes.io/os": "linux"}
    host.cluster.create_object("pods", pod)
    pod = _pod("any", 5, critical=False)
    del pod["spec"]["nodeName"], pod["spec"]["nodeSelector"]
    host.cluster.create_object("pods", pod)
    host.wait(10.0)
    assert set(_pods(host)) == {"any"}
