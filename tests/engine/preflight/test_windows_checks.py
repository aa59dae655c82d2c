"""Checks of hosts with Windows: those of their own, and the others, which must not ask them for what Linux has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.engine.observations import ClusterObservations, Need
from chaos.engine.preflight.check import Severity
from chaos.engine.preflight.findings import blocking, run_checks
from tests.kit.preflightkit import CHECKS, USE, diagnoses, host, inventory, messages, node, observed, windows_host

GRACE = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
PRIORITIES = {"shutdownGracePeriodByPodPriority": [{"priority": 0, "shutdownGracePeriodSeconds": 60}]}
LINUX_ONLY = {
    "inhibit-delay",
    "kubelet-inhibitor",
    "kubelet-unit",
    "logind",
    "shared-kernel",
    "sudo",
    "systemd-version",
}
NO_LISTING = "its running containers cannot be listed"


def seen(version: str = "v1.36.2", *, without: str = "", **facts: Any) -> ClusterObservations:
    """One Windows node whose kubelet has ``version``."""
    return observed(windows_host(without=without, **facts), nodes=(node("n1", kubeletVersion=version),))


def test_windows_hosts_in_order_have_no_finding_but_that_of_their_containers() -> None:
    found = [
        (name, diagnosis)
        for name in CHECKS
        for diagnosis in diagnoses(name, seen(kubelet_user="system:node:n1"))
        if diagnosis.severity is not Severity.OK
    ]
    assert [name for name, _ in found] == ["container-list"]
    assert NO_LISTING in found[0][1].message
    assert "Linux" in found[0][1].hint


def test_a_check_of_one_system_sees_no_host_of_the_other() -> None:
    assert {name for name, check in CHECKS.items() if check.systems == {"linux"}} == LINUX_ONLY
    both = observed(
        host("n1"), windows_host("n2"), nodes=(node("n1", "10.0.0.1"), node("n2", kubeletVersion="v1.36.0"))
    )
    for name, check in CHECKS.items():
        if len(check.systems) == 1:
            expected = "n1" if "linux" in check.systems else "n2"
            assert {diagnosis.host for diagnosis in diagnoses(name, both)} == {expected}, name


def with_offset(seconds: float) -> ClusterObservations:
    return observed(replace(windows_host(), clock_offset=seconds, clock_uncertainty=0.1))


RULES: list[tuple[str, ClusterObservations, str, str, Need]] = [
    ("clock", with_offset(60.2), "refusal", "failsafe tasks would be late", Need.HOST),
    ("clock", with_offset(60.0), "warning", "60.0 s ahead of", Need.HOST),
    ("clock", with_offset(-3600.0), "warning", "3600.0 s behind", Need.HOST),  # they act early: the judge sees that
    ("windows-service", seen(kubelet_binary=r"C:\k\nssm.exe"), "refusal", "under nssm", Need.GRACEFUL),
    ("windows-service", seen(kubelet_binary=r'"C:\Program Files\NSSM\NSSM.EXE"'), "refusal", "nssm", Need.GRACEFUL),
    ("windows-service", seen(kubelet_shutdown_control="shutdown"), "refusal", "does not accept", Need.GRACEFUL),
    ("windows-service", seen(kubelet_shutdown_control="none"), "refusal", "does not accept", Need.GRACEFUL),
    ("windows-service", seen(without="kubelet-binary"), "warning", "is unknown: no answer", Need.HOST),
    ("preshutdown", seen(preshutdown_timeout=10.0), "refusal", "waits 10s at most", Need.GRACEFUL),
    ("preshutdown", seen(preshutdown_timeout=None), "refusal", "waits 10s at most", Need.GRACEFUL),
    ("preshutdown", seen(configz=PRIORITIES), "refusal", "which needs 1m", Need.GRACEFUL),
    ("preshutdown", seen(without="preshutdown-timeout"), "warning", "is unknown: no answer", Need.GRACEFUL),
    ("preshutdown", seen(preshutdown_order=None), "refusal", "no PreshutdownOrder", Need.GRACEFUL),
    ("preshutdown", seen(preshutdown_order=["Containerd", "kubelet"]), "warning", "before kubelet", Need.GRACEFUL),
    ("windows-gates", seen("v1.31.9"), "refusal", "that came with v1.32", Need.GRACEFUL),
    ("windows-gates", seen("v1.33.0"), "refusal", "is off in kubelet v1.33.0", Need.GRACEFUL),
    (
        "windows-gates",
        seen(configz=GRACE | {"featureGates": {"WindowsGracefulNodeShutdown": False}}),
        "refusal",
        "is off",
        Need.GRACEFUL,
    ),
    (
        "windows-gates",
        seen(configz=GRACE | {"featureGates": {"GracefulNodeShutdown": False}}),
        "refusal",
        "is off",
        Need.GRACEFUL,
    ),
    ("windows-gates", seen(""), "note", "version is unknown", Need.GRACEFUL),
    ("pending-reboot", seen(pending_reboot=["RebootPending"]), "warning", "(RebootPending)", Need.DOWN),
    ("windows-firewall", seen(firewall_state={"Public": "off"}), "note", "no effect (Public: off)", Need.HOST),
    ("windows-firewall", seen(firewall_state={"A": "on", "B": "policy"}), "note", "no effect (B: policy)", Need.HOST),
    ("winrm-quotas", seen(winrm_quotas={"MaxShellsPerUser": 2}), "warning", "(MaxShellsPerUser is 2)", Need.HOST),
    (
        "winrm-quotas",
        seen(winrm_quotas={"MaxProcessesPerShell": 15, "MaxConcurrentOperationsPerUser": 15}),
        "warning",
        "(MaxConcurrentOperationsPerUser is 15)",
        Need.HOST,
    ),
    ("winrm-quotas", seen(without="winrm-quotas"), "note", "are unknown: no answer", Need.HOST),
    ("administrator", seen(root=False), "refusal", "rights of an administrator", Need.ROOT),
    ("administrator", seen(without="root"), "refusal", "administrator: no answer", Need.ROOT),
    ("container-list", seen(), "refusal", NO_LISTING, Need.CONTAINERS),
]


@pytest.mark.parametrize(
    ("check", "observations", "severity", "text", "need"), RULES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_what_is_not_in_order_on_windows(
    check: str, observations: ClusterObservations, severity: str, text: str, need: Need
) -> None:
    (bad,) = [found for found in diagnoses(check, observations) if found.severity is not Severity.OK]
    assert (str(bad.severity), bad.needs) == (severity, frozenset({need}))
    assert text in bad.message
    assert bad.hint or bad.severity is Severity.NOTE
    assert "sudo" not in bad.hint
    assert "systemctl" not in bad.hint


def test_a_task_that_is_left_does_not_go_away_by_itself() -> None:
    (bad,) = diagnoses("failsafe-timers", seen(failsafe_timers=["nodefall-run-stop"]))
    assert "schtasks /delete /tn nodefall-run-stop /f" in bad.hint
    assert "elapses by itself" not in bad.hint


def test_every_check_of_windows_alone_has_a_rule() -> None:
    windows = {name for name, check in CHECKS.items() if "linux" not in check.systems}
    assert windows <= {rule[0] for rule in RULES}


NO_FINDING = [
    ("windows-service", seen(kubelet_binary=r"C:\k\nssm.exe", configz={"shutdownGracePeriod": "0s"})),  # off anyway
    ("windows-service", seen(without="kubelet-shutdown-control")),  # it does not run now
    ("windows-service", seen(kubelet_binary=r"C:\k\kube-log-runner.exe -log-file=k.log C:\k\kubelet.exe")),
    ("preshutdown", seen(preshutdown_timeout=180.0)),
    ("preshutdown", seen(preshutdown_order=["UsoSvc"])),  # a service without dependencies is not added
    ("preshutdown", seen(without="preshutdown-order")),
    ("preshutdown", seen(preshutdown_timeout=None, kubelet_shutdown_control="shutdown")),
    ("preshutdown", seen(preshutdown_timeout=None, configz={"shutdownGracePeriod": "0s"})),
    ("windows-gates", seen("v1.31.0", configz={"shutdownGracePeriod": "0s"})),
    ("windows-gates", seen("v1.33.1", configz=GRACE | {"featureGates": {"WindowsGracefulNodeShutdown": True}})),
    ("windows-gates", seen("v1.34.0-rc.1")),
    ("pending-reboot", seen(without="pending-reboot")),
    ("windows-firewall", seen(without="firewall-state")),
]


@pytest.mark.parametrize(("check", "observations"), NO_FINDING)
def test_no_finding_on_windows(check: str, observations: ClusterObservations) -> None:
    assert {severity for severity, _, _ in messages(check, observations)} <= {"ok"}


def test_a_host_that_does_not_answer_is_named_once() -> None:
    down = observed(windows_host(error="no route"), nodes=(node("n1", kubeletVersion="v1.30.0"),))
    found = [(name, each) for name in CHECKS for each in diagnoses(name, down) if each.host and each.severity != "ok"]
    assert [(name, each.message) for name, each in found] == [("host-reachable", "no route")]


def test_what_is_in_order_names_program_time_and_transport() -> None:
    assert messages("windows-service", seen()) == [("ok", "n1", "kubelet.exe")]
    assert messages("preshutdown", seen()) == [("ok", "n1", "Windows waits 30s, exactly the kubelet's grace period")]
    over = inventory(
        hosts={"n1": {"os": "windows", "transport": "winrm", "user": "a", "options": {"auth": "kerberos"}}}
    )
    assert messages("host-reachable", replace(seen(), inventory=over)) == [("ok", "n1", "it answers over WinRM")]
    assert messages("host-reachable", seen()) == [("ok", "n1", "it answers over SSH")]


@pytest.mark.parametrize("needs_grace", [True, False])
def test_a_graceful_shutdown_under_nssm_is_refused_beforehand(needs_grace: bool) -> None:
    """As one on Linux without logind is; an experiment that shows what nssm does may run."""
    needs = {Need.HOST, Need.ROOT, Need.DOWN} | ({Need.GRACEFUL} if needs_grace else set())
    use = replace(USE, needs=frozenset(needs), nodes=("n1",))
    shown = seen(kubelet_binary=r"C:\k\nssm.exe", kubelet_user="system:node:n1")
    refusals = blocking(run_checks(CHECKS, replace(shown, experiments=(use,))))
    assert [finding.check for finding in refusals] == (["windows-service"] if needs_grace else [])
