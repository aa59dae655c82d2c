"""Nodes that are containers, without ssh: docker's sessions and docker's power, restart policy and all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.drive import drive
from tests.kit.machines import RealHost
from tests.kit.suite import others_nightly

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
POLICY = "{{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}}"


@pytest.fixture
def kind(three: list[RealHost]) -> Iterator[RealHost]:
    """One with a restart policy that would power it on again at once, as kind's nodes have."""
    host = three[2]
    host.docker("update", "--restart=always", host.name)
    yield host
    host.docker("update", "--restart=no", host.name)


@pytest.mark.parametrize(
    "action", others_nightly(["poweroff", "power-cut", "kubelet-freeze"], ("poweroff", "kubelet-freeze"))
)
def test_actions_by_docker_alone(kind: RealHost, tmp_path: Path, action: str) -> None:
    seen: list[str] = []

    def during(_: object) -> None:
        seen.append(kind.docker("inspect", "--format", POLICY, kind.name))

    result = drive(kind, action, {}, tmp_path, during=during, then="6s", transport="docker")
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert seen == ["always:0" if action == "kubelet-freeze" else "no:0"]
    assert kind.docker("inspect", "--format", POLICY, kind.name) == "always:0"
    kind.await_boot()
