"""Running containers and the kubelet's journal: output of crictl and journalctl, real and simulated."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.fact import HostFact
from chaos.core.registry import discover
from tests.kit.lab_host import Host

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
CONTAINERS, JOURNAL = FACTS["containers"], FACTS["kubelet-journal"]
SOCKET, CLIENT = FACTS["runtime-socket"], FACTS["runtime-client"]
CRICTL = {"runtime-client": "/usr/bin/crictl"}
LABELS = {
    "io.kubernetes.container.name": "web",
    "io.kubernetes.pod.name": "web-1",
    "io.kubernetes.pod.namespace": "demo",
    "io.kubernetes.pod.uid": "u1",
}
LISTED = {
    "id": "87d3",
    "podSandboxId": "aa",
    "metadata": {"name": "web", "attempt": 0},
    "state": "CONTAINER_RUNNING",
    "createdAt": "1795232137988077600",
    "labels": LABELS,
}
FOUND = {
    "namespace": "demo",
    "pod": "web-1",
    "uid": "u1",
    "container": "web",
    "id": "87d3",
    "startedAt": 1795232137.988,
}
KLOG = 'I1121 03:35:37.988077    1234 nodeshutdown_manager_linux.go:300] "Shutdown manager processing shutdown event"'


def entry(message: object) -> str:
    return json.dumps({"__CURSOR": "s=1", "__REALTIME_TIMESTAMP": "1795232137988077", "MESSAGE": message}) + "\n"


@pytest.mark.parametrize(
    ("fact", "stdout", "exit_code", "value"),
    [
        (CONTAINERS, json.dumps({"containers": [LISTED]}), 0, {"running": [FOUND]}),
        (CONTAINERS, '{"containers": []}', 0, {"running": []}),
        (CONTAINERS, '{"containers": null}', 0, {"running": []}),
        (JOURNAL, entry(KLOG), 0, {"lines": [{"t": 1795232137.988077, "message": KLOG}]}),
        (JOURNAL, entry(list(b"\xffx")), 0, {"lines": [{"t": 1795232137.988077, "message": "\ufffdx"}]}),
        (JOURNAL, "", 1, {"lines": []}),  # nothing found
    ],
)
def test_what_is_printed(fact: HostFact, stdout: str, exit_code: int, value: Any) -> None:
    assert fact.parse(stdout, exit_code) == value


@pytest.mark.parametrize(
    ("fact", "stdout", "exit_code", "error"),
    [
        (CONTAINERS, "", 127, "client did not answer"),
        (CONTAINERS, "", 1, "client did not answer"),
        (CONTAINERS, "[]", 0, "cannot parse"),
        (CONTAINERS, json.dumps({"containers": [{**LISTED, "labels": {}}]}), 0, "cannot parse"),
        (CONTAINERS, json.dumps({"containers": [{**LISTED, "createdAt": "noon"}]}), 0, "cannot parse"),
        (JOURNAL, "sh: 1: exec: journalctl: not found", 127, "journalctl failed: sh: 1: exec: journalctl: not found"),
        (JOURNAL, "Compiled without pattern matching support", 1, "Compiled without pattern matching support"),
        (JOURNAL, '{"MESSAGE": "x"}', 0, "cannot parse"),
    ],
)
def test_what_is_not_understood(fact: HostFact, stdout: str, exit_code: int, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        fact.parse(stdout, exit_code)


def read(host: Host, fact: HostFact, root: bool = True, **known: Any) -> Any:
    """Value of a fact on a simulated host."""
    known = {name.replace("_", "-"): value for name, value in known.items()}
    code, out, _ = host.run(shlex.join(fact.command_for(known).argv), root=root)
    return fact.parse(out, code)


def test_a_simulated_host_lists_running_containers() -> None:
    host = Host()
    host.cluster.create_object(
        "pods",
        {
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"nodeName": "w1", "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]},
        },
    )
    known = {"runtime_socket": read(host, SOCKET), "runtime_client": read(host, CLIENT)}
    assert read(host, CONTAINERS, **known) == {"running": []}
    host.cluster.sim.run_until(host.cluster.sim.now + 10)
    pod = host.cluster.store.get("pods", "default", "p")
    assert pod is not None
    running = read(host, CONTAINERS, **known)["running"]
    assert sorted((c["namespace"], c["pod"], c["uid"], c["container"]) for c in running) == [
        ("default", "p", pod["metadata"]["uid"], name) for name in "ab"
    ]
    assert {f"containerd://{c['id']}" for c in running} == {
        s["containerID"] for s in pod["status"]["containerStatuses"]
    }
    host.run("systemctl stop kubelet")
    host.cluster.registry.delete("pods", "default", "p", 0)
    host.cluster.sim.run_until(host.cluster.sim.now + 30)
    assert read(host, CONTAINERS, **known)["running"] == running, "gone from the API, alive on the node"
    host.run("systemctl stop containerd")
    with pytest.raises(ValueError, match="client did not answer"):
        read(host, CONTAINERS, **known)


def test_only_root_may_use_the_runtime_socket() -> None:
    code, _, err = Host().run(shlex.join(CONTAINERS.command_for(CRICTL | {"runtime-socket": "/run/x"}).argv))
    assert (code, "no such file" in err) == (1, True)
    code, _, err = Host().run(
        shlex.join(CONTAINERS.command_for(CRICTL | {"runtime-socket": "/run/containerd/containerd.sock"}).argv),
        root=False,
    )
    assert (code, "permission denied" in err) == (1, True)


def test_a_simulated_shutdown_manager_logs_what_it_does() -> None:
    host = Host()
    host.cluster.create_object(
        "pods",
        {
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {
                "nodeName": "w1",
                "containers": [{"name": "a", "image": "x"}],
                "terminationGracePeriodSeconds": 7,
            },
        },
    )
    host.cluster.sim.run_until(host.cluster.sim.now + 10)
    assert read(host, JOURNAL, kubelet_unit="kubelet.service", unread_seconds=60) == {"lines": []}
    start = host.cluster.sim.now
    host.machine.logind.power_off()
    host.cluster.sim.run_until(start + 1)
    host.machine.power_on()
    host.cluster.sim.run_until(start + 60)
    lines = read(host, JOURNAL, kubelet_unit="kubelet.service", unread_seconds=60)["lines"]
    messages = [line["message"].partition("] ")[2] for line in lines]
    assert messages == [
        '"Shutdown manager detected new shutdown event" event="shutdown"',
        '"Shutdown manager processing shutdown event"',
        '"Shutdown manager killing pod with gracePeriod" pod="default/p" gracePeriod=7',
        '"Shutdown manager finished killing pod" pod="default/p"',
        '"Done waiting for all pods in group to terminate" gracePeriod=20 priority=0',
        '"Shutdown manager completed processing shutdown event, node will shutdown shortly"',
    ], "the journal outlives the boot"
    assert all(start <= line["t"] <= start + 2 for line in lines)
    assert read(host, JOURNAL, kubelet_unit="kubelet.service", unread_seconds=30) == {"lines": []}
    assert read(host, JOURNAL, kubelet_unit="other.service", unread_seconds=60) == {"lines": []}


def test_a_quiet_kubelet_logs_nothing() -> None:
    host = Host()
    host.machine.spec.kubelet_verbosity = 0
    host.machine.logind.power_off()
    host.cluster.sim.run_until(host.cluster.sim.now + 0.5)
    assert read(host, JOURNAL, kubelet_unit="kubelet.service", unread_seconds=60) == {"lines": []}
