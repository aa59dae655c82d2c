"""Processes of a Windows machine that die, and failure actions."""

from __future__ import annotations

import pytest

from tests.kit.win_host import WindowsHost


def test_a_killed_containerd_comes_back_while_the_kubelet_runs_on() -> None:
    host = WindowsHost()
    assert host.run("sc.exe stop containerd")[0] == 1051
    pid = host.machine.services.get("containerd").pid
    code, out, _ = host.run("taskkill.exe /f /im containerd.exe")
    assert (code, out) == (0, f'SUCCESS: The process "containerd.exe" with PID {pid} has been terminated.\r\n')
    assert not host.machine.runtime.is_available
    assert host.run("taskkill.exe /f /im containerd.exe")[0] == 128
    host.wait(9.0)
    assert "1  STOPPED" in host.run("sc.exe query containerd")[1]
    host.wait(3.0)
    assert "4  RUNNING" in host.run("sc.exe query containerd")[1]
    assert (host.machine.runtime.is_available, host.machine.kubelet.is_running) == (True, True)
    assert 7031 in host.event_ids()


def test_failure_actions_can_be_cleared_and_set() -> None:
    host = WindowsHost()
    out = host.run("sc.exe qfailure containerd")[1]
    assert "RESTART -- Delay = 10000 milliseconds." in out
    assert host.run('sc.exe failure containerd reset= 0 actions= ""')[0] == 0
    host.run("taskkill.exe /f /im containerd.exe")
    host.wait(60.0)
    assert "1  STOPPED" in host.run("sc.exe query containerd")[1]
    assert "RESTART" not in host.run("sc.exe qfailure containerd")[1]
    assert host.run("sc.exe failure containerd reset= 0 actions= restart/3000")[0] == 0
    host.run("sc.exe start containerd")
    host.wait(2.0)
    host.run("taskkill.exe /f /im containerd.exe")
    host.wait(4.0)
    assert "4  RUNNING" in host.run("sc.exe query containerd")[1]
    assert host.run("sc.exe failure containerd reset= 0 actions= dance/1")[0] == 1639


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("sc.exe stop containerd", 1051),
        ("sc.exe start containerd", 1056),
        ("sc.exe stop wuauserv", 1062),
        ("sc.exe stop nope", 1060),
        ("sc.exe stop gpsvc", 1052),
        ("sc.exe qpreshutdown kubelet", 1639),
        ("taskkill.exe /im containerd.exe", 1),
        ("taskkill.exe /f /pid 4242", 128),
        ("timeout.exe /t 5 /nobreak", 1),
    ],
)
def test_codes(line: str, code: int) -> None:
    assert WindowsHost().run(line)[0] == code
