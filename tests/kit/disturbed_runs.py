"""Seeded runs whose watches are late, by a proxy between a run and its lab, or whose API server is starved."""

from __future__ import annotations

import heapq
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from chaos.app.labs import LabServeOptions, start_lab
from chaos.app.run.experiment import RunRequest, always_confirm, run
from chaos.app.wiring.connect import connect_cluster, with_lab_cluster
from chaos.cluster.api import WatchStream
from chaos.cluster.errors import RESET, KubeUnreachable
from chaos.cluster.watch_codec import split_lines
from chaos.core.errors import NodefallError
from chaos.core.inventory import Inventory
from chaos.core.lab_settings import Lab
from chaos.core.ports import Clock
from chaos.core.result import RunResult
from chaos.engine.connection import ClusterConnection
from chaos.engine.load import load
from chaos.engine.progress import NullProgress
from tests.kit.disturbance import STARVED, DisturbancePlan, Row, Statuses, measured, name_of, statuses
from tests.kit.experiment_runs import BUNDLED
from tests.kit.processes import EXPERIMENTS, ROOT

_POLL = 0.003  # wall seconds
_PACE = 20.0  # seconds of the lab's time a wall second, at most


class Disturbance:
    """Delivers the events of watches as the plan of a seed has it."""

    def __init__(self, clock: Clock, seed: int) -> None:
        self.clock, self.plan = clock, DisturbancePlan(clock.now, seed)
        self._lock = threading.Lock()
        self._streams: list[_LateStream] = []
        self._stopped, self._scheduled = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    @contextmanager
    def active(self) -> Iterator[Disturbance]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            self._scheduled.set()
            self._thread.join(10)

    def open(self, path: str, upstream: WatchStream) -> _LateStream:
        stream = _LateStream(self, path, upstream)
        with self._lock:
            self._streams.append(stream)
        return stream

    def wake(self) -> None:
        """Look at the clock: something was scheduled."""
        self._scheduled.set()

    def _poll(self) -> None:
        """Deliver what is due. Each look at the clock costs the lab as much as a request."""
        pause: float | None = None  # wall seconds; the lab's time may stand still meanwhile
        while True:
            self._scheduled.wait(pause)
            self._scheduled.clear()
            if self._stopped.is_set():
                return
            try:
                now = self.clock.now()
            except NodefallError:  # the lab has ended
                return
            with self._lock:
                streams = list(self._streams)
            following = min((stream.release(now) for stream in streams), default=math.inf)
            pause = None if math.isinf(following) else max(_POLL, (following - now) / _PACE)


class _LateStream:
    """A watch whose lines are delivered when they are due."""

    def __init__(self, disturbance: Disturbance, path: str, upstream: WatchStream) -> None:
        self._disturbance, self._path, self._upstream = disturbance, path, upstream
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, bytes]] = []
        self._ready: deque[bytes] = deque()
        self._count = 0
        self._end: Exception | None = None
        self._has_ended = self._aborted = False

    def __enter__(self) -> Iterator[bytes]:
        chunks = self._upstream.__enter__()
        threading.Thread(target=self._read, args=(chunks,), daemon=True).start()
        return self._chunks()

    def __exit__(self, *_: object) -> None:
        self.abort()

    def has_input(self) -> bool:
        return bool(self._ready)

    def abort(self) -> None:
        self._upstream.abort()
        with self._changed:
            self._aborted = True
            self._changed.notify_all()

    def release(self, now: float) -> float:
        """Deliver what is due by ``now``. When the next is due."""
        with self._changed:
            while self._waiting and self._waiting[0][0] <= now:
                _, _, line = heapq.heappop(self._waiting)
                self._disturbance.plan.note_delivery(self._path, line, now)
                self._ready.append(line)
            self._changed.notify_all()
            return self._waiting[0][0] if self._waiting else math.inf

    def _read(self, chunks: Iterator[bytes]) -> None:
        end: Exception | None = None
        try:
            for line in split_lines(chunks):
                dues = self._disturbance.plan.schedule(self._path, line)
                with self._changed:
                    for due in dues:
                        self._count += 1
                        heapq.heappush(self._waiting, (due, self._count, line))
                self._disturbance.wake()
        except Exception as error:  # noqa: BLE001 - raised again where the lines are read
            end = error
        with self._changed:
            self._end, self._has_ended = end, True
            self._changed.notify_all()

    def _chunks(self) -> Iterator[bytes]:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._ready or self._aborted or (self._has_ended and not self._waiting), timeout=60
                )
                if self._aborted:
                    raise KubeUnreachable(RESET, f"watch of {self._path}: the watch was aborted")
                if not self._ready and self._has_ended and not self._waiting:
                    if self._end:
                        raise self._end
                    return
                lines, self._ready = list(self._ready), deque()
            for line in lines:
                yield line + b"\n"


class DisturbedApi:
    """An API client whose watches are late."""

    def __init__(self, api: Any, disturbance: Disturbance) -> None:
        self._api, self._disturbance = api, disturbance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def stream(self, path: str, query: Mapping[str, str]) -> _LateStream:
        return self._disturbance.open(path, self._api.stream(path, query))


Disturb = Callable[[ClusterConnection, ExitStack], Any]


@dataclass(frozen=True, slots=True)
class MisbehavingLab(LabServeOptions):
    misbehaviours: tuple[str, ...] = ()

    def arguments(self, lab: Lab) -> list[str]:
        options = (option for name in self.misbehaviours for option in ("--misbehave", name))
        return [*LabServeOptions.arguments(self, lab), *options]


def disturbed(kind: str, seed: int, directory: Path) -> Row:
    """Run the experiment of this seed, and compare."""
    name = name_of(seed)

    def run_late() -> tuple[RunResult, DisturbancePlan | None]:
        made: list[Disturbance] = []

        def disturb(connection: ClusterConnection, stack: ExitStack) -> Any:
            made.append(stack.enter_context(Disturbance(connection.clock, seed).active()))
            return DisturbedApi(connection.kube, made[0])

        return outcome(name, directory, disturb), made[0].plan

    def run_starved() -> tuple[RunResult, DisturbancePlan | None]:
        return outcome(name, directory, _as_it_is, ("slow-answers",), seed), None

    return measured(kind, seed, undisturbed(name), run_starved if kind == STARVED else run_late)


def _as_it_is(connection: ClusterConnection, _: ExitStack) -> Any:
    return connection.kube


def outcome(
    name: str, directory: Path, disturb: Disturb, misbehaviours: tuple[str, ...] = (), lab_seed: int = 1
) -> RunResult:
    """The result of a run whose API client is what ``disturb`` returns, on a lab that misbehaves."""
    request = RunRequest(load(EXPERIMENTS / f"{name}.yaml"), directory, always_confirm, 1)
    with ExitStack() as stack:
        document = yaml.safe_load((ROOT / "hosts" / BUNDLED[name].notes["lab"]).read_text(encoding="utf-8"))
        requested = Inventory.model_validate(document)
        assert requested.lab is not None
        lab = stack.enter_context(start_lab(requested.lab, lab_seed, MisbehavingLab(misbehaviours=misbehaviours)))
        inventory = with_lab_cluster(requested, lab.inventory)
        connection = stack.enter_context(connect_cluster(inventory))
        connection = replace(connection, kube=disturb(connection, stack))
        return run(request, connection, NullProgress()).result


@cache
def undisturbed(name: str) -> Statuses:
    """The status of each expectation on a lab that behaves."""
    with TemporaryDirectory() as directory:
        return statuses(outcome(name, Path(directory), _as_it_is))
