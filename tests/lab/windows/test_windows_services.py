"""The service control manager: order of a shutdown, time-outs, dependencies; and what a boot starts.

Processes of a Windows machine that die, and failure actions.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from chaos.lab.rules import WindowsRules
from chaos.lab.sim import SimClock
from chaos.lab.spec import LabSpec, SpecError
from chaos.lab.windows.disk import CONTROL, CRASH_CONTROL, SERVICES, KeyPathError, WindowsRegistry
from chaos.lab.windows.machine import WINRM
from chaos.lab.windows.services import RUNNING, STOPPED, Service, ServiceError, ServiceManager
from tests.kit.win_host import WindowsHost
from tests.kit.winrm_exchanges import read

PRESHUTDOWN = frozenset({"STOP", "PRESHUTDOWN"})


class Manager:
    """Services a to d that accept the pre-shutdown notice, and z that accepts the shutdown notice."""

    def __init__(self) -> None:
        self.sim = SimClock(0.0, 1)
        self.registry = WindowsRegistry()
        self.manager = ServiceManager(self.sim, self.registry, WindowsRules())
        self.stopped: list[tuple[str, float]] = []
        for name in "abcd":
            self.manager.add(Service(name, name, "x.exe", PRESHUTDOWN))
        self.manager.add(Service("z", "z", "x.exe", frozenset({"STOP", "SHUTDOWN"})))
        for service in self.manager.all():
            self.manager.run_at_once(service)
        self.manager.on_change.append(self._note)

    def _note(self, service: Service) -> None:
        if service.state == STOPPED:
            self.stopped.append((service.name, round(self.sim.now, 1)))

    def shut_down(self) -> float | None:
        """Time at which the manager is ready, None if it is not within an hour."""
        ended: list[float] = []
        self.manager.shut_down(lambda: ended.append(self.sim.now))
        self.sim.run_until(3600.0)
        return round(ended[0], 1) if ended else None


def test_services_stop_in_the_order_of_the_registry_and_the_others_after_them() -> None:
    manager = Manager()
    manager.registry.set(CONTROL, "PreshutdownOrder", "REG_MULTI_SZ", ("nope", "C", "a"))
    assert manager.shut_down() == 1.5
    assert [name for name, _ in manager.stopped] == ["c", "a", "b", "d", "z"]


@pytest.mark.parametrize(("milliseconds", "seconds"), [(None, 10.0), (180_000, 180.0), (0, 0.0)])
def test_a_service_that_does_not_stop_is_waited_for_up_to_its_time_out(
    milliseconds: int | None, seconds: float
) -> None:
    manager = Manager()
    if milliseconds is not None:
        manager.registry.set(f"{SERVICES}\\a", "PreshutdownTimeout", "REG_DWORD", milliseconds)
    manager.manager.get("a").on_preshutdown = lambda done: None
    assert manager.shut_down() == seconds + 1.2
    assert "a" not in [name for name, _ in manager.stopped]


def test_a_handler_that_ends_late_has_no_effect_on_the_order() -> None:
    manager = Manager()
    ends: list[Callable[[], None]] = []
    manager.manager.get("a").on_preshutdown = ends.append
    assert manager.shut_down() == 11.2
    before = list(manager.stopped)
    ends[0]()
    manager.sim.run_until(7200.0)
    assert [name for name, _ in manager.stopped if name != "a"] == [name for name, _ in before]


def test_dependencies() -> None:
    manager = Manager()
    manager.manager.add(Service("top", "top", "x.exe", depends=("a",)))
    top, base = manager.manager.get("TOP"), manager.manager.get("a")
    manager.manager.stop(base)
    manager.sim.run_until(5.0)
    manager.manager.start(top)
    manager.sim.run_until(10.0)
    assert (top.state, base.state) == (RUNNING, RUNNING)
    for control, service, code in (("stop", "a", 1051), ("start", "a", 1056), ("stop", "nope", 1060)):
        with pytest.raises(ServiceError) as caught:
            getattr(manager.manager, control)(manager.manager.get(service))
        assert caught.value.code == code


def test_a_boot_starts_winrm_after_the_other_services() -> None:
    host = WindowsHost(boot_seconds=20)
    host.machine.reset()
    seen: dict[str, float] = {}
    begin = host.sim.now
    while WINRM not in seen:
        host.wait(0.5)
        for name in ("sshd", WINRM):
            if host.machine.services.get(name).is_running:
                seen.setdefault(name, host.sim.now - begin)
        assert host.sim.now - begin < 100
    assert seen["sshd"] < seen[WINRM]


def test_nssm_restarts_a_killed_kubelet_sooner() -> None:
    host = WindowsHost(kubelet_service="nssm")
    assert "nssm.exe" in host.machine.services.get("kubelet").binary
    out = host.run("sc query kubelet")[1]
    assert ("ACCEPTS_SHUTDOWN" in out, "ACCEPTS_PRESHUTDOWN" in out) == (True, False)
    host.kill("kubelet")
    host.wait(6.0)
    assert host.machine.kubelet.is_running


def test_a_stopped_service_of_the_kubelet_leaves_containers_alone() -> None:
    host = WindowsHost()
    host.run("sc stop kubelet")
    host.wait(30.0)
    assert (host.machine.kubelet.is_running, host.machine.runtime.is_available) == (False, True)


@pytest.mark.parametrize("path", ["", "Nope", "HKXX\\a"])
def test_bad_registry_paths(path: str) -> None:
    with pytest.raises(KeyPathError):
        WindowsRegistry().set(path, "n", "REG_SZ", "x")


@pytest.mark.parametrize(
    "settings", [{"role": "control-plane"}, {"swap": "1Gi", "failSwapOn": False}, {"staticPods": [{"name": "p"}]}]
)
def test_what_a_windows_node_cannot_be(settings: dict[str, Any]) -> None:
    spec = {"nodes": [{"name": "cp", "role": "control-plane"}, {"name": "w", "os": "windows", **settings}]}
    with pytest.raises(SpecError, match="w: Windows runs no control plane"):
        LabSpec.from_json(json.dumps(spec).encode())


def test_a_lab_without_windows_nodes_imports_nothing_of_windows() -> None:
    script = (
        "import sys, chaos.lab.__main__; from chaos.lab.cluster import Cluster; from chaos.lab.spec import *; "
        "Cluster(LabSpec(nodes=[NodeSpec(name='a', role='control-plane')])).start(); "
        "print([m for m in sys.modules if m.split('.')[0] == 'spnego' or m.startswith(('chaos.lab.win'))])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_events_of_stops_and_starts() -> None:
    """Their IDs are recorded (events.txt) but for 12; their order is not."""
    host = WindowsHost()
    host.run("shutdown /r /t 0")
    host.wait(90.0)
    host.machine.reset()
    host.wait(60.0)
    recorded = set(map(int, re.findall(r"(?m)^\S[^\n]*? (\d{1,4})   +[A-Z(<]", read("commands/events.txt"))))
    assert host.event_ids() == [12, 1074, 13, 6006, 12, 12, 41, 6008]
    assert set(host.event_ids()) - {12} <= recorded


def test_a_bug_check_of_notmyfault() -> None:
    """The program is only at its path; AutoReboot decides whether the machine boots again."""
    host = WindowsHost()
    assert host.run("notmyfault64 /accepteula /crash")[0] == 1  # not in Path
    assert host.run(r"C:\Tools\notmyfault64.exe /accepteula", cmd=False)[0] == 1
    host.run(r"C:\Tools\notmyfault64.exe /accepteula /crash", cmd=False)
    host.wait(60.0)
    assert host.machine.boot_id == "33"
    assert host.event_ids()[-2:] == [41, 6008]
    host.machine.registry.set(CRASH_CONTROL, "AutoReboot", "REG_DWORD", 0)
    host.run(r"C:\Tools\notmyfault64.exe /accepteula /crash", cmd=False)
    host.wait(600.0)
    assert (host.machine.boot_id, host.machine.state, host.machine.is_reachable) == ("33", "on", False)


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
