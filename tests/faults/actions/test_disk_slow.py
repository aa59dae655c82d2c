"""A slow disk: what is limited, how that is undone, and what is refused."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.core.fact import FactRef
from chaos.faults.actions.disk_slow import SlowDiskState
from chaos.faults.readings.disks import limit_files
from tests.kit.actionkit import ACTIONS, describe, prepare

LIMITS: dict[str, Any] = {
    "active": True,
    "io": True,
    "disk": "/dev/nvme0n1",
    "number": "259:0",
    "limits": {"8:0": "rbps=max wbps=max riops=max wiops=77"},
    "runtime": False,
    "stale": False,
}
NODE: dict[str, Any] = {"shared-kernel": False, "cgroup-version": 2}
KUBEPODS = "/run/systemd/system.control/kubepods.slice.d/50-IOWriteIOPSMax.conf"


def reference(unit: str = "kubepods.slice", path: str = "/var/lib/kubelet") -> str:
    return str(FactRef("disk-limits", {"unit": unit, "path": path}))


def target(fact: str = "", **changes: Any) -> Target:
    known = NODE | {fact or reference(): LIMITS | changes}
    return Target("n1", facts=known, tag="run-do", max_duration=600.0)


def assignments(size: int, iops: int, disk: str = "/dev/nvme0n1") -> str:
    pairs = {"IOReadBandwidthMax": size, "IOWriteBandwidthMax": size, "IOReadIOPSMax": iops, "IOWriteIOPSMax": iops}
    return shlex.join(f"{name}={disk} {value}" for name, value in pairs.items())


@pytest.mark.parametrize(
    ("given", "unit", "path", "limits", "seconds"),
    [
        ({}, "kubepods.slice", "/var/lib/kubelet", assignments(1_000_000, 100), 600),
        ({"rate": "64k", "iops": 4, "duration": "1m"}, "kubepods.slice", "/var/lib/kubelet", assignments(64000, 4), 60),
        (
            {"unit": "containerd.service", "path": "/var/lib/containerd", "rate": "4M", "duration": "1h"},
            *("containerd.service", "/var/lib/containerd", assignments(4_000_000, 100), 600),
        ),
    ],
)
def test_the_unit_is_limited_and_its_files_are_removed(
    given: dict[str, Any], unit: str, path: str, limits: str, seconds: int
) -> None:
    node, fact = target(reference(unit, path)), reference(unit, path)
    done = describe("disk-slow", given, node)
    assert done.inject == [f"systemctl set-property --runtime {unit} {limits}"]
    (precondition,) = ACTIONS["disk-slow"].program(prepare("disk-slow", given, node)).preconditions
    assert (precondition.fact, precondition.value) == (fact, LIMITS)
    (undo,) = done.undo
    command, _, unless = undo.partition(" unless ")
    assert done.failsafe == f"nodefall-run-do after {seconds}s: {command}"
    words = shlex.split(command)
    assert words[:2] == ["sh", "-c"]
    assert words[3:] == ["nodefall", unit, "/dev/nvme0n1", *limit_files(unit)]
    # infinity, before the files go: a reload leaves limits that it no longer knows
    assert (
        words[2].index('"IOWriteIOPSMax=$disk infinity"')
        < words[2].index("rm --force")
        < words[2].index("daemon-reload")
    )
    # without a path: after a boot the disk may have another name and number
    restored = (
        f"disk-limits?unit={unit} is { {name: LIMITS[name] for name in LIMITS if name not in ('disk', 'number')} }"
    )
    assert unless == restored
    assert done.proof == [restored, "the node is Ready"]
    assert done.disarm == "nodefall-run-do"


def test_files_of_units_and_of_transient_units() -> None:
    files = limit_files("kubepods.slice")
    assert len(files) == 8
    assert {KUBEPODS, KUBEPODS.replace("system.control", "transient")} < set(files)


@pytest.mark.parametrize(
    ("given", "count"),
    [({}, 122), ({"rate": "64k"}, 8), ({"rate": "4M", "iops": 1000}, 488), ({"iops": 4}, 8), ({"iops": 20}, 40)],
)
def test_the_reads_of_the_proof_take_two_seconds_at_the_limit(given: dict[str, Any], count: int) -> None:
    action = ACTIONS["disk-slow"]
    references = action.needs_with(action.params.model_validate(given)).proof_facts
    reads = FactRef("disk-reads", {"unit": "kubepods.slice", "path": "/var/lib/kubelet", "count": str(count)})
    assert references == (reference(), str(reads))


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (Target("n1", facts=NODE | {"shared-kernel": True}), "is a container"),
        (Target("n1", facts=NODE | {"cgroup-version": 1}), "has cgroup v1"),
        (target(io=False), "has no io controller"),
        (target(active=False), "has no control group"),
        (target(disk="", number=""), "is not on a single disk"),
        (target(runtime=True), "already has a limit"),
        (target(limits={"259:0": "rbps=1 wbps=max riops=max wiops=max"}), "already has a limit"),
        (target(stale=True), "would make systemd load them"),
    ],
)
def test_it_is_refused(node: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as refused:
        describe("disk-slow", {}, node)
    assert refused.value.hint


def test_it_is_refused_where_the_disk_is_not_known() -> None:
    with pytest.raises(Unsupported, match="disk-limits"):
        describe("disk-slow", {}, Target("n1", facts=NODE))


@pytest.mark.parametrize(
    "given",
    [
        *({"rate": text} for text in ("63k", "5M", "1", "", "1G", "-1M", "1.5M", "M", "1m")),
        *({"iops": number} for number in (0, 3, 1001)),
        *({"unit": text} for text in ("cron.service", "-.slice", "system.slice", "kubelet", "kubepods.slice x", "")),
        *({"path": text} for text in ("/", "/run/x", "relative", "/var/$x")),
        {"duration": "never"},
    ],
)
def test_parameters_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        describe("disk-slow", given, target())


@pytest.mark.parametrize(
    "forged",
    [
        {"unit": "init.scope"},
        {"unit": "--runtime"},
        {"unit": "../x.service"},
        {"path": "/run"},
        {"disk": "--all"},
        {"disk": "/dev/../etc"},
        {"number": "1"},
        {"tag": "-x"},
        {"rate": "x"},
    ],
)
def test_a_forged_state_is_not_decoded(forged: dict[str, Any]) -> None:
    good = msgspec.to_builtins(prepare("disk-slow", {}, target()))
    assert msgspec.convert(good, SlowDiskState).disk == "/dev/nvme0n1"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(good | forged, SlowDiskState)
