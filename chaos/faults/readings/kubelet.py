"""The kubelet: its process, flags, log, and the CPU that its unit may use."""

from __future__ import annotations

import json
import re
from typing import Any

from chaos.core.command import HostCommand
from chaos.core.fact import SECONDS_SINCE_READ, Known, host_fact, lines

# Distributions whose kubelet is part of another process.
_EMBEDDING_UNITS = ("k3s.service", "k3s-agent.service")
_MICROK8S = "/var/snap/microk8s/current/args/kubelet"
_SNAP = {"${SNAP_COMMON}": "/var/snap/microk8s/common", "${SNAP_DATA}": "/var/snap/microk8s/current"}
_FLAGS_SCRIPT = (
    'ps -eo pid=,args=; echo; systemctl show --property=ExecStart "$@"; echo; '
    f"cat {_MICROK8S} 2>/dev/null; echo"  # a person may have written the file without a line break at its end
)
_PROCESS_LINE = r" *\d+ +[^\n]+"  # of ps(1)


@host_fact(
    "kubelet-flags",
    "flags that the kubelet was started with",
    HostCommand(("sh", "-c", _FLAGS_SCRIPT, "nodefall", *_EMBEDDING_UNITS)),
    form=lines(_PROCESS_LINE) + r"\n" + lines(r"(?! *\d+ )[^\n]*"),
)
def kubelet_flags(stdout: str, exit_code: int) -> dict[str, str]:
    """Mapping ``{"config": "/var/lib/kubelet/config.yaml"}`` by name without dashes; a flag without a value is "true".

    The flags are those of the kubelet's process (kubeadm, rke2), else of ``--kubelet-arg`` of k3s, else of microk8s'
    file of arguments; the last two have no kubelet process. The configuration file of k3s is not read.
    """
    parts = stdout.split("\n\n", 1)
    if exit_code or len(parts) != 2:
        raise ValueError("ps or systemctl did not answer")
    processes, others = parts
    for line in processes.splitlines():
        program, _, arguments = line.strip().partition(" ")[2].lstrip().partition(" ")
        if program.rpartition("/")[2] == "kubelet":
            return _flags(arguments.split())
    embedded = re.findall(r"--kubelet-arg[= ](\S+)", others)
    files = [line for line in others.splitlines() if line.startswith("--")]
    return _flags([f"--{text.lstrip('-')}" for text in embedded] or files)


