"""A disk that is slow for the pods of a node, or for one service of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from pydantic import Field, field_validator

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    ProofStatus,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until, last_reading_before, no_proof, readings_after, within_duration
from chaos.core.fact import FactRef
from chaos.core.field_types import DiskUnit, Model, MountPath
from chaos.core.node_mark import BlockDevice, DeviceNumber, MountPoint, Tag
from chaos.core.node_mark import DiskUnit as SavedDiskUnit
from chaos.core.timeline import Fact, Timeline
from chaos.faults.actions._params import Ends, timer_seconds
from chaos.faults.readings.disks import PROPERTIES, READ_BYTES, limit_files

_UNITS = {"k": 10**3, "M": 10**6}  # as systemd.resource-control(5)
_SLOWEST, _FASTEST = 64_000, 4_000_000  # bytes a second: what reads of a few seconds can measure
_RATE, _IOPS = "1M", 100
_READ_SECONDS, _LEAST_READS = 2.0, 8  # that the reads of a proof take at the limit
_TOLERANCE = 1.25  # the kernel lets through at once what is due in 0.1 s (block/blk-throttle.c)
_FASTER = 2.0  # times as fast the disk must have been before
# A reload alone may leave io.max as it is: systemd writes only limits that it knows of (core/cgroup.c,
# cgroup_context_apply). So it first gets to know that this disk has none; the unit's own limits of others stay.
_RESTORE_SCRIPT = (
    'unit="$1"; disk="$2"; shift; shift; systemctl set-property --runtime "$unit" '
    + " ".join(f'"{name}=$disk infinity"' for name in PROPERTIES)
    + ' && rm --force "$@" && systemctl daemon-reload'
)


class Params(Model):
    """The disk, the affected unit, the limits, and the duration."""

    path: MountPath = Field("/var/lib/kubelet", description="A path on the disk. It must not be /.")
    unit: DiskUnit = Field(
        "kubepods.slice",
        description="Whose I/O is limited: kubepods.slice (the pods), or the service of the kubelet or the runtime.",
    )
    rate: str = Field(_RATE, description="The limit in bytes per second, from 64k to 4M, for reads and for writes.")
    iops: int = Field(_IOPS, ge=4, le=1000, description="The limit in operations per second, for reads and for writes.")
    duration: Ends = None

    @field_validator("rate")
    @classmethod
    def _validate_rate(cls, value: str) -> str:
        if not _SLOWEST <= _parse_rate(value) <= _FASTEST:
            raise ValueError("rate is from 64k to 4M")
        return value


class SlowDiskState(Struct, frozen=True):
    """Unit, whole disk, limits before by number of a disk (as io.max), the new ones, and the failsafe timer."""

    unit: SavedDiskUnit
    path: MountPoint
    disk: BlockDevice
    number: DeviceNumber
    limits: dict[str, str]
    rate: int
    iops: int
    tag: Tag
    seconds: float


def _parse_rate(text: str) -> int:
    """Parse a rate in bytes per second. Raises ValueError."""
    number, factor = text[:-1], _UNITS.get(text[-1:])
    if factor is None or not number.isdecimal():
        raise ValueError("rate must be a whole number with k or M, such as 500k")
    return int(number) * factor


def _bytes_a_second(rate: str, iops: int) -> float:
    """The rate of the reads that prove the limit, in bytes per second."""
    return min(_parse_rate(rate), iops * READ_BYTES)


def _limits_fact(unit: str, path: str) -> str:
    return str(FactRef("disk-limits", {"unit": unit, "path": path}))


def _reads_fact(unit: str, path: str, rate: str, iops: int) -> str:
    count = max(_LEAST_READS, round(_READ_SECONDS * _bytes_a_second(rate, iops) / READ_BYTES))
    return str(FactRef("disk-reads", {"unit": unit, "path": path, "count": str(count)}))


def _io_max(rate: int, iops: int) -> str:
    return f"rbps={rate} wbps={rate} riops={iops} wiops={iops}"


def _former(state: SlowDiskState) -> FactCheck:
    value = _restored(state).value | {"disk": state.disk, "number": state.number}
    return FactCheck(_limits_fact(state.unit, state.path), value)


def _restored(state: SlowDiskState) -> FactCheck:
    """Checks that the limits are restored, whatever the disk's name and number: both may change with a boot."""
    value = {"active": True, "io": True, "limits": state.limits, "runtime": False, "stale": False}
    return FactCheck(str(FactRef("disk-limits", {"unit": state.unit})), value)


def _speed(reading: Fact) -> float | None:
    """The measured bytes per second; None if the reading has no measurement."""
    value = reading.value
    if not isinstance(value, dict) or not value.get("bytes") or not value.get("seconds"):
        return None
    return float(value["bytes"]) / float(value["seconds"])


