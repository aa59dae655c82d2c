"""What ``nodefall kind up`` says about the machine before it creates a cluster."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

import chaos.cli.kind.diagnosis
from chaos.cli.kind.diagnosis import CGROUP_REMEDY, cgroup_warning, host_warnings, inotify_warnings
from tests.kit.command_standins import StandIns

PREPARED = "kubeadmConfigPatches:\n- |\n  kind: KubeletConfiguration\n  failCgroupV1: false\n"
KERNEL = platform.release()
WATCHES = "fs.inotify.max_user_watches is 8192, and kind recommends 524288"
INSTANCES = "fs.inotify.max_user_instances is 128, and kind recommends 512"


@pytest.mark.parametrize(
    ("version", "kubelet", "config", "warns"),
    [
        ("1", "v1.36.2", "", True),
        ("v1", "v1.35.0", "", True),  # as podman says
        ("1", "v1.34.9", "", False),
        ("1", "v2.0.0", "", True),
        ("2", "v1.36.2", "", False),
        ("v2", "v1.36.2", "", False),
        ("", "v1.36.2", "", False),
        ("1", "kindest/node:v1.36.2", "", True),
        ("1", "registry.example:5000/kindest/node:v1.36.2@sha256:0a1b", "", True),
        ("1", "kindest/node:v1.33.1", "", False),
        ("1", "registry.example:5000/node", "", False),  # an unknown version
        ("1", "mine:latest", "", False),
        ("1", "v1.36.2", PREPARED, False),
        ("1", "v1.36.2", PREPARED.replace("false", "true"), True),
    ],
)
def test_kubelets_on_cgroup_v1(version: str, kubelet: str, config: str, warns: bool) -> None:
    shown = cgroup_warning(version, kubelet, config)
    expected = f"the kubelet of {kubelet} does not start on cgroup v1, which the containers use: {CGROUP_REMEDY}"
    assert shown == (expected if warns else "")


@pytest.mark.parametrize(
    ("watches", "instances", "expected"),
    [
        ("8192\n", "128\n", [WATCHES, INSTANCES]),
        ("524288\n", "512\n", []),
        ("524287\n", "1024\n", [WATCHES.replace("8192", "524287")]),
        (None, "128\n", [INSTANCES]),
        ("", "no number", []),
    ],
)
def test_limits_of_inotify(tmp_path: Path, watches: str | None, instances: str | None, expected: list[str]) -> None:
    write_limits(tmp_path, watches, instances)
    found = list(inotify_warnings(tmp_path))
    assert [warning.partition(":")[0] for warning in found] == expected
    assert all(f"sudo sysctl {warning.split()[0]}=" in warning for warning in found)


def write_limits(proc: Path, watches: str | None, instances: str | None) -> None:
    folder = proc / "fs" / "inotify"
    folder.mkdir(parents=True)
    for name, value in (("max_user_watches", watches), ("max_user_instances", instances)):
        if value is not None:
            (folder / name).write_text(value)


INFO = {"stdout": f"1 {KERNEL}\n"}
UNIX = {"stdout": "unix:///var/run/docker.sock\n"}
FAILS: dict[str, object] = {"stderr": "template parsing error", "exit": 1}


@pytest.mark.parametrize(
    ("engine", "info", "context", "environ", "expected"),
    [
        ("docker", INFO, UNIX, {}, 3),
        ("docker", INFO, FAILS, {}, 3),
        ("docker", INFO, FAILS, {"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}, 3),
        ("docker", INFO, UNIX, {"DOCKER_HOST": "tcp://192.0.2.1:2376"}, 1),
        ("docker", INFO, UNIX, {"DOCKER_HOST": "ssh://ops@192.0.2.1"}, 1),
        ("docker", INFO, {"stdout": "ssh://ops@192.0.2.1\n"}, {}, 1),
        ("docker", INFO, UNIX, {"CONTAINER_HOST": "ssh://ops@192.0.2.1"}, 3),
        ("docker", {"stdout": "1 6.12.5-linuxkit\n"}, UNIX, {}, 1),  # a virtual machine
        ("docker", {"stdout": f"2 {KERNEL}\n"}, UNIX, {}, 2),
        ("docker", {"stdout": f" {KERNEL}\n"}, UNIX, {}, 0),  # an old engine
        ("docker", FAILS, UNIX, {}, 0),
        ("podman", {"stdout": f"v1 {KERNEL}\n"}, UNIX, {}, 3),
        ("podman", {"stdout": f"v1 {KERNEL}\n"}, UNIX, {"CONTAINER_HOST": "ssh://ops@192.0.2.1"}, 1),
        ("podman", {"stdout": f"v1 {KERNEL}\n"}, UNIX, {"DOCKER_HOST": "ssh://ops@192.0.2.1"}, 3),
        ("missing", INFO, UNIX, {}, 0),
    ],
)
def test_limits_of_this_machine_count_only_for_its_own_engine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    info: dict[str, object],
    context: dict[str, object],
    environ: dict[str, str],
    expected: int,
) -> None:
    standins = StandIns(tmp_path, {"docker info": info, "docker context inspect": context, "podman info": info})
    standins.install("docker", "podman")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}" if engine != "missing" else str(tmp_path / "empty"))
    write_limits(tmp_path / "proc", "8192", "128")
    monkeypatch.setattr(chaos.cli.kind.diagnosis, "_PROC", tmp_path / "proc")
    name = "docker" if engine == "missing" else engine
    assert len(host_warnings(name, "v1.36.2", tmp_path / "missing.yaml", environ)) == expected
