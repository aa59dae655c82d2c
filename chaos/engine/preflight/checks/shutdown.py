"""Checks whether a shutdown of a Linux host is graceful: logind, systemd and the kubelet."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.core.duration import format_duration
from chaos.engine.observations import ClusterObservations, HostObservations, Need
from chaos.engine.preflight.check import LINUX, Diagnosis, check, host_check, note, ok, refusal, warning
from chaos.verdicts.judge.facts import kubelet_fact

# images/base/Dockerfile of kind installs no dbus and removes logind from multi-user.target.
_CONTAINER = (
    "; it is a container: a stock image of kind has neither D-Bus nor logind, so its kubelet cannot take the lock"
    " that delays a shutdown. Partitions, kubelet faults, power cuts, drains and taints do work there"
)


@host_check("logind", "logind answers on D-Bus", facts=("inhibitor-locks", "shared-kernel"), systems=LINUX)
def logind(host: HostObservations) -> Diagnosis | None:
    """The kubelet disables its shutdown manager without an error if logind or D-Bus is missing (facts 1.7)."""
    if "inhibitor-locks" in host.target.facts:
        return ok("it answers", host.node)
    reason = host.unknown_reason("inhibitor-locks")
    message = f"{host.node}: logind does not answer, so no shutdown is graceful: {reason}"
    hint = "install dbus and systemd-logind, start them, then restart the kubelet"
    if host.fact("shared-kernel"):
        message += _CONTAINER
        hint = "use a node image that has both, as nodefall kind up does (hosts/kind/Dockerfile)"
    return refusal(message, hint, host.node, frozenset({Need.LOGIND}))


@host_check(
    "inhibit-delay",
    "logind's InhibitDelayMaxSec is not shorter than the kubelet's shutdown grace period",
    facts=("inhibit-delay-max", "configz"),
    systems=LINUX,
)
def inhibit_delay(host: HostObservations) -> Diagnosis | None:
    """The kubelet raises the limit once; a drop-in that sorts later (unattended-upgrades) wins (facts 1.1 and 1.7)."""
    limit, grace = _delay_seconds(host), host.shutdown_grace
    if limit is None or not grace:
        return None
    if limit < grace:
        message = f"{host.node}: logind waits {format_duration(limit)} at most, the kubelet needs "
        hint = (
            "raise InhibitDelayMaxSec in a drop-in that sorts last in /etc/systemd/logind.conf.d "
            "(unattended-upgrades brings one with 30s), restart the kubelet"
        )
        return refusal(message + format_duration(grace), hint, host.node, frozenset({Need.GRACEFUL}))
    return ok(f"logind waits up to {format_duration(limit)}", host.node)


def _delay_seconds(host: HostObservations) -> float | None:
    """The seconds in busctl's output, such as ``t 30000000``; None if the fact is unknown."""
    number = str(host.fact("inhibit-delay-max") or "").rpartition(" ")[2]
    return int(number) / 1e6 if number.isascii() and number.isdigit() else None


@host_check(
    "kubelet-inhibitor",
    "the kubelet holds its delay lock on shutdown, where it has a grace period",
    facts=("inhibitor-kubelet", "configz"),
    systems=LINUX,
)
def kubelet_inhibitor(host: HostObservations) -> Diagnosis | None:
    """A kubelet takes the lock only once, and may lose it when a shutdown is cancelled (facts 1.1)."""
    is_held = host.fact("inhibitor-kubelet")
    if is_held:
        return ok("the lock is held", host.node)
    if is_held is False and host.shutdown_grace != 0:
        message = f"{host.node}: the kubelet does not hold its delay lock, so a power-off is not graceful"
        unit = host.fact("kubelet-unit") or "kubelet"
        hint = f"run systemctl restart {unit} there, then systemd-inhibit --list"
        return refusal(message, hint, host.node, frozenset({Need.GRACEFUL}))
    return None


@check(
    "kubelet-config",
    "the kubelet's effective configuration can be read, and leaves time for a graceful shutdown",
    facts=("configz",),
)
def kubelet_config(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """The shutdown manager is off if the grace period is 0, or shorter than the grace period for critical pods (facts
    1.2).
    """
    graceful = frozenset({Need.GRACEFUL})
    for name, host in sorted(observations.hosts.items()):
        config = host.fact("configz")
        if host.error:
            continue
        if not config:
            message = f"{name}: the kubelet's configuration could not be read from its port"
            hint = (
                "make the kubelet's port reachable from this machine and check cluster.kubeletCA; "
                "until then, bounds that use the configuration are unknown"
            )
            yield warning(message, hint, name, frozenset({Need.KUBELET_CONFIG, Need.GRACEFUL}))
            continue
        grace = host.shutdown_grace or 0.0
        critical = kubelet_fact(config, "kubelet.shutdownGracePeriodCriticalPods") or 0.0
        if grace == 0:
            message = f"{name}: shutdownGracePeriod is 0, so no shutdown is graceful"
            yield refusal(message, "set it in the kubelet's configuration, restart the kubelet", name, graceful)
        elif critical > grace:
            message = f"{name}: shutdownGracePeriodCriticalPods is longer than shutdownGracePeriod: both are ignored"
            yield refusal(message, "make it shorter, restart the kubelet", name, graceful)
        else:
            yield ok(f"shutdownGracePeriod is {format_duration(grace)}", name)


_CONTROL_PLANE_UNITS = (
    "k3s.service",
    "rke2-server.service",
    "k0scontroller.service",
    "snap.microk8s.daemon-kubelite.service",
)  # they run the control plane too


@host_check("kubelet-unit", "a known systemd unit runs the kubelet", facts=("kubelet-unit",), systems=LINUX)
def kubelet_unit(host: HostObservations) -> Diagnosis | None:
    """Check that the kubelet's unit is known: faults and undo stop and restart it."""
    needs = frozenset({Need.HOST})
    unit = host.fact("kubelet-unit")
    if not unit:
        message = f"{host.node}: the kubelet's unit is unknown: {host.unknown_reason('kubelet-unit')}"
        return warning(message, "check systemctl list-units on the host", host.node, needs)
    if unit in _CONTROL_PLANE_UNITS:
        return note(f"{host.node}: {unit} runs the control plane as well as the kubelet", "", host.node, needs)
    return ok(unit, host.node)


_SHUTDOWN_USES_LOGIND, _CANCELS_SHUTDOWN = 251, 257


@host_check("systemd-version", "systemd handles shutdowns in a known way", facts=("systemd-version",), systems=LINUX)
def systemd_version(host: HostObservations) -> Diagnosis | None:
    """How a shutdown is requested and cancelled depends on the version (facts 1.7)."""
    logind = frozenset({Need.LOGIND})
    version = host.fact("systemd-version")
    if version is None:
        message = f"{host.node}: no systemd: {host.unknown_reason('systemd-version')}"
        hint = "choose another host: actions on hosts need systemd"
        return warning(message, hint, host.node, frozenset({Need.HOST}))
    if version < _SHUTDOWN_USES_LOGIND:
        message = f"{host.node}: systemd {version}: before 251, shutdown, reboot and poweroff of root bypass logind"
        return warning(
            message, "upgrade systemd: nodefall uses systemctl, but other programs may not", host.node, logind
        )
    if version >= _CANCELS_SHUTDOWN:
        message = f"{host.node}: systemd {version} cancels a shutdown in flight without notice to the kubelet"
        return note(message, "restart the kubelet afterwards, as undo does", host.node, logind)
    return ok(f"systemd {version}", host.node)
