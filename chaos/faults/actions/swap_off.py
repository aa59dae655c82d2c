"""Swap turned off for a while: swapped pages return to memory, and nothing can be swapped out."""

from __future__ import annotations

import re
from typing import Annotated, Any

from msgspec import Meta, Struct

from chaos.core.action import (
    NODE_READY,
    Action,
    FactCheck,
    Needs,
    Program,
    Target,
    Undo,
    UndoKind,
    UndoStep,
    failsafe_timer,
)
from chaos.core.command import HostCommand
from chaos.core.errors import Unsupported
from chaos.core.evidence import holds_until
from chaos.core.fact import FactRef, host_fact
from chaos.core.field_types import Model
from chaos.core.node_mark import Tag
from chaos.faults.actions._params import DurationParams, timer_seconds
from chaos.faults.readings.machine import SWAPS

_READ_SWAPS = HostCommand(("cat", "/proc/swaps"), sudo=False)
_AUTOMATIC = -1  # of swapon: the kernel chooses the priority, and shows it as a lower number
_TIMEOUT = 600.0  # seconds: what was swapped out is read from the disk
_MAX_SHARE = 0.8  # of the available memory, that what was swapped out may take


_PATH = r"/[A-Za-z0-9_][A-Za-z0-9_./-]{0,255}"


class AreaParams(Model):
    """A device or file."""

    path: str


class SwapArea(Struct, frozen=True):
    """A device or file, of plain characters, and its priority as ``swapon`` takes it."""

    path: Annotated[str, Meta(pattern=rf"\A{_PATH}\Z")]
    priority: Annotated[int, Meta(ge=_AUTOMATIC, le=32767)]


class SwapState(Struct, frozen=True):
    """The previous swap areas, in the order of use, and the failsafe timer."""

    areas: tuple[SwapArea, ...]
    tag: Tag
    seconds: float


@host_fact(
    "swap-areas",
    "devices and files that the host swaps to",
    _READ_SWAPS,
    sample=[["/dev/vda2", -1, 0]],
    form=SWAPS,
)
def swap_areas(stdout: str, exit_code: int) -> list[list[Any]]:
    """List of ``[PATH, PRIORITY, BYTES]`` in the order of use; priority -1 if the kernel chose it, bytes in use."""
    if exit_code or not re.fullmatch(SWAPS, stdout):
        raise ValueError("cannot parse /proc/swaps")
    _, *rows = stdout.splitlines()
    fields = [row.split() for row in rows]  # path, type, size, used, priority
    by_priority = sorted(fields, key=lambda row: -int(row[4]))
    return [[row[0], max(int(row[4]), _AUTOMATIC), int(row[3]) * 1024] for row in by_priority]


@host_fact(
    "swap-area",
    "priority of a device or file that the host swaps to",
    lambda *_: _READ_SWAPS,
    params=AreaParams,
    form=SWAPS,
)
def swap_area(stdout: str, exit_code: int, params: AreaParams) -> int | None:
    """Whole number, -1 if the kernel chose it; null if the host does not use the area."""
    return next((area[1] for area in swap_areas.parse(stdout, exit_code) if area[0] == params.path), None)


def _is_on(area: SwapArea) -> FactCheck:
    return FactCheck(str(FactRef("swap-area", {"path": area.path})), area.priority)


def _prepare(target: Target, params: DurationParams) -> SwapState:
    if target.require_fact("shared-kernel", "others' memory must not be hit"):
        raise Unsupported(f"{target.node} is a container: it shares swap with its machine", hint="use another machine")
    areas = target.require_fact("swap-areas", "undo turns on what was on")
    if not areas:
        raise Unsupported(f"{target.node} has no swap that could be turned off", hint="choose a node with swap")
    if strange := [path for path, *_ in areas if not re.fullmatch(_PATH, path)]:
        raise Unsupported(
            f"{target.node} swaps to {strange[0]}, which swapon would not find", hint="turn it off by hand"
        )
    used = sum(area[2] for area in areas)
    room = _MAX_SHARE * target.require_fact("memory", "swapped-out pages must fit into it")["available"]
    if used > room:
        raise Unsupported(
            f"{target.node}: {used >> 20} MiB are swapped out, and its memory has room for {int(room) >> 20} MiB",
            hint="choose a node with more memory",
        )
    found = tuple(SwapArea(path, priority) for path, priority, _ in areas)
    return SwapState(found, target.tag, timer_seconds(target, params.duration))


def _program(state: SwapState) -> Program:
    """The undo turns the areas on one by one, in order: the kernel gives each area without a priority a lower one."""
    on = [("swapon", "--priority", str(area.priority), area.path) for area in state.areas]
    checks = tuple(_is_on(area) for area in state.areas)
    steps = (UndoStep(HostCommand(argv), unless=check) for argv, check in zip(on, checks, strict=True))
    return Program(
        (HostCommand(("swapoff", *(area.path for area in state.areas)), timeout=_TIMEOUT),),
        Undo(tuple(steps), (*checks, NODE_READY)),
        preconditions=checks,
        failsafe=failsafe_timer(state, "sh", "-c", "; ".join(" ".join(argv) for argv in on)),
    )


ACTION = Action(
    name="swap-off",
    summary="turn the host's swap off, so that swapped-out pages must fit into memory",
    description="""
    Runs ``swapoff`` for every device and file in /proc/swaps. Undo turns on exactly these, with their priorities. The
    action is refused on a host without swap, in a container, and if the swapped-out pages would take more than 80 %
    of the available memory. If memory runs out later, the kubelet evicts pods, or the kernel kills processes.
    """,
    example="{name: no-swap, action: swap-off, target: victim, with: {duration: 5m}}",
    params=DurationParams,
    state=SwapState,
    undo_kind=UndoKind.RESTORES,
    keeps_pods_running=True,
    proofs=(holds_until("swap-areas", lambda areas: areas == [], "the host has no active swap"),),
    needs=Needs(("shared-kernel", "memory", "swap-areas"), ("swap-areas",)),
    prepare=_prepare,
    program=_program,
)
