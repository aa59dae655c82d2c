"""A file system that is mounted read-only: every write to it fails with EROFS."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct
from pydantic import Field

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Proof,
    ProofResult,
    StepRun,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until, no_proof, within_duration
from chaos.core.fact import FactRef
from chaos.core.field_types import BLOCK_DEVICE, MOUNT_OPTIONS, Model, MountPath
from chaos.core.node_mark import BlockDevice, MountOptions, MountPoint, Tag
from chaos.core.timeline import Timeline
from chaos.faults.actions._params import Ends, timer_seconds

_TIMEOUT = 60.0  # seconds: the kernel first writes what is in memory
# What undo may remount is noted on the node: the state that it comes from may be written by others, in the cluster.
_INJECT = 'umask 077 && echo "$3 $4 $2" >> "$1" && exec mount -o "remount,$5" "$3" "$4"'
_RESTORE = 'grep -qxF "$3 $4 $2" "$1" && mount -o "remount,$2" "$3" "$4" && rm --force "$1"'
_NO_NOTE = "the node has no note that nodefall made this file system read-only"


class Params(Model):
    """The file system and the duration."""

    path: MountPath = Field(description="The mount point. It must not be / or a path in /run, /proc, /sys or /dev.")
    duration: Ends = None


class ReadOnlyState(Struct, frozen=True):
    """The mount, its type and its options before, which have ``rw``; and the failsafe timer."""

    path: MountPoint
    source: BlockDevice
    type: str
    options: MountOptions
    tag: Tag
    seconds: float


def _reference(path: str) -> str:
    return str(FactRef("mount", {"path": path}))


def _note(state: ReadOnlyState) -> str:
    return f"/run/nodefall-{state.tag}.read-only"


def _command(script: str, state: ReadOnlyState, *more: str) -> HostCommand:
    """The mount command. With source and target, mount(8) ignores fstab, so it lists all of the mount's options."""
    argv = ("sh", "-c", script, "nodefall", _note(state), state.options, state.source, state.path, *more)
    return HostCommand(argv, timeout=_TIMEOUT)


def _restore(state: ReadOnlyState) -> HostCommand:
    return msgspec.structs.replace(_command(_RESTORE, state), refusals=((1, _NO_NOTE), (2, _NO_NOTE)))


def _former(state: ReadOnlyState) -> FactCheck:
    value = {"source": state.source, "type": state.type, "options": state.options}
    return FactCheck(_reference(state.path), value | {"whole": True, "with-root": False, "writable": True})


def _check_read_only(timeline: Timeline, step: StepRun) -> ProofResult:
    """Proven by a write that failed with EROFS."""
    path = step.params.get("path")
    if not isinstance(path, str):
        return no_proof("the step has no path")

    def is_read_only(value: Any) -> bool:
        return isinstance(value, dict) and value.get("writable") is False

    what = f"writes to {path} fail: Read-only file system"
    return holds_until(_reference(path), is_read_only, what).check(timeline, within_duration(step))


def _prepare(target: Target, params: Params) -> ReadOnlyState:
    if target.require_fact("shared-kernel", "others' disks must not be hit"):
        raise Unsupported(
            f"{target.node} is a container: it shares file systems with its machine", hint="use a dedicated machine"
        )
    mount = target.require_fact(_reference(params.path), "undo restores it")
    where = f"{target.node}: {params.path}"
    if not mount:
        raise Unsupported(f"{where} is not a mount point", hint="choose a path from `findmnt --real` on the host")
    if mount["with-root"] or not mount["whole"] or not re.fullmatch(BLOCK_DEVICE, mount["source"]):
        raise Unsupported(
            f"{where} is {mount['source']} ({mount['type']}), and not the whole of a block device without /",
            hint="choose a path from `findmnt --real` on the host",
        )
    if not mount["writable"]:
        raise Unsupported(f"{where} is read-only already", hint="undo the run that did it, or remount it")
    if not re.fullmatch(MOUNT_OPTIONS, mount["options"]):
        raise Unsupported(
            f"{where} is mounted with {mount['options']}, which undo could not restore",
            hint="choose another file system",
        )
    found = (mount["source"], mount["type"], mount["options"])
    return ReadOnlyState(params.path, *found, target.tag, timer_seconds(target, params.duration))


def _program(state: ReadOnlyState) -> Program:
    """The commands and undo. If the kernel refuses the fault, only the note remains."""
    former, restore = _former(state), _restore(state)
    forget = UndoStep(HostCommand(("rm", "--force", _note(state))), when=(former,))
    return Program(
        (_command(_INJECT, state, state.options.replace("rw", "ro", 1)),),
        Undo((UndoStep(restore, unless=former), forget), (former, NODE_READY)),
        preconditions=(former,),
        failsafe=failsafe_timer(state, *restore.argv),
    )


ACTION = Action(
    name="disk-read-only",
    summary="make a file system read-only: every write to it fails",
    description="""
    Runs ``mount -o remount,ro`` for a file system on a block device, which affects all its mount points on the host.
    A disk error has the same effect (errors=remount-ro). While a program has a file on it open for writing, the
    kernel refuses the change (mount point is busy) and nothing happens. Undo restores the mount options.
    """,
    example="{name: read-only, action: disk-read-only, target: victim, with: {path: /var/lib/data}}",
    params=Params,
    state=ReadOnlyState,
    undo_kind=UndoKind.RESTORES,
    proofs=(Proof("mount", _check_read_only),),
    needs=lambda params: Needs(("shared-kernel", _reference(params.path)), (_reference(params.path),)),
    prepare=_prepare,
    program=_program,
)
