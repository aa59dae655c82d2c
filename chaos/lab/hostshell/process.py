"""Processes of a simulated host: host system, user, standard streams.

Streams that lead nowhere: of programs without a client, and of redirections.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.lab.hostshell.packet_filter import Chains
from chaos.lab.hostshell.traffic import Traffic
from chaos.lab.node.kubelet.process import Resource
from chaos.lab.node.machine import Machine
from chaos.lab.sim import SimClock, Timer
from chaos.lab.sim.lockstep import Job, Waits


def _start_task(program: Coroutine[Any, Any, int]) -> Job:
    return asyncio.get_running_loop().create_task(program)


@dataclass(slots=True)
class TransientTimer:
    """A transient timer of systemd-run."""

    name: str  # without the suffix .timer
    description: str
    next_elapse: float
    timer: Timer


@dataclass(frozen=True, slots=True)
class TransientService:
    """A running unit of systemd-run, and the resource that it exhausts."""

    resource: Resource
    timer: Timer | None  # for RuntimeMaxSec
    since: float = 0.0
    cpus: float = 0.0  # that it keeps busy


@dataclass(frozen=True, slots=True)
class NftTable:
    """Chains of one table by direction, and the text that defined them."""

    chains: Chains = ()
    text: str = ""


@dataclass
class HostSystem:
    """A machine as seen by its programs.

    ``run_as_root`` starts a command in the background, ``start_job`` a program of a shell.
    """

    machine: Machine
    sim: SimClock
    lockstep: Waits
    run_as_root: Callable[[list[str]], None]
    programs: Mapping[str, Program]  # by name
    timers: dict[str, TransientTimer] = field(default_factory=dict)
    services: dict[str, TransientService] = field(default_factory=dict)
    tables: dict[str, NftTable] = field(default_factory=dict)
    caught_packets: int = 0  # lookups and pings that the tables have dropped or rejected
    traffic: Traffic = field(default_factory=Traffic)
    parameters: dict[str, str] = field(default_factory=dict)  # of the kernel, where they were changed
    stopped: set[str] = field(default_factory=set)  # ordinary services that were stopped
    run_files: dict[str, str] = field(default_factory=dict)  # in /run
    mount_options: dict[str, str] = field(default_factory=dict)  # by mount point, where they were changed
    disk_properties: dict[str, str] = field(default_factory=dict)  # of kubepods.slice, as systemd has loaded them
    ended_fillers: list[float] = field(default_factory=list)  # CPU seconds of those since the boot that have ended
    start_job: Callable[[Coroutine[Any, Any, int]], Job] = _start_task

    @property
    def uptime(self) -> float:
        return self.sim.now - self.machine.pid1_start

    def lose_power(self) -> None:
        """Drop everything in memory and /run."""
        for transient in self.timers.values():
            transient.timer.cancel()
        self.timers.clear()
        for service in self.services.values():
            if service.timer is not None:
                service.timer.cancel()
            # also for disk: the filler's file is unlinked, so the kernel frees it with the process
            self.machine.pressure.discard(service.resource)
        self.services.clear()
        self.tables.clear()
        self.caught_packets = 0
        self.traffic = Traffic()
        self.parameters.clear()
        self.stopped.clear()
        self.run_files.clear()
        self.mount_options.clear()
        self.disk_properties.clear()
        self.ended_fillers.clear()


@dataclass(frozen=True, slots=True)
class Process:
    """A process; ``read_line`` returns the rest, or "", at the end of input."""

    host: HostSystem
    user: str
    out: Callable[[str], None]
    err: Callable[[str], None]
    read_line: Callable[[], Awaitable[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    slice: str = ""  # of systemd, where it matters

    @property
    def is_root(self) -> bool:
        return self.user == "root"

    def replace(self, **changes: Any) -> Process:
        return dataclasses.replace(self, **changes)

    def fail(self, message: str, code: int = 1) -> int:
        """Write a line to stderr, and return the exit code."""
        self.err(message + "\n")
        return code


Program = Callable[[Process, list[str]], Awaitable[int]]


def discard(_: str) -> None:
    """Take output, and forget it."""


async def no_input() -> str:
    """A line of an empty stdin: "" is its end."""
    return ""