def _flags(words: list[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            separate = after if after and not after.startswith("-") else "true"
            flags[name] = _expand(value if equals else separate)
    return flags


def _expand(value: str) -> str:
    """Expand the variables in a value, as the start script of microk8s does."""
    for name, path in _SNAP.items():
        value = value.replace(name, path)
    return value.strip('"')


# The kubelet, and programs of distributions that contain it; rke2 and k0s start it as a process.
_NAMES = ("kubelet", "kubelite", "k3s-server", "k3s-agent", "k3s")


@host_fact(
    "kubelet-process",
    "process ID of the kubelet, and whether it is stopped by a signal",
    HostCommand(("ps", "-eo", "pid=,stat=,comm="), sudo=False),
    form=lines(r" *\d+ +\S+ +[^\n]+"),
)
def kubelet_process(stdout: str, exit_code: int) -> dict[str, int | bool]:
    """Mapping ``{"pid": 812, "stopped": false}`` of the oldest process, {} without one; stopped: by SIGSTOP."""
    rows = [line.split(None, 2) for line in stdout.splitlines()]
    if exit_code or not rows or any(len(row) != 3 for row in rows):
        raise ValueError("ps did not answer")
    processes = sorted((int(pid), stat) for pid, stat, name in rows if name.strip() in _NAMES)
    return {"pid": processes[0][0], "stopped": processes[0][1].startswith("T")} if processes else {}


@host_fact(
    "kubelet-stopped-state",
    "whether the kubelet's process is stopped by a signal",
    kubelet_process.command,
)
def kubelet_stopped_state(stdout: str, exit_code: int) -> bool:
    """True or false: true if the process is stopped by a signal; unknown without a process."""
    process = kubelet_process.parse(stdout, exit_code)
    if not process:
        raise ValueError("there is no kubelet process")
    return bool(process["stopped"])


# The name of the source file is in every line of klog, as text and as JSON. Errors are sent to stdout for the parser:
# exit code 1 alone only means that no line matched.
_JOURNAL_SCRIPT = (
    'exec journalctl -q -u "$1" -o json --output-fields=MESSAGE --since="-$2s" --grep=nodeshutdown_manager'
    " --no-pager 2>&1"
)


def _kubelet_journal_command(known: Known) -> HostCommand:
    return HostCommand(
        ("sh", "-c", _JOURNAL_SCRIPT, "sh", str(known["kubelet-unit"]), str(known[SECONDS_SINCE_READ])), timeout=5.0
    )


# Log lines of the kubelet's shutdown manager, from the journal. At ``--v=0``, kubeadm's default, there are next to
# none.
@host_fact(
    "kubelet-journal",
    "log lines of the kubelet's shutdown manager",
    _kubelet_journal_command,
    needs=("kubelet-unit", SECONDS_SINCE_READ),
)
def kubelet_journal(stdout: str, exit_code: int) -> dict[str, Any]:
    """Mapping ``{"lines": [{t, message}]}`` of the last ``unread-seconds``; ``t`` is by the host's clock."""
    if exit_code not in (0, 1):
        raise ValueError(f"journalctl failed: {stdout.strip()[:200]}")
    try:
        return {"lines": [_journal_line(json.loads(text)) for text in stdout.splitlines() if text.strip()]}
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"cannot parse the output of journalctl: {stdout.strip()[:200]}") from error


def _journal_line(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the fact, see systemd.journal-fields(7); a message that is not UTF-8 is a list of bytes."""
    message = entry["MESSAGE"]
    text = bytes(message).decode("utf-8", "replace") if isinstance(message, list) else str(message)
    return {"t": int(entry["__REALTIME_TIMESTAMP"]) / 1e6, "message": text}


@host_fact(
    "kubelet-cgroup",
    "control group of the kubelet's unit",
    lambda known: HostCommand(("systemctl", "show", "--property=ControlGroup", known["kubelet-unit"]), sudo=False),
    needs=("kubelet-unit",),
    form=r"ControlGroup=[^\n]*\n",
)
def kubelet_cgroup(stdout: str, exit_code: int) -> str:
    """Text: path below /sys/fs/cgroup, as ``/system.slice/kubelet.service``; unknown while the unit has no process."""
    path = stdout.strip().partition("ControlGroup=")[2]
    if exit_code or not path.startswith("/"):
        raise ValueError("the kubelet's unit has no control group")
    return path


# Documentation/admin-guide/cgroup-v2.rst, cpu.stat; the last ones are there only with the cpu controller.
_KEYS = {"usage_usec": "used", "throttled_usec": "throttled"}


@host_fact(
    "kubelet-cpu",
    "CPU seconds of the kubelet's unit, and seconds for which its quota made it wait",
    lambda known: HostCommand(("cat", f"/sys/fs/cgroup{known['kubelet-cgroup']}/cpu.stat"), sudo=False),
    needs=("kubelet-cgroup",),
    form=lines(r"[a-z_.]+ \d+"),
)
def kubelet_cpu(stdout: str, exit_code: int) -> dict[str, float]:
    """Mapping ``{"used": 12.5, "throttled": 3.1}``: seconds since the unit started; {} while it has no process.

    ``throttled``: the sum over the CPUs of the time in which its threads were ready and the quota was used up.
    """
    if exit_code:
        return {}
    fields = dict(line.split() for line in stdout.splitlines())
    if "usage_usec" not in fields:
        raise ValueError("cpu.stat has no usage_usec")
    return {name: int(fields.get(key, 0)) / 1e6 for key, name in _KEYS.items()}


_SPAN = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_SET_AT_RUNTIME = "/run/systemd/system.control/"


def _kubelet_cpu_quota_command(known: Known) -> HostCommand:
    properties = "--property=CPUQuotaPerSecUSec,DropInPaths,NeedDaemonReload"
    return HostCommand(("systemctl", "show", properties, known["kubelet-unit"]), sudo=False)


@host_fact(
    "kubelet-cpu-quota",
    "CPU quota of the kubelet's unit, and where it is set",
    _kubelet_cpu_quota_command,
    needs=("kubelet-unit",),
    form=lines(r"(?:CPUQuotaPerSecUSec|DropInPaths|NeedDaemonReload)=[^\n]*"),
)
def kubelet_cpu_quota(stdout: str, exit_code: int) -> dict[str, float | bool | None]:
    """Mapping ``{"percent": 20.0, "runtime": false, "stale": false}``.

    ``percent`` of one CPU, null without a quota. ``runtime``: set by ``systemctl set-property --runtime``, until the
    next boot. ``stale``: the unit's files have changed since systemd loaded them.
    """
    fields = dict(line.split("=", 1) for line in stdout.splitlines() if "=" in line)
    if exit_code or "CPUQuotaPerSecUSec" not in fields:
        raise ValueError("systemd did not answer")
    files = fields.get("DropInPaths", "").split()
    return {
        "percent": _percent(fields["CPUQuotaPerSecUSec"]),
        "runtime": any(f.startswith(_SET_AT_RUNTIME) and f.endswith("/50-CPUQuota.conf") for f in files),
        "stale": fields.get("NeedDaemonReload") == "yes",
    }


def _percent(span: str) -> float | None:
    """Percent of a CPU from CPU time per second, as ``1s 500ms``; None for infinity. Raises ValueError."""
    if span == "infinity":
        return None
    parts = _SPAN.findall(span)
    if not parts or " ".join(number + unit for number, unit in parts) != span:
        raise ValueError(f"the quota {span!r} is not a time span")
    return round(sum(float(number) * _SECONDS[unit] for number, unit in parts) * 100, 3)
