"""Services, shutdowns, containers without ssh and sudo of real machines.

Services are stopped, frozen, restarted and restored; shutdowns are those of systemd's own logind; docker's sessions and
power control know restart policies; and the file that ``nodefall sudoers`` prints suffices.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from chaos.cli.reference.commands import sudoers_command
from chaos.core.errors import Refused
from tests.kit.drive import drive
from tests.kit.machines import RealHost
from tests.kit.suite import others_nightly

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]

ACTIONS = [
    "kubelet-stop",
    "kubelet-restart",
    "kubelet-freeze",
    "runtime-stop",
    "dbus-restart",
    "logind-restart",
]
STATE = "systemctl is-active kubelet containerd; systemd-inhibit --list --no-legend | grep -c kubelet"


@pytest.mark.parametrize("action", others_nightly(ACTIONS, ("kubelet-stop", "kubelet-freeze", "logind-restart")))
def test_it_is_proven_undone_and_leaves_nothing(three: list[RealHost], tmp_path: Path, action: str) -> None:
    check_action(three[0], action, tmp_path)


@pytest.mark.nightly
def test_a_reboot_is_for_containers_that_start_again(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    with pytest.raises(Refused, match="would stay off: its restart policy is no"):
        drive(host, "hard-reboot", {}, tmp_path)
    host.docker("update", "--restart=on-failure:1", host.name)  # as kind creates its nodes
    try:
        check_action(host, "hard-reboot", tmp_path)
    finally:
        host.docker("update", "--restart=no", host.name)


def check_action(host: RealHost, action: str, tmp_path: Path) -> None:
    result = drive(host, action, {}, tmp_path)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert [undo.proven for undo in result.undo] == [True], result.leftovers
    assert host.run(STATE).split() == ["active", "active", "1"]
    assert not host.run("systemctl list-units --all --no-legend 'nodefall-*'")


def test_a_power_off_waits_for_the_delay_lock_and_is_taken_back(three: list[RealHost], tmp_path: Path) -> None:
    host = three[0]
    result = drive(host, "poweroff", {}, tmp_path)
    (step,) = result.steps
    assert (step.proof_status, step.weak) == ("proven", False), step.because
    assert [(undo.proven, undo.because) for undo in result.undo if undo.step == "do"] != []
    assert all(undo.proven for undo in result.undo), result.leftovers
    assert host.running


@pytest.mark.parametrize("then", ["2s", pytest.param("65s", marks=pytest.mark.nightly)])
def test_a_shutdown_that_is_cancelled_leaves_the_host_up(three: list[RealHost], tmp_path: Path, then: str) -> None:
    """The longer one waits until its time is over."""
    host = three[0]
    started = host.run("ps -o lstart= -p 1")
    cancel = {"name": "cancel", "action": "cancel-shutdown", "target": "victim", "after": "do + 4s"}
    result = drive(host, "schedule-shutdown", {"in": "60s"}, tmp_path, then=then, more=[cancel])
    assert [(step.action, step.proof_status) for step in result.steps] == [
        ("schedule-shutdown", "proven"),
        ("cancel-shutdown", "proven"),
    ], [step.because for step in result.steps]
    assert all(undo.proven for undo in result.undo), result.leftovers
    assert host.running
    assert host.run("ps -o lstart= -p 1") == started
    assert "kubelet" in host.run("systemd-inhibit --list --no-legend")
    assert not host.run("ls /run/systemd/shutdown", check=False)


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


EXPERIMENT = Path(__file__).parents[2] / "experiments" / "graceful-poweroff.yaml"


def test_sudo_takes_it(three: list[RealHost], tmp_path: Path) -> None:
    host = three[2]
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": "i"},
        "cluster": {"kubeconfig": "/nowhere"},
        "hosts": {host.name: {"user": "chaos"}},
    }
    (tmp_path / "i.json").write_text(json.dumps(document))
    (tmp_path / "i.json").chmod(0o600)
    done = CliRunner().invoke(
        sudoers_command, [str(EXPERIMENT), "-i", str(tmp_path / "i.json")], catch_exceptions=False
    )
    installed = host.run("cat /etc/sudoers.d/chaos")
    try:
        host.run("rm /etc/sudoers.d/chaos; ! su chaos -c 'sudo -n true' 2>/dev/null")
        host.docker("exec", "-i", host.name, "sh", "-c", "cat > /etc/sudoers.d/nodefall", stdin=done.output.encode())
        host.run("chmod 440 /etc/sudoers.d/nodefall; visudo -c")
        assert host.run("su chaos -c 'sudo -n -- sh -c \"id -u\"'") == "0"
    finally:
        host.run(
            f"rm -f /etc/sudoers.d/nodefall; echo '{installed}' > /etc/sudoers.d/chaos; chmod 440 /etc/sudoers.d/chaos"
        )
