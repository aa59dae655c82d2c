"""kubectl exec against the lab: the real client speaks WebSocket, with the status of the program in channel 3."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.kit.kubectl_lab import Kubectl

pytestmark = pytest.mark.lab
_ENTER = ("nsenter", "-t", "1", "-m", "-u", "-i", "-n", "-p", "--")


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "shell", "image": "busybox", "securityContext": {"privileged": True}}
    whole = {"nodeName": "w1", "hostPID": True, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": whole}


@pytest.fixture(scope="module")
def shell(kubectl: Kubectl) -> str:
    kubectl("create", "-f", "-", stdin=json.dumps(pod("shell")))
    kubectl("wait", "--for=condition=Ready", "pod/shell", "--timeout=30s")
    return "shell"


def test_the_streams_and_the_exit_code_are_those_of_the_program(kubectl: Kubectl, shell: str) -> None:
    ran = kubectl.run("exec", shell, "--", *_ENTER, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ran.returncode, ran.stdout) == (3, "out\n")
    assert ran.stderr == "err\ncommand terminated with exit code 3\n"
    assert kubectl("exec", shell, "--", *_ENTER, "whoami") == "root\n"
    assert kubectl("exec", shell, "--", *_ENTER, "hostname") == "w1\n"


def test_stdin_reaches_the_program_and_ends(kubectl: Kubectl, shell: str) -> None:
    assert kubectl("exec", "-i", shell, "--", *_ENTER, "cat", stdin="a\nb\nc") == "a\nb\nc"


def test_a_program_that_the_image_has_not(kubectl: Kubectl, shell: str) -> None:
    ran = kubectl.run("exec", shell, "--", "no-such-program")
    assert ran.returncode == 1
    assert 'exec: "no-such-program": executable file not found in $PATH' in ran.stderr


@pytest.mark.parametrize(
    ("name", "spec", "error"),
    [
        ("tame", {"containers": [{"name": "shell", "image": "busybox"}]}, "Permission denied"),
        ("own", {"hostPID": False}, "needs hostPID"),
    ],
)
def test_what_the_pod_must_have(kubectl: Kubectl, name: str, spec: dict[str, Any], error: str) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps(pod(name, **spec)))
    kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=30s")
    ran = kubectl.run("exec", name, "--", *_ENTER, "true")
    assert ran.returncode == 1
    assert error in ran.stderr


def test_a_pod_or_a_container_that_does_not_exist(kubectl: Kubectl, shell: str) -> None:
    assert 'pods "missing" not found' in kubectl.run("exec", "missing", "--", "true").stderr
    assert "container missing is not valid" in kubectl.run("exec", shell, "-c", "missing", "--", "true").stderr


def test_without_its_kubelet_nothing_runs(kubectl: Kubectl, shell: str, free_lab: Any) -> None:
    """The stop of the kubelet ends the stream, too: its result is unknown."""
    begun = time.monotonic()
    ran = kubectl.run("exec", shell, "--", *_ENTER, "sh", "-c", "systemctl stop kubelet; sleep 100")
    assert ran.returncode != 0
    assert time.monotonic() - begun < 30
    refused = kubectl.run("exec", shell, "--", *_ENTER, "true")
    assert "error dialing backend: dial tcp" in refused.stderr
    assert "connection refused" in refused.stderr
    assert free_lab is not None


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_pod_security_admission(kubectl: Kubectl, level: str) -> None:
    kubectl("create", "namespace", level)
    kubectl("label", "namespace", level, f"pod-security.kubernetes.io/enforce={level}")
    document = pod("shell")
    document["metadata"]["namespace"] = level
    ran = kubectl.run("create", "-f", "-", stdin=json.dumps(document))
    assert ran.returncode == 1
    broken = "host namespaces (hostPID=true), privileged"
    assert f'is forbidden: violates PodSecurity "{level}:latest": {broken}' in ran.stderr
