"""Running containers where there is no crictl: what ctr of containerd 1.6 printed, through the script of the fact."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import chaos.faults.readings
from chaos.core.fact import HostFact
from chaos.core.registry import discover

FACTS: dict[str, HostFact] = discover(chaos.faults.readings, HostFact)
CONTAINERS, CLIENT = FACTS["containers"], FACTS["runtime-client"]
SOCKET = "/run/containerd/containerd.sock"
TASKS = (
    "TASK     PID      STATUS    \nabc3     14739    RUNNING\npause    14817    RUNNING\nold      14900    STOPPED\n"
)
LABELS = """        "io.kubernetes.pod.name": "db-0",
        "io.kubernetes.pod.namespace": "demo",
        "io.kubernetes.pod.uid": "u1"
"""
INFO = """{
    "ID": "%s",
    "Labels": {
        "io.cri-containerd.kind": "%s",
%s    },
    "Image": "",
    "Runtime": {
        "Name": "io.containerd.runc.v2",
        "Options": {
            "type_url": "containerd.runc.v1.Options"
        }
    },
    "SnapshotKey": "",
    "CreatedAt": "2026-11-22T12:17:49.066522561Z",
    "UpdatedAt": "2026-11-22T12:17:49.066522561Z",
    "Extensions": null,
    "Spec": {
        "process": {
            "args": [
                "/bin/sleep",
                "1000"
            ],
            "env": [
                "PASSWORD=hunter2"
            ]
        },
        "annotations": {
%s        }
    }
}
"""
NAMED = '        "io.kubernetes.container.name": "c",\n' + LABELS
FOUND = {
    "namespace": "demo",
    "pod": "db-0",
    "uid": "u1",
    "container": "c",
    "id": "abc3",
    "startedAt": 1795349869.067,
}


def ctr(folder: Path, tasks: str = TASKS, **info: str) -> Path:
    """A program that prints ``tasks`` and the ``info`` of each container; without an info it fails, as ctr does."""
    (folder / "tasks").write_text(tasks)
    for name, text in info.items():
        (folder / f"{name}.json").write_text(text)
    program = folder / "ctr"
    program.write_text(
        f'#!/bin/sh\ncd {folder}\ncase "$*" in\n*"tasks ls") cat tasks ;;\n*) shift 6; cat "$1.json" ;;\nesac\n'
    )
    program.chmod(0o755)
    return program


def run(program: Path) -> subprocess.CompletedProcess[str]:
    command = CONTAINERS.command_for({"runtime-client": str(program), "runtime-socket": SOCKET})
    return subprocess.run(command.argv, capture_output=True, text=True, check=False)


CONTAINER = INFO % ("abc3", "container", NAMED, NAMED)
SANDBOX = INFO % ("pause", "sandbox", LABELS, LABELS)


def test_containers_without_the_sandboxes_of_their_pods(tmp_path: Path) -> None:
    done = run(ctr(tmp_path, abc3=CONTAINER, pause=SANDBOX))
    assert CONTAINERS.parse(done.stdout, done.returncode) == {"running": [FOUND]}


def test_the_environment_of_a_container_stays_on_the_host(tmp_path: Path) -> None:
    assert "hunter2" not in run(ctr(tmp_path, abc3=CONTAINER, pause=SANDBOX)).stdout


def test_a_container_that_ends_meanwhile_makes_the_list_unknown(tmp_path: Path) -> None:
    done = run(ctr(tmp_path, pause=SANDBOX))
    with pytest.raises(ValueError, match="cannot parse"):
        CONTAINERS.parse(done.stdout, done.returncode)


def test_nothing_runs(tmp_path: Path) -> None:
    done = run(ctr(tmp_path, "TASK    PID    STATUS    \n"))
    assert CONTAINERS.parse(done.stdout, done.returncode) == {"running": []}


def test_a_containerd_that_does_not_answer(tmp_path: Path) -> None:
    program = ctr(tmp_path)
    program.write_text('#!/bin/sh\necho "ctr: failed to dial" >&2\nexit 1\n')
    done = run(program)
    assert "failed to dial" in done.stderr
    with pytest.raises(ValueError, match="client did not answer"):
        CONTAINERS.parse(done.stdout, done.returncode)


@pytest.mark.parametrize(
    ("stdout", "exit_code", "expected"),
    [
        ("/usr/bin/crictl\n", 1, "/usr/bin/crictl"),
        ("/usr/bin/ctr\n", 1, "/usr/bin/ctr"),
        ("/usr/local/bin/ctr\n/usr/bin/crictl\n", 1, "/usr/bin/crictl"),
        ("/var/lib/rancher/rke2/bin/crictl\n", 1, "/var/lib/rancher/rke2/bin/crictl"),
    ],
)
def test_the_client_that_is_used(stdout: str, exit_code: int, expected: str) -> None:
    assert CLIENT.parse(stdout, exit_code) == expected


@pytest.mark.parametrize(("exit_code", "error"), [(1, "neither crictl nor ctr is installed"), (127, "did not answer")])
def test_no_client(exit_code: int, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        CLIENT.parse("", exit_code)


@pytest.mark.parametrize(
    ("client", "argv"),
    [
        ("/usr/bin/crictl", ("/usr/bin/crictl", "--runtime-endpoint", f"unix://{SOCKET}", "ps")),
        ("/opt/bin/ctr", ("sh", "-c")),
    ],
)
def test_the_command_of_each_client(client: str, argv: tuple[str, ...]) -> None:
    known: dict[str, Any] = {"runtime-client": client, "runtime-socket": SOCKET}
    assert CONTAINERS.command_for(known).argv[: len(argv)] == argv
