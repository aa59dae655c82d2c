"""Processes of a Windows machine that die, and failure actions."""

from __future__ import annotations

from tests.kit.win_host import WindowsHost


def test_a_killed_containerd_comes_back_while_the_kubelet_runs_on() -> None:
    host = WindowsHost()
    host.kill("containerd")
    assert not host.machine.runtime.is_available
    host.wait(9.0)
    assert "1  STOPPED" in host.run("sc.exe query containerd")[1]
    host.wait(3.0)
    assert "4  RUNNING" in host.run("sc.exe query containerd")[1]
    assert (host.machine.runtime.is_available, host.machine.kubelet.is_running) == (True, True)


def test_a_killed_kubelet_is_started_by_its_failure_action() -> None:
    host = WindowsHost()
    host.kill("kubelet")
    host.wait(1.0)
    assert "1  STOPPED" in host.run("sc.exe query kubelet")[1]
    host.wait(15.0)
    assert host.machine.kubelet.is_running


def test_a_service_without_a_failure_action_stays_down() -> None:
    host = WindowsHost()
    host.machine.services.get("containerd").restart_after = None
    host.kill("containerd")
    host.wait(60.0)
    assert "1  STOPPED" in host.run("sc.exe query containerd")[1]
