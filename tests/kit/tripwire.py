"""In a process of nodefall's own: at one position of its journal, one death.

Positions are named after what the journal and the recording have just got, or are just about to get: ``before-intend``
and ``intend`` (an operation is journalled), ``mirror`` (the cluster gets a copy), ``applied`` (the workload is),
``planted`` (its timer is set), ``begin`` (armed, not fired), ``returned``, ``proved``, ``undo`` (begins),
``undo-sent``, ``strike`` (the undo is proven), ``undone``, ``unmirror``; a second one of a name is ``strike-2``.

What the process sends to its parent: the positions, in a job without one, each of which it waits to be answered; else
``HIT`` at its position, ``NOTICED``, and the positions after that.
"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

import chaos.engine.inject
import chaos.engine.run
import chaos.faults.actions
import chaos.faults.actions.windows
import chaos.faults.readings
import chaos.faults.readings.windows
import chaos.verdicts.assertions
from chaos.cli import app
from chaos.cluster import lease_lock
from chaos.cluster.lease_lock import ClusterLock
from chaos.core.action import Action
from chaos.core.fact import HostFact
from chaos.core.recording import RecordingEntry
from chaos.core.registry import discover
from chaos.core.store.journal import Journal
from chaos.engine import rollback
from chaos.engine.recorder import Recorder
from chaos.reports.run.renderer import load_renderers
from tests.kit import shifted_clocks
from tests.kit.deaths import DEATHS

SLOW = (
    *(
        "kubernetes.client",
        "paramiko",
        "chaos.documents.inventory",
        "chaos.cluster.client",
        "chaos.machines.power.redfish",
    ),
    *(
        "chaos.cli.run.run",
        "chaos.cli.lazy",
        "chaos.cli.lazy",
        "chaos.cli.cluster.undo",
        "chaos.app.run.experiment",
    ),
    "chaos.machines.transports.ssh",
    "chaos.machines.transports.winrm",
    "chaos.machines.winrm.session",
)
HIT, NOTICED = "hit", "noticed"
NOTICE = 10.0  # wall seconds in which a run must notice the loss of its lock
_FAST_POLL = 0.1  # wall seconds between two reads of the Lease, instead of 1 s


@dataclass(frozen=True)
class Job:
    """One command of nodefall's, in a dedicated directory. Without a position it dies nowhere, and reports them all.

    ``terminal``: its path; ``link``: to its parent, which does what a process cannot do to itself. ``clock_shifts``:
    memory of both, see ``shifted_clocks``.
    """

    arguments: list[str]
    cwd: Path
    link: Connection
    clock_shifts: Sequence[float]
    position: str = ""
    death: str = ""
    terminal: str = ""


def work(job: Job) -> None:
    """The whole life of the process."""
    os.setsid()
    os.chdir(job.cwd)
    shifted_clocks.use(job.clock_shifts)
    _streams(job)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _install(_Tripwire(job))
    sys.argv = ["nodefall", *job.arguments]
    app.run()


def _streams(job: Job) -> None:
    """The first terminal that a leader of a session opens is its own."""
    said = os.open(job.terminal or job.cwd / "said", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(said, number)
    if job.terminal:
        os.dup2(said, 0)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))


def warm() -> None:
    """Import what every command would: in the process that all of them are forked from."""
    for package in (chaos.faults.actions, chaos.faults.actions.windows):
        discover(package, Action)
    discover(chaos.verdicts.assertions, "ASSERTION")
    for package in (chaos.faults.readings, chaos.faults.readings.windows):
        discover(package, HostFact)
    load_renderers()
    for name in SLOW:
        importlib.import_module(name)


class _Tripwire:
    def __init__(self, job: Job) -> None:
        self._job = job
        self.is_noticed = bool(job.death) and DEATHS[job.death].is_noticed
        self._seen: Counter[str] = Counter()
        self._is_hit = False
        self._mutex = threading.Lock()  # positions are of several threads
        self.locks: list[ClusterLock] = []

    def at(self, name: str) -> None:
        """Here we are."""
        with self._mutex:
            self._seen[name] += 1
            place = name if self._seen[name] == 1 else f"{name}-{self._seen[name]}"
            if not self._job.position:
                self._job.link.send(place)
                self._job.link.recv()
                return
            if self._is_hit:
                with suppress(OSError):  # the parent waits for the end only
                    self._job.link.send(place)
                return
            self._is_hit = place == self._job.position
        if self._is_hit:
            self._die()

    def _die(self) -> None:
        name, death = self._job.death, DEATHS[self._job.death]
        self._job.link.send(HIT)
        if death.by_parent:
            self._job.link.recv()  # it is done
        if name == "full-disk":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # Python ignores SIGXFSZ
        elif name.startswith("lost-"):
            # Of the minutes in which a connection may come back: this one does not.
            chaos.engine.inject.PROOF_SECONDS = rollback.PROOF_SECONDS = 20.0
        elif name.startswith("SIG") or death.kills:
            os.kill(os.getpid(), getattr(signal, name, signal.SIGKILL))
        elif death.is_noticed:
            self._await_notice()

    def _await_notice(self) -> None:
        """What begins after this begins without the lock, and the run knows."""
        noticed = threading.Event()
        for _ in range(int(NOTICE / _FAST_POLL)):
            if any(lock.loss for lock in self.locks):
                self._job.link.send(NOTICED)
                return
            noticed.wait(_FAST_POLL / 2)


def _install(wire: _Tripwire) -> None:
    """Around what is written and sent; what it does is not changed."""
    _around(Journal, "_add", _record, wire)
    _after(Recorder, "emit", _phase, wire)
    _after(chaos.engine.run, "apply", lambda *_: "applied", wire)
    _after(chaos.engine.inject, "arm", lambda *_: "planted", wire)
    _after(rollback._Attempt, "_send", lambda *_: "undo-sent", wire)
    if wire.is_noticed:
        _keep_locks(wire)


def _keep_locks(wire: _Tripwire) -> None:
    original = ClusterLock.acquire
    lease_lock.POLL_PERIOD = _FAST_POLL

    def acquire(self: ClusterLock, *given: Any, **named: Any) -> None:
        wire.locks.append(self)
        original(self, *given, **named)

    ClusterLock.acquire = acquire  # type: ignore[method-assign]


def _record(record: Any) -> str:
    if record.intent:
        return "intend"
    if record.undone is not None:
        return "strike"
    return "mirror" if record.replica else "unmirror"


def _phase(line: RecordingEntry) -> str:
    return str(msgspec.json.decode(line.object)["phase"]) if line.kind == "action" else ""


def _around(owner: Any, name: str, call: Callable[..., str], wire: _Tripwire) -> None:
    original = getattr(owner, name)

    def wrapped(self: Any, *given: Any) -> Any:
        wire.at(f"before-{call(*given)}")
        answer = original(self, *given)
        wire.at(call(*given))
        return answer

    setattr(owner, name, wrapped)


def _after(owner: Any, name: str, call: Callable[..., str], wire: _Tripwire) -> None:
    original = getattr(owner, name)

    def wrapped(*given: Any, **named: Any) -> Any:
        answer = original(*given, **named)
        if place := call(*given[1:]):
            wire.at(place)
        return answer

    setattr(owner, name, wrapped)