def _check_slow(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by the limit in force, and by reads in the unit that were fast before and now are as slow as the limit."""
    unit, path = (str(step.params.get(key, Params.model_fields[key].default)) for key in ("unit", "path"))
    rate, iops = str(step.params.get("rate", _RATE)), int(step.params.get("iops", _IOPS))
    step = within_duration(step)
    wanted = _io_max(_parse_rate(rate), iops)

    def is_limited(value: Any) -> bool:
        return isinstance(value, dict) and (value.get("limits") or {}).get(value.get("number")) == wanted

    fact, reads = _limits_fact(unit, path), _reads_fact(unit, path, rate, iops)
    in_force = holds_until(fact, is_limited, f"the kernel limits {unit}").check(timeline, step)
    if in_force.status is not ProofStatus.PROVEN:
        return in_force
    before = last_reading_before(timeline, step, reads)
    usual = _speed(before) if before else None
    found = [
        (speed, reading)
        for reading in readings_after(timeline, step, reads)
        if reading.began >= (step.returned or step.begin) and (speed := _speed(reading)) is not None
    ]
    if before is None or usual is None or not found:
        return no_proof(f"the speed of the disk of {step.node} was not measured before and after the step")
    speed, reading = max(found, key=lambda pair: pair[0])
    because = f"a process in {unit} of {step.node} read {_text(speed)}, before the step {_text(usual)}"
    limit, seqs = _bytes_a_second(rate, iops), (*in_force.evidence, before.seq, reading.seq)
    if speed > _FASTER * limit:
        return ProofResult(ProofStatus.DISPROVEN, f"{because}: the limit has no effect", seqs)
    if speed > _TOLERANCE * limit or usual < _FASTER * speed:
        return no_proof(f"{because}, and the limit allows {_text(limit)}")
    return ProofResult(ProofStatus.PROVEN, because, seqs)


def _text(speed: float) -> str:
    return f"{speed / 1000:.0f} kB/s"


def _require_limitable(node: str, params: Params, found: dict[str, Any]) -> None:
    """Raises Unsupported if the limit would have no effect, or if undo could not restore the current limits."""
    if not found["io"]:
        raise Unsupported(f"{node}: the kernel has no io controller (cgroup.controllers)", hint="choose another node")
    if not found["active"]:
        raise Unsupported(
            f"{node}: {params.unit} has no control group: it is not active, or the kubelet's cgroupDriver is cgroupfs",
            hint="choose another unit",
        )
    if not found["disk"]:
        raise Unsupported(
            f"{node}: {params.path} is not on a single disk that has a device",
            hint="choose a path on a disk that `lsblk` shows on the host",
        )
    if found["runtime"] or found["number"] in found["limits"]:
        raise Unsupported(
            f"{node}: {params.unit} already has a limit for {found['disk']}",
            hint="find the run with `nodefall undo --list` and undo it, or choose another unit",
        )
    if found["stale"]:
        raise Unsupported(
            f"{node}: files of {params.unit} have changed, and undo would make systemd load them",
            hint="run `systemctl daemon-reload` there",
        )


def _needs(params: Params) -> Needs:
    limits = _limits_fact(params.unit, params.path)
    reads = _reads_fact(params.unit, params.path, params.rate, params.iops)
    return Needs(("shared-kernel", "cgroup-version", limits), (limits, reads))


def _prepare(target: Target, params: Params) -> SlowDiskState:
    if target.require_fact("shared-kernel", "others' disks must not be hit"):
        raise Unsupported(
            f"{target.node} is a container: it shares disks with its machine", hint="use a dedicated machine"
        )
    if target.require_fact("cgroup-version", "the limit is io.max") != 2:
        raise Unsupported(f"{target.node} has cgroup v1, which has no io.max", hint="use a host with cgroup v2")
    found = target.require_fact(_limits_fact(params.unit, params.path), "undo restores it")
    _require_limitable(target.node, params, found)
    return SlowDiskState(
        unit=params.unit,
        path=params.path,
        disk=found["disk"],
        number=found["number"],
        limits=found["limits"],
        rate=_parse_rate(params.rate),
        iops=params.iops,
        tag=target.tag,
        seconds=timer_seconds(target, params.duration),
    )


def _program(state: SlowDiskState) -> Program:
    values = (state.rate, state.rate, state.iops, state.iops)
    limits = (f"{name}={state.disk} {value}" for name, value in zip(PROPERTIES, values, strict=True))
    restored = _restored(state)
    restore = ("sh", "-c", _RESTORE_SCRIPT, "nodefall", state.unit, state.disk, *limit_files(state.unit))
    return Program(
        (HostCommand(("systemctl", "set-property", "--runtime", state.unit, *limits)),),
        Undo((UndoStep(HostCommand(restore), unless=restored),), (restored, NODE_READY)),
        preconditions=(_former(state),),
        failsafe=failsafe_timer(state, *restore),
    )


ACTION = Action(
    name="disk-slow",
    summary="limit how fast the pods or one service of a node may read and write on a disk",
    description="""
    Sets io.max of a unit with ``systemctl set-property --runtime`` (IOReadBandwidthMax, IOWriteBandwidthMax and so
    on).

    The kernel then makes the processes of the unit wait for the disk, whatever its file system: the processes of all
    pods, including kubeadm's etcd, or of one service. Reads from the page cache and writes to it stay fast until it
    is full. Other units keep the full speed of the disk. Limits that the unit's own files set for other disks stay.
    The action is refused if the path is not on a single disk with a device: on Btrfs, ZFS, RAID and network file
    systems. Reads from the start of the disk that bypass the page cache prove the limit. The limit for writes is read
    back but not measured.
    """,
    example="{name: slow-disk, action: disk-slow, target: victim, with: {rate: 500k, iops: 50}}",
    params=Params,
    state=SlowDiskState,
    undo_kind=UndoKind.RESTORES,
    stops_exec=True,  # commands in pods that read files from the disk may not answer in time
    keeps_pods_running=True,
    proofs=(Proof("reads-take-long", _check_slow),),
    needs=_needs,
    prepare=_prepare,
    program=_program,
)
