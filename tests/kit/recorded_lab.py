"""A lab in a thread of this process that records what each of its machines is sent."""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from aiohttp import web

import chaos.machines.pool
from chaos.app.labs import make_inventory
from chaos.core.command import HostCommand
from chaos.core.fact import HostFact, find_fact
from chaos.lab.bmc import RedfishServer
from chaos.lab.hostshell.ssh import SshServer
from chaos.lab.server.content import ServeOptions
from chaos.lab.server.lab import Lab
from chaos.lab.spec import LabSpec, NodeSpec, SharedIdentity
from tests.kit.frames import sent_command

CONTROL_PLANE, WORKERS = "control-plane", ("worker-1", "worker-2", "worker-3")


@dataclass
class RecordedLab:
    """``received``: machine and command line, or Redfish's ResetType, in order. ``reads`` are commands of facts."""

    lab: Lab
    facts: dict[str, Any]
    received: list[tuple[str, str]] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)

    @property
    def inventory(self) -> dict[str, Any]:
        """The inventory that is right."""
        return make_inventory(self.facts).model_dump(mode="json", by_alias=True, exclude_none=True)

    def changes(self) -> list[tuple[str, str]]:
        """What was received and does not only read, since the last call."""
        found = [(machine, text) for machine, text in self.received if text not in self.reads]
        self.received.clear()
        return found

    def is_whole(self) -> bool:
        """Whether every machine is on and its kubelet runs."""
        return all(each.is_reachable and each.kubelet.is_running for each in self.lab.cluster.machines.values())


@contextmanager
def recorded_lab(folder: Path, shared: list[SharedIdentity], pace: float) -> Iterator[RecordedLab]:
    """``shared``: what the machines have in common."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> tuple[Lab, dict[str, Any]]:
        nodes = [NodeSpec(name=CONTROL_PLANE, role="control-plane"), *(NodeSpec(name=name) for name in WORKERS)]
        lab = Lab(LabSpec(nodes=nodes, shared_identity=shared), ServeOptions(speed=pace), folder)
        return lab, await lab.start()

    with pytest.MonkeyPatch.context() as patch:
        lab, facts = asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
        recorded = RecordedLab(lab, facts)
        _record_commands(recorded, patch)
        _record_resets(recorded, patch)
        _record_reads(recorded, patch)
        try:
            yield recorded
            assert lab.failure() is None
        finally:
            asyncio.run_coroutine_threadsafe(lab.stop(), loop).result(30)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()


def _record_commands(recorded: RecordedLab, patch: pytest.MonkeyPatch) -> None:
    run = SshServer._run

    async def record(self: SshServer, channel: asyncssh.SSHServerProcess[str]) -> int:
        recorded.received.append((self.host.machine.name, sent_command(channel.command or "")))
        return await run(self, channel)

    patch.setattr(SshServer, "_run", record)


def _record_resets(recorded: RecordedLab, patch: pytest.MonkeyPatch) -> None:
    switch_of = RedfishServer._switch

    def record(self: RedfishServer, request: web.Request) -> Any:
        if request.method == "POST":
            recorded.received.append((request.match_info["node"], "reset"))
        return switch_of(self, request)

    patch.setattr(RedfishServer, "_switch", record)


def _record_reads(recorded: RecordedLab, patch: pytest.MonkeyPatch) -> None:
    """Every command that a fact makes only reads; tests/faults/readings has what these are."""

    def find(facts: Any, reference: str) -> HostFact:
        fact = find_fact(facts, reference)
        command_for = fact.command_for

        def record(known: Any) -> HostCommand:
            command = command_for(known)
            recorded.reads |= {shlex.join((*prefix, *command.argv)) for prefix in ((), ("sudo", "-n", "--"))}
            return command

        recording = copy(fact)
        recording.command_for = record  # type: ignore[method-assign]
        return recording

    patch.setattr(chaos.machines.pool, "find_fact", find)
