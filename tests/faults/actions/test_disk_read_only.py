"""A file system made read-only: what is sent, what is restored, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from chaos.core.action import Target
from chaos.core.errors import Unsupported
from chaos.core.fact import FactRef
from chaos.faults.actions.disk_read_only import ReadOnlyState
from tests.kit.actionkit import ActionDescription, describe

PATH = "/var/lib/data"
MOUNT = {
    "source": "/dev/mapper/vg-data",
    "type": "xfs",
    "options": "rw,nosuid,noatime",
    "whole": True,
    "with-root": False,
    "writable": True,
}
REFERENCE = FactRef("mount", {"path": PATH})


def node(shared: bool = False, **changes: Any) -> Target:
    mount = MOUNT | {name.replace("_", "-"): value for name, value in changes.items()}
    return Target("n1", facts={"shared-kernel": shared, str(REFERENCE): mount}, tag="run-do", max_duration=600.0)


def test_source_and_target_are_named_and_the_options_restored() -> None:
    note = "/run/nodefall-run-do.read-only"
    given = f"nodefall {note} rw,nosuid,noatime /dev/mapper/vg-data {PATH}"
    script = """'grep -qxF "$3 $4 $2" "$1" && mount -o "remount,$2" "$3" "$4" && rm --force "$1"'"""
    back = f"sh -c {script} {given}"
    inject = """'umask 077 && echo "$3 $4 $2" >> "$1" && exec mount -o "remount,$5" "$3" "$4"'"""
    former = f"{REFERENCE} is {MOUNT}"
    assert describe("disk-read-only", {"path": PATH, "duration": "90s"}, node()) == ActionDescription(
        inject=[f"sh -c {inject} {given} ro,nosuid,noatime"],
        preconditions=[former],
        failsafe=f"nodefall-run-do after 90s: {back}",
        undo=[f"{back} unless {former}", f"rm --force {note} unless None when {former}"],
        proof=[former, "the node is Ready"],
        disarm="nodefall-run-do",
    )


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (node(shared=True), "is a container"),
        (Target("n1", facts={"shared-kernel": False, str(REFERENCE): {}}), "is not a mount point"),
        (node(with_root=True), "not the whole of a block device without /"),
        (node(whole=False), "not the whole of a block device without /"),
        (node(source="10.0.0.5:/data", type="nfs4"), "not the whole of a block device without /"),
        (node(source="/dev/../etc"), "not the whole of a block device without /"),
        (node(writable=False, options="ro"), "is read-only already"),
        (node(options="rw,idmapped"), "mounted with rw,idmapped"),
    ],
)
def test_it_is_refused(target: Target, why: str) -> None:
    with pytest.raises(Unsupported, match=why) as refused:
        describe("disk-read-only", {"path": PATH}, target)
    assert refused.value.hint


@pytest.mark.parametrize(
    "path", ["/", "/run", "/run/systemd", "/proc", "/dev/shm", "/sys/fs/cgroup", "data", "/var/..", "/var/$x", "/a b"]
)
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="is no full path"):
        describe("disk-read-only", {"path": path}, node())


@pytest.mark.parametrize("path", ["/runner", "/var/lib/kubelet", "/development/d.1"])
def test_paths_of_similar_names(path: str) -> None:
    target = Target("n1", facts={"shared-kernel": False, str(FactRef("mount", {"path": path})): MOUNT}, tag="run-do")
    assert describe("disk-read-only", {"path": path}, target).inject[0].endswith(f" {path} ro,nosuid,noatime")


@pytest.mark.parametrize(
    "forged", [{"path": "/"}, {"path": "/run"}, {"source": "--bind"}, {"options": "rw,suid"}, {"options": "ro"}]
)
def test_a_forged_state_is_not_decoded(forged: dict[str, str]) -> None:
    good = {"path": PATH, "source": "/dev/vdb1", "type": "ext4", "options": "rw", "tag": "run-do", "seconds": 60.0}
    assert msgspec.convert(good, ReadOnlyState).path == PATH
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(good | forged, ReadOnlyState)
