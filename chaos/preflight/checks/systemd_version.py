"""The version of systemd."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, note, ok, warning
from chaos.preflight.observations import ClusterObservations, Need

_SHUTDOWN_USES_LOGIND, _CANCELS_SHUTDOWN = 251, 257


class SystemdVersion(Check):
    """Facts 1.7."""

    name = "systemd-version"
    summary = "systemd is one whose shutdowns are known"
    facts = ("systemd-version",)

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        logind = frozenset({Need.LOGIND})
        for host in signs.reachable_hosts():
            version = host.fact("systemd-version")
            if version is None:
                told = f"{host.node}: no systemd: {host.unknown_reason('systemd-version')}"
                mend = "nodefall's actions on hosts are made for systemd"
                yield warning(told, mend, host.node, frozenset({Need.HOST}))
            elif version < _SHUTDOWN_USES_LOGIND:
                told = f"{host.node}: systemd {version}: shutdown, reboot and poweroff of root bypass logind before 251"
                yield warning(told, "nodefall uses systemctl, others may not; upgrade systemd", host.node, logind)
            elif version >= _CANCELS_SHUTDOWN:
                told = f"{host.node}: systemd {version} cancels a shutdown in flight and does not tell the kubelet"
                yield note(told, "the kubelet must be restarted then; undo does", host.node, logind)
            else:
                yield ok(f"systemd {version}", host.node)


CHECK = SystemdVersion()
