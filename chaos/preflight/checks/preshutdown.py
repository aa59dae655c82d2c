"""What Windows allows the kubelet before a shutdown."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.model.duration import format_duration
from chaos.preflight.check import Check, Diagnosis, ok, refusal, warning
from chaos.preflight.observations import ClusterObservations, HostObservations, Need

# SERVICE_PRESHUTDOWN_INFO: since build 15063, that is in Server 2019 and later
# https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_preshutdown_info
_DEFAULT = 10.0
_GRACEFUL = frozenset({Need.GRACEFUL})
_RUNTIME = "containerd"


class Preshutdown(Check):
    """The kubelet raises the time-out to the sum of its grace periods when it starts, and adds nothing to it."""

    name = "preshutdown"
    summary = "Windows waits for the kubelet as long as its shutdown grace period, and notifies it before containerd"
    facts = ("preshutdown-timeout", "preshutdown-order", "kubelet-shutdown-control", "configz")
    systems = frozenset({"windows"})

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for host in observations.reachable_hosts():
            # What gets no notice, as nssm does not, needs no time for it.
            if host.shutdown_grace and host.fact("kubelet-shutdown-control") not in ("shutdown", "none"):
                found = [*_timeout(host, host.shutdown_grace), *_order(host)]
                yield from found or [ok(_describe(host, host.shutdown_grace), host.node)]


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
    """Seconds that Windows waits."""
    value = host.fact("preshutdown-timeout")
    return _DEFAULT if value is None else float(value)


def _describe(host: HostObservations, grace: float) -> str:
    slack = "exactly the kubelet's grace period" if _limit(host) == grace else "longer than the kubelet's grace period"
    return f"Windows waits {format_duration(_limit(host))}, {slack}"


CHECK = Preshutdown()
