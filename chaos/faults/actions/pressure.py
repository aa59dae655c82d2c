"""A resource of the host used until half of the kubelet's eviction threshold is left: memory, process IDs, disk."""

from __future__ import annotations

from chaos.core.action import Action, Needs, Program, Target, UndoKind
from chaos.core.errors import Unsupported
from chaos.faults.actions._filler import (
    FillerState,
    prove_condition,
    prove_eviction,
    remaining,
    require_own_kernel,
    run_filler,
)
from chaos.faults.actions._params import DurationParams, timer_seconds

_MIN_BYTES = 48 << 20  # always left
_OVERHEAD_BYTES = 64 << 20  # of the unit's limit, for the shell and its pages
# tail buffers input without a line end. Half of the excess at a time, as allocating memory costs memory.
MEMORY_SCRIPT = """taken=0
while :; do
  available=$(awk '/^MemFree:|^Inactive.file.:/ { kib += $2 } END { print kib }' "$1")
  more=$(((available - $2) / 2))
  [ "$more" -gt $(($3 - taken)) ] && more=$(($3 - taken))
  if [ "$more" -gt 1024 ]; then head -c "$more"K /dev/zero; taken=$((taken + more)); else sleep 1; fi
done | tail > /dev/null"""


class MemoryState(FillerState, frozen=True):
    """``remaining`` and ``limit``, the most that the unit uses, in bytes."""

    limit: int


def _prepare_memory(target: Target, params: DurationParams) -> MemoryState:
    require_own_kernel(target)
    if target.require_fact("cgroup-version", "the unit must be bounded by MemoryMax and MemorySwapMax") != 2:
        raise Unsupported(f"{target.node} has cgroup v1, which cannot bound memory and swap of a unit")
    if target.require_fact("swap", "others' memory would be swapped out first"):
        raise Unsupported(
            f"{target.node} has swap: others' memory would be swapped out first", hint="`swapoff -a` there"
        )
    memory = target.require_fact("memory", "the action uses it up")
    left = remaining(target, "memory.available", memory["total"])
    limit = memory["available"] - left
    if left < _MIN_BYTES or limit <= 0:
        raise Unsupported(
            f"{target.node}: half of the kubelet's threshold is {left >> 20} MiB of "
            f"{memory['available'] >> 20} MiB available; at least {_MIN_BYTES >> 20} MiB must be left",
            hint="raise evictionHard memory.available",
        )
    return MemoryState(timer_seconds(target, params.duration), target.tag, left, limit)


def _fill_memory(state: MemoryState) -> Program:
    arguments = ("/proc/meminfo", str(state.remaining >> 10), str(state.limit >> 10))
    # 1 % more for the bookkeeping of tail's buffers.
    memory_max = state.limit + state.limit // 100 + _OVERHEAD_BYTES
    limits = (f"MemoryMax={memory_max}", "MemorySwapMax=0", "TasksMax=16")
    return run_filler(state, "memory", MEMORY_SCRIPT, arguments, limits)


MEMORY_PRESSURE = Action(
    name="memory-pressure",
    summary="take the host's memory until the kubelet reports MemoryPressure",
    description="""
    A unit of systemd takes memory until half of the kubelet's threshold is left, but never more than was available.
    Pods are evicted. If the kernel still runs out of memory, its OOM killer ends this unit first
    (OOMScoreAdjust=1000). Other processes may be slow before that, because their files must be read again. The action
    is refused on a host with swap, which would fill first.
    """,
    example="{name: fill, action: memory-pressure, target: victim, with: {duration: 5m}}",
    params=DurationParams,
    state=MemoryState,
    undo_kind=UndoKind.RESTORES,
    may_crash=True,
    proofs=(prove_condition("MemoryPressure"), prove_eviction("memory")),
    needs=Needs(("shared-kernel", "memory", "swap", "cgroup-version", "memory-filler"), ("memory", "memory-filler")),
    prepare=_prepare_memory,
    program=_fill_memory,
)

_MAX_PROCESSES = 30_000  # about 200 KiB of kernel memory each
_BYTES_PER_PROCESS = 200 << 10
# After a wrap-around the kernel assigns no ID below 300 (RESERVED_PIDS): with fewer IDs left no process could be
# started, neither a shell nor undo.
_MIN_PIDS = 400
# Each process is a fork of the shell that reads from a silent pipe: no program is executed that often.
PID_SCRIPT = """sleep infinity | {
exec 3<&0
IFS=" /" read -r _ _ _ _ threads _ < /proc/loadavg
more=$(($1 - threads - $2))
while [ "$more" -gt 0 ]; do read -r _ <&3 & more=$((more - 1)); done
exec sleep infinity
}"""


