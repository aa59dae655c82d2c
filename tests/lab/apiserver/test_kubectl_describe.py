"""kubectl describe, wait and watch, with the real binary, on a free-running lab."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.kit.kubectl_lab import Kubectl, table

pytestmark = pytest.mark.lab


def fields(text: str) -> dict[str, str]:
    """First words of lines, and the text after the colon."""
    return {
        key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines() if line[:1] > " ")
    }


def events(text: str) -> set[str]:
    """Reasons in the table of events at the end."""
    lines = text.partition("\nEvents:\n")[2].splitlines()[2:]
    return {line.split()[1] for line in lines}


def test_node(kubectl: Kubectl) -> None:
    kubectl.wait_until_ready("db-1")
    text = kubectl("describe", "node", "w1")
    found = fields(text)
    assert (found["Name"], found["Unschedulable"], found["Taints"]) == ("w1", "false", "<none>")
    assert "HolderIdentity:  w1" in text
    listed = re.findall(r"^  default +(\S+) ", text, re.MULTILINE)
    running = kubectl("get", "pods", "-o", "name", "--field-selector", "spec.nodeName=w1").split()
    assert [f"pod/{name}" for name in listed] == running
    assert events(text) == {"RegisteredNode"}  # kubelets name no uid, so kubectl does not find their events


def test_pod(kubectl: Kubectl) -> None:
    kubectl.wait_until_ready("db-0")
    text = kubectl("describe", "pod", "db-0")
    found = fields(text)
    assert (found["Status"], found["Controlled By"], found["QoS Class"]) == ("Running", "StatefulSet/db", "BestEffort")
    assert {"Scheduled", "Created", "Started"} <= events(text)


def test_workloads(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
    text = kubectl("describe", "deployment", "web")
    assert fields(text)["Replicas"] == "3 desired | 3 updated | 3 total | 3 available | 0 unavailable"
    assert re.search(r"^NewReplicaSet: +web-\w+ \(3/3 replicas created\)$", text, re.MULTILINE)
    assert events(text) == {"ScalingReplicaSet"}
    assert fields(kubectl("describe", "sts", "db"))["Update Strategy"] == "RollingUpdate"
    assert fields(kubectl("describe", "ds", "agent"))["Desired Number of Nodes Scheduled"] == "3"
    budget = kubectl("describe", "pdb", "web")
    assert (fields(budget)["Min available"], "Allowed disruptions:  1" in budget) == ("2", True)


def test_service(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
    found = fields(kubectl("describe", "service", "web"))
    assert (found["Type"], found["IP"], found["TargetPort"]) == ("ClusterIP", "10.96.0.2", "80/TCP")
    (row,) = table(kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web"))
    assert (row["ADDRESSTYPE"], row["PORTS"], len(row["ENDPOINTS"].split(","))) == ("IPv4", "80", 3)
    assert {address + ":80" for address in row["ENDPOINTS"].split(",")} >= set(found["Endpoints"].split(","))


@pytest.mark.parametrize("what", ["namespaces", "configmaps", "leases", "priorityclasses", "replicasets", "events"])
def test_everything_can_be_described(kubectl: Kubectl, what: str) -> None:
    assert "Name:" in kubectl("describe", what, "--all-namespaces")


def test_wait_for_a_condition_of_a_pod(kubectl: Kubectl, free_lab: Any) -> None:
    pods = "/api/v1/namespaces/default/pods"
    spec = {"containers": [{"name": "c", "image": "busybox"}], "terminationGracePeriodSeconds": 20}
    with kubectl.start("wait", "--for=create", "pod/alone", "--timeout=30s") as waiting:
        assert free_lab.api("POST", pods, {"metadata": {"name": "alone"}, "spec": spec})[0] == 201
        assert waiting.communicate(timeout=40) == ("pod/alone condition met\n", "")
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/alone", "--timeout=30s")
    with kubectl.start("wait", "--for=delete", "pod/alone", "--timeout=30s", "-v=6") as waiting:
        assert waiting.stderr
        assert any("watch=true" in line for line in waiting.stderr)  # reads until the watch has started
        assert free_lab.api("DELETE", f"{pods}/alone")[0] == 200
        assert waiting.communicate(timeout=40)[0] == "pod/alone condition met\n"
    assert kubectl.run("get", "pod", "alone").returncode == 1


def test_wait_gives_up(kubectl: Kubectl) -> None:
    ran = kubectl.run("wait", "--for=condition=DiskPressure", "node/w1", "--timeout=1s")
    assert (ran.returncode, ran.stderr) == (1, "error: timed out waiting for the condition on nodes/w1\n")


def test_watch(kubectl: Kubectl, free_lab: Any) -> None:
    """One heading, then a line per change: the pod ends, and another replaces it."""
    kubectl.wait_until_ready("db-0")
    with kubectl.start("get", "pods", "-l", "app=db", "-w", "-o", "wide") as watching:
        assert watching.stdout
        heading = watching.stdout.readline().split()
        assert heading[:4] == ["NAME", "READY", "STATUS", "RESTARTS"]
        assert free_lab.api("DELETE", "/api/v1/namespaces/default/pods/db-0")[0] == 200
        lines: list[list[str]] = []
        while [status for status in statuses(lines, "db-0") if status][-3:] != ["Terminating", "Pending", "Running"]:
            lines.append(watching.stdout.readline().split())
        watching.terminate()
    assert all("NAME" not in line for line in lines)


def statuses(lines: list[list[str]], name: str) -> list[str]:
    """Changes of the third column; ContainerCreating counts as Pending."""
    found: list[str] = []
    for line in lines:
        status = line[2].replace("ContainerCreating", "Pending").replace("Completed", "Terminating")
        if line[0] == name and found[-1:] != [status]:
            found.append(status)
    return found


def test_watch_ends_with_its_timeout(kubectl: Kubectl) -> None:
    ran = kubectl.run("get", "nodes", "--watch-only", "-o", "name", "--request-timeout=2s")
    assert ran.returncode == 0
