"""CPU quota of the kubelet's unit: ``systemctl set-property --runtime``, its drop-in, and cpu.stat."""

from __future__ import annotations

import re

from chaos.lab.hostshell.process import HostSystem, Process, Program

UNIT = "kubelet.service"
CGROUP = f"/system.slice/{UNIT}"
CPU_STAT = f"/sys/fs/cgroup{CGROUP}/cpu.stat"
_DROP_IN = f"/run/systemd/system.control/{UNIT}.d/50-CPUQuota.conf"
_ASSIGNMENT = re.compile(r"CPUQuota=(\d+(?:\.\d{1,2})?)%")


def set_property(process: Process, unit: str, assignment: str) -> int:
    """``set-property --runtime kubelet.service CPUQuota=PERCENT%``."""
    match = _ASSIGNMENT.fullmatch(assignment)
    if unit != UNIT or not match:
        return process.fail(f"the lab simulates only systemctl set-property --runtime {UNIT} CPUQuota=PERCENT%")
    process.host.machine.kubelet.cpu.limit(float(match[1]) / 100)
    process.host.run_files[_DROP_IN] = f"[Service]\n{assignment}\n"
    return 0


def reload(host: HostSystem) -> None:
    """Load the unit's files, as daemon-reload, which also applies them."""
    if _DROP_IN not in host.run_files:
        host.machine.kubelet.cpu.limit(None)


def properties(host: HostSystem) -> dict[str, str]:
    """Those of ``systemctl show`` that concern the quota."""
    share = host.machine.kubelet.cpu.share
    is_stale = share is not None and _DROP_IN not in host.run_files
    return {
        "CPUQuotaPerSecUSec": "infinity" if share is None else _format_span(round(share * 1e6)),
        "ControlGroup": CGROUP if host.machine.kubelet.is_running else "",
        "DropInPaths": "" if share is None else _DROP_IN,
        "NeedDaemonReload": "yes" if is_stale else "no",
    }


def _format_span(micros: int) -> str:
    """format_timespan of systemd, for up to a second."""
    if micros >= 10**6:
        return f"{micros // 10**6}s"
    text = f"{micros / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{text}ms" if micros >= 1000 else f"{micros}us"


def cpu_stat(host: HostSystem) -> str | None:
    """Content of cpu.stat; None without a process."""
    if not host.machine.kubelet.is_running:
        return None
    used, throttled = host.machine.kubelet.cpu.usage()
    return (
        f"usage_usec {round(used * 1e6)}\nuser_usec {round(used * 1e6)}\nsystem_usec 0\n"
        f"nr_periods 0\nnr_throttled 0\nthrottled_usec {round(throttled * 1e6)}\n"
    )


async def rm(process: Process, argv: list[str]) -> int:
    """``rm --force FILE...`` in /run."""
    if argv[1:2] != ["--force"] or not all(path.startswith("/run/") for path in argv[2:]):
        return process.fail("rm: the lab simulates only rm --force of files in /run")
    for path in argv[2:]:
        if path in process.host.run_files and not process.is_root:
            return process.fail(f"rm: cannot remove '{path}': Permission denied")
        process.host.run_files.pop(path, None)
    return 0


PROGRAMS: dict[str, Program] = {"rm": rm}
