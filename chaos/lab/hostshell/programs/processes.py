"""kill, pidof and pgrep for the kubelet's process only, and ps."""

from __future__ import annotations

from chaos.lab.hostshell.process import HostSystem, Process, Program
from chaos.lab.hostshell.programs.units import signal_kubelet


async def kill(process: Process, argv: list[str]) -> int:
    """``kill [-s SIGNAL | -SIGNAL] PID...``."""
    words, signal = argv[1:], "TERM"
    if words[:1] == ["-s"]:
        signal, words = (words[1] if len(words) > 1 else ""), words[2:]
    elif words and words[0].startswith("-"):
        signal, words = words[0][1:], words[1:]
    if not words:
        return process.fail("kill: not enough arguments")
    for word in words:
        if word != str(process.host.machine.kubelet.pid) or word == "0":
            return process.fail(f"kill: sending signal to {word} failed: No such process")
        if not process.is_root:
            return process.fail(f"kill: sending signal to {word} failed: Operation not permitted")
        if not signal_kubelet(process.host, signal):
            return process.fail(f"kill: the lab does not simulate the signal {signal}")
    return 0


async def pidof(process: Process, argv: list[str]) -> int:
    """``pidof NAME`` and ``pgrep -x NAME``."""
    words = [word for word in argv[1:] if word != "-x"]
    if len(words) != 1 or words[0].startswith("-"):
        return process.fail(f"{argv[0]}: the lab simulates only {argv[0]} [-x] NAME", 2)
    pid = process.host.machine.kubelet.pid if words == ["kubelet"] else 0
    if pid:
        process.out(f"{pid}\n")
    return 0 if pid else 1


def _commands(host: HostSystem) -> list[str]:
    """Command lines of the processes; the kubelet's as of kubeadm."""
    kubelet = "/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf"
    kubelet += " --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml"
    if host.machine.kubelet_identity == "hostname-override":
        kubelet += f" --hostname-override={host.machine.name}"
    return ["/sbin/init", *([kubelet] if host.machine.kubelet.pid else [])]


async def ps(process: Process, argv: list[str]) -> int:
    """``ps -eo`` with ``pid=,stat=,comm=``, ``pid=,unit=`` or ``args=``: only the processes that the lab simulates."""
    if argv[1:] == ["-eo", "args="]:
        process.out("".join(f"{line}\n" for line in _commands(process.host)))
        return 0
    columns = {"pid=,stat=,comm=": (0, 1), "pid=,unit=": (2,)}.get(argv[2] if argv[1:2] == ["-eo"] else "")
    if columns is None or len(argv) != 3:
        return process.fail("ps: the lab simulates only ps -eo with pid=,stat=,comm= or pid=,unit= or args=")
    machine = process.host.machine
    rows = [
        (1, ("Ss", "systemd", "init.scope")),
        (machine.logind.bus_pid, ("Ss", "dbus-daemon", "dbus.service")),
        (machine.logind.pid, ("Ss", "systemd-logind", "systemd-logind.service")),
        (machine.kubelet.pid, ("Tsl" if machine.kubelet.is_frozen else "Ssl", "kubelet", "kubelet.service")),
    ]
    for pid, cells in rows:
        if pid:
            process.out(f"{pid:>7} " + " ".join(f"{cells[column]:<4}" for column in columns).rstrip() + "\n")
    return 0


PROGRAMS: dict[str, Program] = {"kill": kill, "pgrep": pidof, "pidof": pidof, "ps": ps}