class PidState(FillerState, frozen=True):
    """``remaining`` process IDs, the host's maximum, and how many processes the unit starts."""

    pid_max: int
    limit: int


def _prepare_pids(target: Target, params: DurationParams) -> PidState:
    require_own_kernel(target)
    pids = target.require_fact("pids", "the action uses them up")
    left = remaining(target, "pid.available", pids["max"])
    if left < _MIN_PIDS:
        raise Unsupported(
            f"{target.node}: half of the kubelet's threshold is {left} process IDs; at least {_MIN_PIDS} must be left",
            hint=f"set evictionHard pid.available to {2 * _MIN_PIDS} or more",
        )
    limit = pids["max"] - pids["running"] - left
    room = target.require_fact("memory", "processes need memory")["available"] // 2
    most = min(_MAX_PROCESSES, room // _BYTES_PER_PROCESS)
    if not 0 < limit <= _MAX_PROCESSES or limit * _BYTES_PER_PROCESS > room:
        raise Unsupported(
            f"{target.node}: it would take {limit} processes; at most {most} are started there",
            hint="lower kernel.pid_max, or raise evictionHard pid.available",
        )
    return PidState(timer_seconds(target, params.duration), target.tag, left, pids["max"], limit)


def _use_pids(state: PidState) -> Program:
    arguments = (str(state.pid_max), str(state.remaining))
    return run_filler(state, "pid", PID_SCRIPT, arguments, (f"TasksMax={state.limit + 16}",))


PID_PRESSURE = Action(
    name="pid-pressure",
    summary="use process IDs up until the kubelet reports PIDPressure",
    description="""
    A unit of systemd starts sleeping processes, up to its TasksMax. By default the kubelet has no threshold for
    process IDs (evictionHard pid.available). Evicting pods frees few process IDs, so the kubelet may evict one pod
    after another.
    """,
    example="{name: fill, action: pid-pressure, target: victim, with: {duration: 5m}}",
    params=DurationParams,
    state=PidState,
    no_windows_reason="a kubelet on Windows does not watch process IDs",
    undo_kind=UndoKind.RESTORES,
    may_crash=True,
    proofs=(prove_condition("PIDPressure"), prove_eviction("pids")),
    needs=Needs(("shared-kernel", "pids", "memory", "pid-filler"), ("pids", "pid-filler")),
    prepare=_prepare_pids,
    program=_use_pids,
)

_MIN_SHARE = 0.02  # of the file system, always left
# The file is unlinked before it grows: it disappears with the process, a crash or a power cut.
DISK_SCRIPT = """exec 3>"$1/.nodefall-fill" && rm -f "$1/.nodefall-fill" || exit 1
available=$(df -P -k "$1" | awk 'NR == 2 { print $4 }')
more=$((available - $2))
[ "$more" -gt 0 ] && fallocate --length "$more"KiB /proc/self/fd/3
exec sleep infinity"""


class DiskState(FillerState, frozen=True):
    """The kubelet's directory; ``remaining`` in bytes."""

    directory: str


def _prepare_disk(target: Target, params: DurationParams) -> DiskState:
    require_own_kernel(target)
    disk = target.require_fact("disk", "the action fills it")
    free = remaining(target, "nodefs.available", disk["total"])
    if free < disk["total"] * _MIN_SHARE:
        raise Unsupported(
            f"{target.node}: the kubelet's threshold leaves under {_MIN_SHARE:.0%} of {disk['mount']}",
            hint="raise evictionHard nodefs.available",
        )
    return DiskState(timer_seconds(target, params.duration), target.tag, free, disk["root"])


def _fill_disk(state: DiskState) -> Program:
    return run_filler(state, "disk", DISK_SCRIPT, (state.directory, str(state.remaining // 1024)), ())


DISK_PRESSURE = Action(
    name="disk-pressure",
    summary="fill the kubelet's file system until the kubelet reports DiskPressure",
    description="""
    An unlinked file fills the file system of the kubelet's directory (nodefs) until half of the eviction threshold is
    left.

    The kubelet evicts pods and deletes images and dead containers, which undo does not restore.
    Other writers to this file system have only the remaining half.
    """,
    example="{name: fill, action: disk-pressure, target: victim, with: {duration: 5m}}",
    params=DurationParams,
    state=DiskState,
    undo_kind=UndoKind.RESTORES,
    proofs=(prove_condition("DiskPressure"), prove_eviction("ephemeral-storage")),
    needs=Needs(("shared-kernel", "disk", "disk-filler"), ("disk-filler",)),
    prepare=_prepare_disk,
    program=_fill_disk,
)
