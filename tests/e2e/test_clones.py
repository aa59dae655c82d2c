"""Clones of one image, which share their IDs: only what names the Node on its host binds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.processes import lab, nodefall
from tests.kit.wrong_machines import experiment

pytestmark = pytest.mark.lab
CLONES = ["machine-id", "system-uuid", "boot-id"]
RESTART = {"name": "restart", "action": "kubelet-restart", "target": "victim"}
NOT_DISTINGUISHED = "worker-1 cannot be recognized later: its machine ID is shared, its kubelet has no certificate"


@pytest.mark.parametrize(
    ("kubelet", "shared", "code", "message"),
    [
        ("certificate", CLONES, 0, "it is the machine of its Node by the kubelet's client certificate"),
        ("certificate", [*CLONES, "host-key"], 0, "the host key of worker-1 proves nothing: control-plane, worker-2"),
        ("hostname-override", CLONES, 0, "it is the machine of its Node by the kubelet's --hostname-override"),
        ("hostname-override", [*CLONES, "host-key"], 4, NOT_DISTINGUISHED),
        ("none", CLONES, 4, "no proof that host worker-1 is the machine of the Node worker-1"),
    ],
)
def test_clones_need_a_name_on_the_host(
    tmp_path: Path, kubelet: str, shared: list[str], code: int, message: str
) -> None:
    with lab(tmp_path, sharedIdentity=shared, kubeletIdentity=kubelet) as inventory:
        path = experiment(tmp_path, RESTART)
        doctor = nodefall("doctor", path, "-i", inventory, "--all", cwd=tmp_path)
        assert message in " ".join((doctor.stdout + doctor.stderr).split())
        done = nodefall("run", path, "-i", inventory, "--anyway", cwd=tmp_path)
        assert done.returncode == code, done.stderr
