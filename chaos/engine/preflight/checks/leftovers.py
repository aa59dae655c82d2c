"""Checks for leftovers of earlier runs on hosts."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.engine.observations import ClusterObservations, HostObservations, Need
from chaos.engine.preflight.check import Diagnosis, check, host_check, ok, refusal
from chaos.faults.readings.certificates import EXPIRED_FILE
from chaos.faults.readings.etcd import MANIFEST
from chaos.faults.readings.interfaces import IFB, ROOT
from chaos.faults.readings.machine import MARK_FILE


@host_check(
    "failsafe-timers", "no timer of an earlier run is left on the host", facts=("failsafe-timers",), is_final=True
)
def failsafe_timers(host: HostObservations) -> Diagnosis | None:
    """Find timers of other runs, which would end this run's fault."""
    if found := host.fact("failsafe-timers"):
        timers = ", ".join(found)
        message = f"{host.node} still has {timers} of an earlier run, which would end the fault of this one"
        hint = f"run nodefall undo --list; {_timer_remedy(host.target.os, found[0])}"
        return refusal(message, hint, host.node, frozenset({Need.HOST}))
    return ok("no timer is left", host.node)


def _timer_remedy(system: str, unit: str) -> str:
    """The advice if no undo is pending. A task on Windows remains after it has run, and runs again at each boot."""
    if system == "windows":
        return f"if no undo is pending there, run schtasks /delete /tn {unit} /f on the host once it is not running"
    return "a timer without a pending undo elapses by itself"


_FILLERS = ("cpu", "disk", "memory", "pid")
_IDLE = ("inactive", "failed")  # states of a unit that holds nothing


@check(
    "leftovers",
    "no packet filter rules, queueing discipline, filler, clock offset, expired certificate, hidden manifest, "
    "limit of the disk, stopped or slow kubelet of an earlier run is left on the host",
    facts=(
        *("nft-rules", "firewall-rules", "netem"),
        *(f"{kind}-filler" for kind in _FILLERS),
        *("clock-skew", "disk-limit-files", "etcd-manifest"),
        *("kubelet-client-certificate", "kubelet-cpu-quota", "kubelet-stopped-state"),
    ),
    is_final=True,
)
def leftovers(observations: ClusterObservations) -> Iterator[Diagnosis]:
    """If a host still has the fault of another run, the run would blame the cluster for it and might restore the
    wrong state. An unreadable fact is not a finding, because programs such as nft are missing on many hosts.
    """
    for host in observations.reachable_hosts():
        found = list(_leftovers(host))
        for what, remedy in found:
            hint = f"run nodefall undo --list; if no undo is pending there, {remedy}"
            yield refusal(f"{host.node} has {what}", hint, host.node, frozenset({Need.HOST}))
        if not found:
            yield ok("nothing of an earlier run is left", host.node)


def _leftovers(host: HostObservations) -> Iterator[tuple[str, str]]:
    """Leftovers of a host, and how to remove each."""
    if host.fact("nft-rules"):
        yield "the packet filter table of an earlier run", "run nft delete table inet nodefall on the host"
    for rule in host.fact("firewall-rules") or ():
        remedy = f"run netsh advfirewall firewall delete rule name={rule} on the host"
        yield f"the firewall rules {rule} of an earlier run", remedy
    if netem := host.fact("netem"):
        yield "a queueing discipline of an earlier run", f"run {_netem_remedy(netem['interface'])} on the host"
    for kind in _FILLERS:
        unit, state = f"nodefall-{kind}-filler.service", host.fact(f"{kind}-filler")
        if state and state not in _IDLE:
            yield f"{unit} of an earlier run, which is {state}", f"run systemctl stop {unit} on the host"
    if offset := host.fact("clock-skew"):
        yield f"a clock that an earlier run has set off by {offset} s", f"set the clock, and remove {_mark_file(host)}"
    yield from _limits(host)
    unit = host.fact("kubelet-unit") or "kubelet.service"
    certificate = host.fact("kubelet-client-certificate") or {}
    if certificate.get("mounted") or certificate.get("prepared"):
        remedy = f"run umount {certificate['target']}; systemctl restart {unit} && rm {EXPIRED_FILE}* on the host"
        yield "an expired certificate for the kubelet", remedy
    if (host.fact("etcd-manifest") or {}).get("mounted"):
        yield "a manifest of etcd over which something is mounted", f"run umount --lazy {MANIFEST} on the host"
    if host.fact("kubelet-stopped-state"):
        yield "a kubelet that SIGSTOP has stopped", f"run systemctl kill --signal=SIGCONT {unit} on the host"


def _limits(host: HostObservations) -> Iterator[tuple[str, str]]:
    """Resource limits that were set at run time, and how to remove each."""
    unit = host.fact("kubelet-unit") or "kubelet.service"
    if (host.fact("kubelet-cpu-quota") or {}).get("runtime"):
        remedy = f"run rm /run/systemd/system.control/{unit}.d/50-CPUQuota.conf && systemctl daemon-reload on the host"
        yield "a kubelet with a CPU quota that was set at run time", remedy
    if files := host.fact("disk-limit-files"):
        yield f"limits of a disk that were set at run time ({files[0]})", _disk_remedy(files)


def _disk_remedy(files: list[str]) -> str:
    """A limit whose file is removed may stay in force until it is set to none."""
    units: dict[str, list[str]] = {}
    for path in files:
        name = path.rpartition("/50-")[2].removesuffix(".conf")
        units.setdefault(path.split("/")[4].removesuffix(".d"), []).append(f"{name}=")
    words = [f"systemctl set-property --runtime {unit} {' '.join(names)}" for unit, names in units.items()]
    return f"run {' && '.join((*words, 'rm ' + ' '.join(files), 'systemctl daemon-reload'))} on the host"


def _netem_remedy(interface: str) -> str:
    if interface != IFB:
        return f"tc qdisc del dev {interface} root handle {ROOT}"
    return f"tc qdisc del dev INTERFACE ingress, for the interface that redirects to {IFB}, and ip link del {IFB}"


def _mark_file(host: HostObservations) -> str:
    """The file in which the host keeps its boot time by the correct clock."""
    return r"C:\ProgramData\nodefall-clock" if host.target.os == "windows" else MARK_FILE
