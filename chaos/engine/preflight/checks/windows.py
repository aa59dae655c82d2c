"""Checks for Windows: whether a shutdown is graceful, and whether the host has what a run needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chaos.core.api_fact import PseudoFact
from chaos.core.duration import format_duration
from chaos.core.kube import Node
from chaos.core.number_types import parse_minor
from chaos.engine.observations import ClusterObservations, HostObservations, Need
from chaos.engine.preflight.check import WINDOWS, Diagnosis, check, host_check, note, ok, refusal, warning
from chaos.machines.winrm.endpoint import LEAST_QUOTAS

_GRACEFUL = frozenset({Need.GRACEFUL})
_PROGRAM = re.compile(r"[^\\/\"]+\.exe", re.IGNORECASE)
_REGISTER = (
    "register kubelet.exe --windows-service itself as the service kubelet (kube-log-runner.exe may start it), then"
    " restart the node; see docs/windows.md"
)


@host_check(
    "windows-service",
    "on Windows the kubelet itself is a service, which Windows notifies before a shutdown",
    facts=("kubelet-binary", "kubelet-shutdown-control", "configz"),
    systems=WINDOWS,
)
def windows_service(host: HostObservations) -> Diagnosis:
    """Windows notifies services only. A kubelet under nssm is killed by it within seconds, and its pods with it."""
    name, program = host.node, _program(str(host.fact("kubelet-binary") or ""))
    if not program:
        message = f"{name}: the kubelet's service is unknown: {host.unknown_reason('kubelet-binary')}"
        hint = "run sc.exe qc kubelet there: the service must be named kubelet"
        return warning(message, hint, name, frozenset({Need.HOST}))
    if host.shutdown_grace == 0:
        return ok(program, name)
    if "nssm" in program.lower():
        message = (
            f"{name}: the kubelet runs under nssm, so no shutdown is graceful: Windows notifies only nssm, which ends"
            " the kubelet within seconds"
        )
        return refusal(message, _REGISTER, name, _GRACEFUL)
    control = host.fact("kubelet-shutdown-control")
    if control not in (None, "preshutdown"):
        message = f"{name}: the kubelet's service does not accept the pre-shutdown notice, so no shutdown is graceful"
        return refusal(message, _REGISTER, name, _GRACEFUL)
    return ok(program, name)


def _program(command_line: str) -> str:
    """The first program of a command line, without its folder; "" if there is none."""
    match = _PROGRAM.search(command_line)
    return match[0].strip() if match else command_line


_GATE, _BASE_GATE = "WindowsGracefulNodeShutdown", "GracefulNodeShutdown"
_ALPHA, _BETA = (1, 32), (1, 34)  # since when there is the gate, and since when it is on (pkg/features)


@check(
    "windows-gates",
    "the kubelet on Windows has the feature gate WindowsGracefulNodeShutdown, and it is on",
    facts=("configz",),
    systems=WINDOWS,
)
def windows_gates(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """The gate is alpha and off in v1.32, beta and on since v1.34; a configuration may set it."""
    for name, host in sorted(observations.hosts.items()):
        if not host.error and host.shutdown_grace != 0:
            yield _diagnose_gate(host, observations.view.nodes[name])


def _diagnose_gate(host: HostObservations, node: Node) -> Diagnosis:
    name, text = host.node, _kubelet_version(node)
    version = parse_minor(text)
    gates: Mapping[str, Any] = (host.fact("configz") or {}).get("featureGates") or {}
    if version is None:
        message = (
            f"{name}: the kubelet's version is unknown ({text!r}), so it is unknown whether a shutdown is graceful"
        )
        return note(message, "", name, _GRACEFUL)
    if version < _ALPHA:
        message = f"{name}: kubelet {text} ends no pods when Windows shuts down: that came with v1.32"
        return refusal(message, "upgrade the kubelet to v1.34 or later", name, _GRACEFUL)
    is_on = gates.get(_GATE, version >= _BETA) and gates.get(_BASE_GATE, True)
    if not is_on:
        message = f"{name}: the feature gate {_GATE} is off in kubelet {text}, so no shutdown is graceful"
        hint = f"set {_GATE}: true under featureGates in the kubelet's configuration, restart the kubelet"
        return refusal(message, hint, name, _GRACEFUL)
    return ok(f"kubelet {text}", name)


def _kubelet_version(node: Node) -> str:
    info = node.status.node_info if node.status else None
    return info.kubelet_version if info else ""


# SERVICE_PRESHUTDOWN_INFO: since build 15063, that is in Server 2019 and later
# https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_preshutdown_info
_DEFAULT_WAIT = 10.0
_RUNTIME = "containerd"


@check(
    "preshutdown",
    "Windows waits for the kubelet as long as its shutdown grace period, and notifies it before containerd",
    facts=("preshutdown-timeout", "preshutdown-order", "kubelet-shutdown-control", "configz"),
    systems=WINDOWS,
)
def preshutdown(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """The kubelet raises the time-out to the sum of its grace periods when it starts, and adds nothing to it."""
    for host in observations.reachable_hosts():
        # What gets no notice, as nssm does not, needs no time for it.
        if host.shutdown_grace and host.fact("kubelet-shutdown-control") not in ("shutdown", "none"):
            found = [*_timeout(host, host.shutdown_grace), *_order(host)]
            yield from found or [ok(_describe_wait(host, host.shutdown_grace), host.node)]


def _timeout(host: HostObservations, grace: float) -> Iterator[Diagnosis]:
    if "preshutdown-timeout" not in host.target.facts:
        reason = host.unknown_reason("preshutdown-timeout")
        message = f"{host.node}: how long Windows waits for the kubelet is unknown: {reason}"
        yield warning(message, "make HKLM readable for the login user", host.node, _GRACEFUL)
    elif (limit := _limit(host)) < grace:
        message = (
            f"{host.node}: Windows waits {format_duration(limit)} at most for the kubelet, which needs"
            f" {format_duration(grace)}"
        )
        hint = "restart the kubelet, which raises PreshutdownTimeout of its service; find out what lowers it again"
        yield refusal(message, hint, host.node, _GRACEFUL)


def _order(host: HostObservations) -> Iterator[Diagnosis]:
    if "preshutdown-order" not in host.target.facts:
        return
    order = host.fact("preshutdown-order")
    if order is None:
        message = f"{host.node}: the registry has no PreshutdownOrder, so the kubelet's shutdown manager does not start"
        hint = (
            r"create the multi-string PreshutdownOrder under HKLM\SYSTEM\CurrentControlSet\Control, restart the kubelet"
        )
        yield refusal(message, hint, host.node, _GRACEFUL)
        return
    names = [name.lower() for name in order]
    if _RUNTIME in names and "kubelet" in names and names.index(_RUNTIME) < names.index("kubelet"):
        message = (
            f"{host.node}: PreshutdownOrder has containerd before kubelet: containers may end before their pods do"
        )
        yield warning(message, "restart the kubelet, which puts itself before its dependencies", host.node, _GRACEFUL)


def _limit(host: HostObservations) -> float:
    """How long Windows waits for the kubelet, in seconds."""
    value = host.fact("preshutdown-timeout")
    return _DEFAULT_WAIT if value is None else float(value)


def _describe_wait(host: HostObservations, grace: float) -> str:
    slack = "exactly the kubelet's grace period" if _limit(host) == grace else "longer than the kubelet's grace period"
    return f"Windows waits {format_duration(_limit(host))}, {slack}"


@host_check("pending-reboot", "no update of Windows waits for a restart", facts=("pending-reboot",), systems=WINDOWS)
def pending_reboot(host: HostObservations) -> Diagnosis | None:
    """Updates are completed during the shutdown and the start, for minutes, and may restart the machine once more."""
    marks = host.fact("pending-reboot")
    if marks:
        message = (
            f"{host.node}: an update waits for a restart ({', '.join(marks)}): going down and coming back may"
            " take minutes, and a second restart may follow"
        )
        return warning(message, "restart the node before the run", host.node, frozenset({Need.DOWN}))
    if marks is not None:
        return ok("no update waits for a restart", host.node)
    return None


@host_check(
    "windows-firewall",
    "rules of the Windows firewall act in the profiles in use, so that a partition is possible",
    facts=("firewall-state",),
    systems=WINDOWS,
)
def windows_firewall(host: HostObservations) -> Diagnosis | None:
    """A partition is refused where rules do not act, by its own preparation; this names the hosts beforehand."""
    state: dict[str, str] | None = host.fact("firewall-state")
    if state is None:
        return None
    idle = [f"{profile}: {value}" for profile, value in sorted(state.items()) if value != "on"]
    if idle:
        message = (
            f"{host.node}: rules of the Windows firewall have no effect ({', '.join(idle)}), so a partition of"
            " the node is refused"
        )
        hint = "turn the firewall on, and let the group policy apply local rules; AKS keeps it off"
        return note(message, hint, host.node, frozenset({Need.HOST}))
    return ok(f"rules act in {', '.join(sorted(state))}", host.node)


_QUOTAS = str(PseudoFact.WINRM_QUOTAS)
_HOST = frozenset({Need.HOST})


# Windows Server before 2016 keeps them small.
@host_check("winrm-quotas", "the quotas of WinRM permit what nodefall uses at once", facts=(_QUOTAS,), systems=WINDOWS)
def winrm_quotas(host: HostObservations) -> Diagnosis:
    """Compare the WinRM quotas with what one run of nodefall uses at the same time. Hosts over SSH have none."""
    quotas: dict[str, int] | None = host.fact(_QUOTAS)
    if quotas is None:
        return note(
            f"{host.node}: the quotas of WinRM are unknown: {host.unknown_reason(_QUOTAS)}", "", host.node, _HOST
        )
    small = [f"{name} is {quotas[name]}" for name, least in LEAST_QUOTAS.items() if quotas.get(name, least) < least]
    if not quotas:
        return ok("it is not reached over WinRM", host.node)
    if not small:
        return ok("no quota is too small", host.node)
    needs = ", ".join(f"{name} {least}" for name, least in LEAST_QUOTAS.items())
    message = f"{host.node}: quotas of WinRM are too small ({', '.join(small)}), so commands may be refused in a run"
    return warning(message, f"raise them to at least: {needs}; `winrm get winrm/config` shows them", host.node, _HOST)
