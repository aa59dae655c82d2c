"""The kubelet's service on Windows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

_GRACEFUL = frozenset({Need.GRACEFUL})
_PROGRAM = re.compile(r"[^\\/\"]+\.exe", re.IGNORECASE)
_REGISTER = (
    "register kubelet.exe --windows-service itself as the service kubelet (kube-log-runner.exe may start it), then"
    " restart the node; see docs/windows.md"
)


class WindowsService(Check):
    """Windows notifies services only. A kubelet under nssm is killed by it within seconds, and its pods with it."""

    name = "windows-service"
    summary = "on Windows the kubelet itself is a service, which Windows notifies before a shutdown"
    facts = ("kubelet-binary", "kubelet-shutdown-control", "configz")
    systems = frozenset({"windows"})

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            yield _diagnose(host)


def _diagnose(host: HostObservations) -> Diagnosis:
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


CHECK = WindowsService()
