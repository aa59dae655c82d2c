"""The version of systemd."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok, warning
from chaos.preflight.observations import ClusterObservations, Need

_SHUTDOWN_USES_LOGIND, _CANCELS_SHUTDOWN = 251, 257


class SystemdVersion(Check):
    """How a shutdown is requested and cancelled depends on the version (facts 1.7)."""

    name = "systemd-version"
    summary = "systemd handles shutdowns in a known way"
    systems = frozenset({"linux"})
    facts = ("systemd-version",)

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        logind = frozenset({Need.LOGIND})
        for host in observations.reachable_hosts():
            version = host.fact("systemd-version")
            if version is None:
                message = f"{host.node}: no systemd: {host.unknown_reason('systemd-version')}"
                hint = "choose another host: actions on hosts need systemd"
                yield warning(message, hint, host.node, frozenset({Need.HOST}))
            elif version < _SHUTDOWN_USES_LOGIND:
                message = (
                    f"{host.node}: systemd {version}: before 251, shutdown, reboot and poweroff of root bypass logind"
                )
                yield warning(
                    message, "upgrade systemd: nodefall uses systemctl, but other programs may not", host.node, logind
                )
            elif version >= _CANCELS_SHUTDOWN:
                message = f"{host.node}: systemd {version} cancels a shutdown in flight without notice to the kubelet"
                yield note(message, "restart the kubelet afterwards, as undo does", host.node, logind)
            else:
                yield ok(f"systemd {version}", host.node)


CHECK = SystemdVersion()
